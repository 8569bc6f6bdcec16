/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: one packet → the call that answers it. Everything a client sends is checked here for
 * form; what it means is checked by whom it concerns.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "control/state.h"
#include "feeder/version.h"
#include "source/source.h"

/* Reads the body into a struct; -E2BIG is answered with what to do about it. */
static int take_body(struct session *s, void *ret, size_t size)
{
	const struct control_packet *packet = &s->control->packet;
	int r = control_body(packet, ret, size, NULL, NULL);

	if (r == -E2BIG)
		session_refuse(s, packet->header.serial, r,
			"the request uses an option that this daemon (%s) does not know; a newer "
			"one "
			"may",
			FEEDER_VERSION);
	return r;
}

static int hello(struct session *s)
{
	struct control *c = s->control;
	uint32_t serial = c->packet.header.serial;
	struct control_hello body;
	struct pipeline_facts facts;
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	if (!control_string_ok(body.version, sizeof(body.version)) ||
		!control_string_ok(body.program, sizeof(body.program)))
		return -EPROTO;
	if (body.major != CONTROL_MAJOR) {
		session_refuse(s, serial, -EPROTONOSUPPORT,
			"this daemon (%s) speaks protocol %d.%d, the client (%s) %u.%u: install "
			"the "
			"same major version of both",
			FEEDER_VERSION, CONTROL_MAJOR, CONTROL_MINOR, body.version, body.major,
			body.minor);
		session_kill(s);
		return 0;
	}
	if (body.features != 0) {
		session_refuse(s, serial, -EPROTONOSUPPORT,
			"the client (%s) needs features 0x%" PRIx64
			" of the protocol, which this daemon (%s) does not have",
			body.version, body.features, FEEDER_VERSION);
		session_kill(s);
		return 0;
	}
	s->greeted = true;
	timer_stop(&s->hello_timer);
	snprintf(s->client, sizeof(s->client), "%s", body.program);
	pipeline_facts(c->pipeline, &facts);
	struct control_hello reply = {
		.size = sizeof(reply),
		.major = CONTROL_MAJOR,
		.minor = CONTROL_MINOR,
		.private_daemon = c->options.private_daemon,
		.workers = facts.workers,
		.start_ns = c->start_ns,
		.version = FEEDER_VERSION,
		.program = "feederd",
	};
	session_send(
		s, CONTROL_HELLO | CONTROL_REPLY, serial, &reply, sizeof(reply), NULL, 0, NULL, 0);
	return 0;
}

static int request_open_dataset(struct session *s)
{
	struct control_open_dataset body;
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	if (!control_string_ok(body.path, sizeof(body.path)) || s->control->packet.fd_count < 1 ||
		s->control->packet.fd_count > 2)
		return -EPROTO;
	open_dataset(s, &body);
	return 0;
}

static int request_open_lane(struct session *s)
{
	struct control_open_lane body;
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	if (!control_string_ok(body.job, sizeof(body.job)) ||
		!control_string_ok(body.name, sizeof(body.name)) ||
		!control_string_ok(body.pci_id, sizeof(body.pci_id)) ||
		body.cursor_size > sizeof(body.cursor) || body.operation_count > CONTROL_OPS_MAX)
		return -EPROTO;
	lane_open(s, &body);
	return 0;
}

static struct lane_record *need_lane(struct session *s, uint32_t handle)
{
	struct lane_record *record = lane_find(s, handle);

	if (!record)
		session_refuse(s, s->control->packet.header.serial, -EBADF,
			"lane %u is not open in this session", handle);
	return record;
}

static int request_seek(struct session *s)
{
	struct control *c = s->control;
	struct control_seek body;
	struct control_lane reply = { 0 };
	char text[TEXT_SIZE] = "";
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	if (body.cursor_size > sizeof(body.cursor))
		return -EPROTO;
	struct lane_record *record = need_lane(s, body.lane);
	if (!record)
		return 0;
	r = lane_seek(record->lane, body.cursor, body.cursor_size, &reply, text, sizeof(text));
	lane_move(s, c->packet.header.serial, record, r, &reply, text);
	return 0;
}

/*
 * Maps the ids that a client hands over. A sealed memfd cannot change or shrink under the
 * daemon's eyes, and is no file of a file system that might hang.
 */
static int map_ids(struct session *s, const struct control_set_epoch *body, void **ret,
	size_t *ret_bytes, char *text, size_t size)
{
	static const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	const struct control_packet *packet = &s->control->packet;
	uint64_t limit = quota_ring_limit(s->control->quota);
	struct stat st;

	if (packet->fd_count == 0) {
		snprintf(text, size, "set epoch announces %" PRIu64 " ids and brings no memfd",
			body->ids);
		return -EINVAL;
	}
	int seals = fcntl(packet->fds[0], F_GET_SEALS);
	if (seals < 0 || (seals & needed) != needed) {
		snprintf(text, size, "the ids must come in a memfd sealed against every change");
		return -EINVAL;
	}
	if (body->ids > limit / sizeof(int64_t)) {
		snprintf(text, size,
			"%" PRIu64 " ids need more than the %" PRIu64
			" bytes of ring_bytes under [limits] of feeder.conf",
			body->ids, limit);
		return -EDQUOT;
	}
	size_t bytes = body->ids * sizeof(int64_t);
	if (fstat(packet->fds[0], &st) < 0 || (uint64_t)st.st_size < bytes) {
		snprintf(text, size, "the memfd of ids is shorter than %" PRIu64 " ids", body->ids);
		return -EINVAL;
	}
	*ret = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, packet->fds[0], 0);
	if (*ret == MAP_FAILED) {
		int error = errno;

		snprintf(text, size, "the memfd of ids cannot be mapped: %s", strerror(error));
		return -error;
	}
	*ret_bytes = bytes;
	return 0;
}

static int request_set_epoch(struct session *s)
{
	struct control *c = s->control;
	struct control_set_epoch body;
	struct control_lane reply = { 0 };
	char text[TEXT_SIZE] = "";
	void *ids = NULL;
	size_t bytes = 0;
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	struct lane_record *record = need_lane(s, body.lane);
	if (!record)
		return 0;
	r = body.ids ? map_ids(s, &body, &ids, &bytes, text, sizeof(text)) : 0;
	if (r == 0)
		r = lane_set_epoch(
			record->lane, body.epoch, ids, body.ids, &reply, text, sizeof(text));
	if (ids)
		munmap(ids, bytes);
	lane_move(s, c->packet.header.serial, record, r, &reply, text);
	return 0;
}

static int request_stats(struct session *s)
{
	struct control_stats body;
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	stats_answer(s, s->control->packet.header.serial);
	return 0;
}

/* Records of samples from body->first on, as many as fit. */
static size_t put_paths(const struct dataset *d, const struct control_paths *body, uint8_t *ret,
	size_t size, uint32_t *ret_count)
{
	uint64_t length = dataset_length(d);
	size_t used = 0;
	uint32_t count = 0;

	while (count < body->count && body->first < length && count < length - body->first) {
		struct sample sample;
		char path[CONTROL_PATH_MAX];
		uint64_t id = body->first + count;
		int n = dataset_path(d, id, path, sizeof(path));

		if (n < 0)
			n = 0; /* longer than any path can be: shown as none */
		if (used + sizeof(int64_t) + sizeof(uint32_t) + (size_t)n > size)
			break;
		uint32_t n32 = (uint32_t)n;
		dataset_sample(d, id, &sample);
		memcpy(ret + used, &sample.label, sizeof(int64_t));
		memcpy(ret + used + sizeof(int64_t), &n32, sizeof(n32));
		memcpy(ret + used + sizeof(int64_t) + sizeof(n32), path, n32);
		used += sizeof(int64_t) + sizeof(n32) + n32;
		count++;
	}
	*ret_count = count;
	return used;
}

static int request_paths(struct session *s)
{
	struct control *c = s->control;
	struct control_paths body;
	struct control_paths_reply reply = { .size = sizeof(reply) };
	size_t room = CONTROL_PACKET_MAX - sizeof(struct control_header) - sizeof(reply);
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	struct dataset_entry *entry = open_find(s, body.dataset);
	if (!entry) {
		session_refuse(s, c->packet.header.serial, -EBADF,
			"dataset %u is not open in this session", body.dataset);
		return 0;
	}
	if (body.count > CONTROL_PATHS_MAX) {
		session_refuse(s, c->packet.header.serial, -EINVAL,
			"%u paths at once are more than %d", body.count, CONTROL_PATHS_MAX);
		return 0;
	}
	uint8_t *tail CLEANUP(freep) = malloc(room);
	if (!tail) {
		session_refuse(s, c->packet.header.serial, -ENOMEM, "the daemon is out of memory");
		return 0;
	}
	reply.bytes = (uint32_t)put_paths(entry_dataset(entry), &body, tail, room, &reply.count);
	session_send(s, CONTROL_PATHS | CONTROL_REPLY, c->packet.header.serial, &reply,
		sizeof(reply), tail, reply.bytes, NULL, 0);
	return 0;
}

/* Idempotent: what is closed already is no error, since a lane may have been taken over. */
static int request_close(struct session *s)
{
	struct control *c = s->control;
	struct control_close body;
	struct control_stats reply = { .size = sizeof(reply) };
	int r = take_body(s, &body, sizeof(body));

	if (r < 0)
		return r == -E2BIG ? 0 : r;
	struct lane_record *record = body.lane ? lane_find(s, body.lane) : NULL;
	if (record)
		lane_close(record);
	if (body.dataset)
		open_close(s, body.dataset);
	session_send(s, CONTROL_CLOSE | CONTROL_REPLY, c->packet.header.serial, &reply,
		sizeof(reply), NULL, 0, NULL, 0);
	return 0;
}

int request_handle(struct session *s)
{
	struct control *c = s->control;
	const struct control_header *header = &c->packet.header;

	if (header->serial == 0)
		return -EPROTO;
	if (s->greeted == (header->type == CONTROL_HELLO))
		return -EPROTO; /* hello comes first, and once */
	if (c->draining && header->type >= CONTROL_OPEN_DATASET &&
		header->type <= CONTROL_SET_EPOCH) {
		session_refuse_stopping(s, header->serial);
		return 0;
	}
	switch (header->type) {
	case CONTROL_HELLO:
		return hello(s);
	case CONTROL_OPEN_DATASET:
		return request_open_dataset(s);
	case CONTROL_OPEN_LANE:
		return request_open_lane(s);
	case CONTROL_SEEK:
		return request_seek(s);
	case CONTROL_SET_EPOCH:
		return request_set_epoch(s);
	case CONTROL_STATS:
		return request_stats(s);
	case CONTROL_PATHS:
		return request_paths(s);
	case CONTROL_CLOSE:
		return request_close(s);
	default:
		session_refuse(s, header->serial, -ENOSYS,
			"this daemon (%s, protocol %d.%d) has no request %u; a newer one may",
			FEEDER_VERSION, CONTROL_MAJOR, CONTROL_MINOR, header->type);
		return 0;
	}
}
