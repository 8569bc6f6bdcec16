/* SPDX-License-Identifier: Apache-2.0 */
/* The fake daemon's answers to requests. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake-parts.h"
#include "protocol/stats.h"

int fake_send_error(int fd, uint32_t serial, int code, const char *text)
{
	struct control_error body = { .size = sizeof(body), .code = code };

	snprintf(body.text, sizeof(body.text), "%s", text);
	return control_send(fd, CONTROL_ERROR, serial, &body, sizeof(body), NULL, 0, NULL, 0);
}

static void reply(int fd, const struct control_packet *p, const void *body, size_t size,
	const int *fds, unsigned int count)
{
	control_send(fd, p->header.type | CONTROL_REPLY, p->header.serial, body, size, NULL, 0, fds,
		count);
}

static void reply_hello(int fd, const struct control_packet *p)
{
	struct control_hello body = {
		.size = sizeof(body),
		.major = CONTROL_MAJOR,
		.private_daemon = 1,
		.workers = 2,
		.version = "0.1.0",
	};

	reply(fd, p, &body, sizeof(body), NULL, 0);
}

static void reply_dataset(int fd, const struct control_packet *p)
{
	struct control_dataset body = {
		.size = sizeof(body),
		.dataset = 7,
		.samples = FAKE_SAMPLES,
		.fingerprint = { 1, 2, 3 },
		.class_count = 3,
		.format = "folder",
	};
	CLEANUP(fd_closep) int names = memfd_create("classes", MFD_CLOEXEC);

	MUST(write(names, "ant\0bee\0cat", 12) == 12);
	reply(fd, p, &body, sizeof(body), &names, 1);
}

static struct fake_lane *lane_of(struct fake *fake, int session, uint32_t handle)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct fake_lane *lane = &fake->lanes[i];

		if (lane->used && lane->session == session && lane->handle == handle)
			return lane;
	}
	return NULL;
}

static void fill_reply(const struct fake *fake, struct fake_lane *lane, struct control_lane *ret)
{
	*ret = (struct control_lane){
		.size = sizeof(*ret),
		.lane = lane->handle,
		.generation = lane->generation,
		.first = lane->published + 1,
		.steps = fake->config.steps - lane->step,
		.steps_epoch = fake->config.steps,
		.ring_bytes = lane->header.total_size,
		.cursor_size = FAKE_CURSOR,
	};
	fake_put_cursor(ret->cursor, lane->epoch, lane->step);
	if (fake->config.on_reply)
		fake->config.on_reply(ret, fake->config.context);
}

static void stand_at(struct fake_lane *lane, const uint8_t *cursor, uint32_t size)
{
	if (size != FAKE_CURSOR)
		return;
	memcpy(&lane->epoch, cursor + 8, 8);
	memcpy(&lane->step, cursor + 16, 8);
}

static void reply_open(struct fake *fake, int session, const struct control_packet *p)
{
	struct control_lane body;
	struct fake_lane *lane = NULL;

	for (unsigned int i = 0; i < FAKE_LANES && !lane; i++)
		lane = fake->lanes[i].used ? NULL : &fake->lanes[i];
	MUST(lane);
	lane->used = true;
	lane->session = session;
	lane->handle = ++fake->opened;
	lane->generation = 1;
	lane->allowed = fake->config.manual ? 0 : UINT64_MAX;
	MUST(control_body(p, &lane->open, sizeof(lane->open), NULL, NULL) == 0);
	stand_at(lane, lane->open.cursor, lane->open.cursor_size);
	if (lane->open.cursor_size == 0)
		lane->epoch = lane->open.epoch;
	fake_make_ring(fake, lane);
	fill_reply(fake, lane, &body);
	reply(session, p, &body, sizeof(body),
		(int[]){ lane->payload_fd, lane->control_fd, lane->doorbell }, 3);
}

static void reply_move(struct fake *fake, int session, const struct control_packet *p)
{
	struct control_lane body;
	struct control_seek seek = { .size = 0 };
	struct control_set_epoch epoch = { .size = 0 };
	struct fake_lane *lane;

	if (p->header.type == CONTROL_SEEK) {
		MUST(control_body(p, &seek, sizeof(seek), NULL, NULL) == 0);
		lane = lane_of(fake, session, seek.lane);
		if (lane)
			stand_at(lane, seek.cursor, seek.cursor_size);
	} else {
		MUST(control_body(p, &epoch, sizeof(epoch), NULL, NULL) == 0);
		lane = lane_of(fake, session, epoch.lane);
	}
	if (!lane) {
		fake_send_error(session, p->header.serial, -ENOENT, "no such lane");
		return;
	}
	if (p->header.type == CONTROL_SET_EPOCH) {
		lane->epoch = epoch.epoch;
		lane->step = 0;
		fake->ids_count = epoch.ids;
		fake->ids_sum = 0;
		for (uint64_t i = 0; i < epoch.ids; i++) {
			int64_t id = 0;

			MUST(pread(p->fds[0], &id, 8, (off_t)i * 8) == 8);
			fake->ids_sum += id;
		}
	}
	fake->moves++;
	lane->generation++;
	fill_reply(fake, lane, &body);
	reply(session, p, &body, sizeof(body), NULL, 0);
}

static void reply_paths(int fd, const struct control_packet *p)
{
	static uint8_t records[32768];
	struct control_paths body;
	struct control_paths_reply answer = { .size = sizeof(answer) };

	MUST(control_body(p, &body, sizeof(body), NULL, NULL) == 0);
	for (uint64_t id = body.first; id < body.first + body.count; id++) {
		int64_t label = (int64_t)(id % 3);
		char path[64];
		uint32_t length =
			(uint32_t)snprintf(path, sizeof(path), "bee/%06u.jpg", (unsigned)id);

		if (answer.bytes + 12 + length > sizeof(records))
			break;
		memcpy(records + answer.bytes, &label, 8);
		memcpy(records + answer.bytes + 8, &length, 4);
		memcpy(records + answer.bytes + 12, path, length);
		answer.bytes += 12 + length;
		answer.count++;
	}
	control_send(fd, p->header.type | CONTROL_REPLY, p->header.serial, &answer, sizeof(answer),
		records, answer.bytes, NULL, 0);
}

static void reply_stats(int fd, const struct control_packet *p)
{
	struct control_stats_reply body = { .size = sizeof(body) };
	struct {
		struct stats_header header;
		uint64_t counters[STATS_DAEMON_COUNT];
	} segment = { .header = {
			      .magic = STATS_MAGIC,
			      .major = STATS_MAJOR,
			      .daemon_offset = sizeof(segment.header),
			      .daemon_count = STATS_DAEMON_COUNT,
			      .pid = 4242,
		      } };
	CLEANUP(fd_closep) int memfd = memfd_create("stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	segment.counters[STATS_DAEMON_reads_in_flight] = 17;
	body.bytes = sizeof(segment);
	MUST(write(memfd, &segment, sizeof(segment)) == sizeof(segment));
	fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	reply(fd, p, &body, sizeof(body), &memfd, 1);
}

static void reply_close(struct fake *fake, int session, const struct control_packet *p)
{
	struct control_close body;
	struct fake_lane *lane;

	MUST(control_body(p, &body, sizeof(body), NULL, NULL) == 0);
	lane = lane_of(fake, session, body.lane);
	if (lane) {
		fake_free_lane(lane);
		fake->closed++;
	}
	fake->datasets_closed += body.dataset != 0;
	reply(session, p, &body, sizeof(body), NULL, 0);
}

void fake_answer(struct fake *fake, int session, const struct control_packet *p)
{
	switch (p->header.type) {
	case CONTROL_HELLO:
		reply_hello(session, p);
		break;
	case CONTROL_OPEN_DATASET:
		reply_dataset(session, p);
		break;
	case CONTROL_OPEN_LANE:
		reply_open(fake, session, p);
		break;
	case CONTROL_SEEK:
	case CONTROL_SET_EPOCH:
		reply_move(fake, session, p);
		break;
	case CONTROL_PATHS:
		reply_paths(session, p);
		break;
	case CONTROL_STATS:
		reply_stats(session, p);
		break;
	case CONTROL_CLOSE:
		reply_close(fake, session, p);
		break;
	}
}
