/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's double: see fake-daemon.h. */
#include "fake-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "protocol/stats.h"

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "fake daemon: %s: %s\n", #x, strerror(errno));             \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t id;
	uint8_t *payload;
	uint8_t *control;
} mappings[64];
static uint64_t last_id;

bool fake_mapping(uint64_t id, uint8_t **ret_payload, uint8_t **ret_control)
{
	bool found;

	pthread_mutex_lock(&mappings_lock);
	found = mappings[id % 64].id == id;
	*ret_payload = mappings[id % 64].payload;
	*ret_control = mappings[id % 64].control;
	pthread_mutex_unlock(&mappings_lock);
	return found;
}

static uint64_t mapping_id(void)
{
	uint64_t id;

	pthread_mutex_lock(&mappings_lock);
	id = ++last_id;
	pthread_mutex_unlock(&mappings_lock);
	return id;
}

static void mapping_set(uint64_t id, uint8_t *payload, uint8_t *control)
{
	pthread_mutex_lock(&mappings_lock);
	mappings[id % 64].id = id;
	mappings[id % 64].payload = payload;
	mappings[id % 64].control = control;
	pthread_mutex_unlock(&mappings_lock);
}

uint8_t fake_pixel(uint64_t n, uint32_t i)
{
	return (uint8_t)(n * 7 + i);
}

int64_t fake_label(uint64_t n, uint32_t i)
{
	return (int64_t)(n * 1000 + i);
}

/* ---- rings ---- */

static uint64_t up(uint64_t x, uint64_t to)
{
	return (x + to - 1) / to * to;
}

static uint64_t image_bytes(const struct fake *fake)
{
	return (uint64_t)fake->config.side * fake->config.side * 3;
}

static void lay_out(const struct fake *fake, struct fake_lane *lane)
{
	uint64_t capacity = fake->config.capacity;
	struct ring_header *h = &lane->header;

	*h = (struct ring_header){
		.magic = RING_MAGIC,
		.major = RING_MAJOR,
		.header_size = sizeof(*h),
		.slots = fake->config.slots,
		.capacity = fake->config.capacity,
		.field_count = 2,
		.field_size = sizeof(struct ring_field),
		.place_size = sizeof(struct ring_place),
		.fields_offset = sizeof(*h),
		.words_offset = 1024,
		.descriptor_offset = 4096,
		.places_offset = sizeof(struct ring_descriptor),
		.lane = lane->id,
		.control_size = 4096,
		.waiting_offset = RING_CONTROL_WAITING,
		.telemetry_offset = RING_CONTROL_TELEMETRY,
		.release_offset = RING_CONTROL_RELEASE,
		.release_stride = 8,
	};
	h->descriptor_stride = h->places_offset + capacity * h->place_size;
	h->slot_offset = up(h->descriptor_offset + h->slots * h->descriptor_stride, 4096);
	h->slot_stride = up(up(capacity * image_bytes(fake), 64) + capacity * 8, 4096);
	h->total_size = h->slot_offset + h->slots * h->slot_stride;
}

static void write_fields(const struct fake *fake, struct fake_lane *lane)
{
	struct ring_field *fields = (void *)(lane->payload + lane->header.fields_offset);
	uint64_t side = fake->config.side;

	fields[0] = (struct ring_field){
		.name = "images",
		.dtype = 1,
		.ndim = 4,
		.shape = { fake->config.capacity, side, side, 3 },
		.strides = { (int64_t)(side * side * 3), (int64_t)(side * 3), 3, 1 },
	};
	fields[1] = (struct ring_field){
		.name = "labels",
		.dtype = 5,
		.ndim = 1,
		.shape = { fake->config.capacity },
		.strides = { 8 },
	};
	for (unsigned int i = 0; i < 2 && fake->config.on_field; i++)
		fake->config.on_field(&fields[i], i, fake->config.context);
}

static uint8_t *make_memory(uint64_t size, int *ret_fd)
{
	void *p;

	*ret_fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(*ret_fd >= 0 && ftruncate(*ret_fd, (off_t)size) == 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	MUST(p != MAP_FAILED);
	return p;
}

static void make_ring(struct fake *fake, struct fake_lane *lane)
{
	lane->id = mapping_id();
	lay_out(fake, lane);
	lane->payload = make_memory(lane->header.total_size, &lane->payload_fd);
	lane->control = make_memory(lane->header.control_size, &lane->control_fd);
	lane->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	write_fields(fake, lane);
	memcpy(lane->payload, &lane->header, sizeof(lane->header));
	if (fake->config.on_header)
		fake->config.on_header((void *)lane->payload, fake->config.context);
	fcntl(lane->payload_fd, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | 0x0010 /* FUTURE_WRITE */ | F_SEAL_SEAL);
	fcntl(lane->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (fake->config.shared_map)
		mapping_set(lane->id, lane->payload, lane->control);
}

static void free_lane(struct fake_lane *lane)
{
	uint8_t *payload;
	uint8_t *control;

	if (!lane->used)
		return;
	/* a shared mapping stays for the process's life: the client may still read it */
	if (!fake_mapping(lane->id, &payload, &control)) {
		munmap(lane->payload, lane->header.total_size);
		munmap(lane->control, lane->header.control_size);
	}
	fd_close(lane->payload_fd);
	fd_close(lane->control_fd);
	fd_close(lane->doorbell);
	*lane = (struct fake_lane){ .used = false };
}

/* ---- publishing ---- */

static void put_cursor(uint8_t ret[FAKE_CURSOR], uint64_t epoch, uint64_t step)
{
	memcpy(ret, "FAKE\1\0\0\0", 8);
	memcpy(ret + 8, &epoch, 8);
	memcpy(ret + 16, &step, 8);
}

static struct ring_words *words(struct fake_lane *lane)
{
	return (void *)(lane->payload + lane->header.words_offset);
}

static bool slot_free(struct fake_lane *lane, uint64_t n)
{
	uint32_t slots = lane->header.slots;
	const uint32_t *word;

	if (n <= slots)
		return true;
	word = (void *)(lane->control + lane->header.release_offset +
			ring_slot_of(n, slots) * lane->header.release_stride);
	return ring_load_acquire(word) == (uint32_t)(n - slots); /* E2 */
}

static void fill_places(struct fake_lane *lane, uint8_t *record, uint64_t n)
{
	for (uint32_t i = 0; i < lane->header.capacity; i++) {
		struct ring_place place = {
			.id_asked = n * 10 + i,
			.id = n * 10 + i,
			.position = n * 100 + i,
			.kind = RING_PIXELS,
			.valid = 1,
			.label = fake_label(n, i),
			.box_w = 3,
		};

		memcpy(record + lane->header.places_offset + i * lane->header.place_size, &place,
			sizeof(place));
	}
}

static void fill(struct fake *fake, struct fake_lane *lane, uint64_t n)
{
	uint32_t slot = ring_slot_of(n, lane->header.slots);
	uint8_t *data = lane->payload + lane->header.slot_offset + slot * lane->header.slot_stride;
	uint8_t *record = lane->payload + lane->header.descriptor_offset +
			  slot * lane->header.descriptor_stride;
	uint64_t labels = up(lane->header.capacity * image_bytes(fake), 64);
	bool last = lane->step + 1 == fake->config.steps;
	struct ring_descriptor d = {
		.number = n,
		.generation = lane->generation,
		.flags = last ? RING_LAST_OF_EPOCH : 0,
		.epoch = lane->epoch,
		.step = lane->step,
		.capacity = lane->header.capacity,
		.count = last ? lane->header.capacity - 1 : lane->header.capacity,
		.batches_left = fake->config.steps - lane->step - 1,
		.order_digest = n,
		.pixel_digest = n * n,
		.cursor_size = FAKE_CURSOR,
		.fields = { { 0, lane->header.capacity * image_bytes(fake) },
			{ labels, lane->header.capacity * 8 } },
	};

	memset(data, FAKE_POISON, lane->header.slot_stride);
	memset(record, FAKE_POISON, lane->header.descriptor_stride);
	put_cursor(d.cursor, last ? lane->epoch + 1 : lane->epoch, last ? 0 : lane->step + 1);
	for (uint32_t i = 0; i < lane->header.capacity; i++) {
		int64_t label = fake_label(n, i);

		memset(data + i * image_bytes(fake), fake_pixel(n, i), image_bytes(fake));
		memcpy(data + labels + i * 8, &label, 8);
	}
	if (fake->config.on_descriptor)
		fake->config.on_descriptor(&d, fake->config.context);
	memcpy(record, &d, sizeof(d));
	fill_places(lane, record, n);
	lane->epoch += last;
	lane->step = last ? 0 : lane->step + 1;
}

static void publish(struct fake *fake, struct fake_lane *lane)
{
	while (lane->published < lane->allowed && slot_free(lane, lane->published + 1)) {
		uint32_t *waiting = (void *)(lane->control + lane->header.waiting_offset);

		lane->published++;
		fill(fake, lane, lane->published);
		ring_store_seq(&words(lane)->published, (uint32_t)lane->published); /* E3 */
		if (ring_load_seq(waiting))
			ring_futex_wake(&words(lane)->published);
	}
}

/* ---- messages ---- */

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
	put_cursor(ret->cursor, lane->epoch, lane->step);
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
	make_ring(fake, lane);
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
		MUST(lane);
		stand_at(lane, seek.cursor, seek.cursor_size);
	} else {
		MUST(control_body(p, &epoch, sizeof(epoch), NULL, NULL) == 0);
		lane = lane_of(fake, session, epoch.lane);
		MUST(lane);
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
		uint32_t length = (uint32_t)snprintf(path, sizeof(path), "bee/%06u.jpg", (unsigned)id);

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
		free_lane(lane);
		fake->closed++;
	}
	fake->datasets_closed += body.dataset != 0;
	reply(session, p, &body, sizeof(body), NULL, 0);
}

static void answer(struct fake *fake, int session, const struct control_packet *p)
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

/* ---- the thread ---- */

static void drop_session(struct fake *fake, unsigned int i)
{
	for (unsigned int k = 0; k < FAKE_LANES; k++) {
		if (fake->lanes[k].used && fake->lanes[k].session == fake->sessions[i])
			free_lane(&fake->lanes[k]);
	}
	fake->sessions[i] = fd_close(fake->sessions[i]);
}

static void serve(struct fake *fake, unsigned int i)
{
	int fd = fake->sessions[i];
	int r = control_receive(fd, fake->packet, MSG_DONTWAIT);
	int handled = 0;

	if (r == -EAGAIN)
		return;
	if (r != 1) {
		drop_session(fake, i);
		return;
	}
	if (fake->config.on_packet)
		handled = fake->config.on_packet(fake, fd, fake->packet, fake->config.context);
	if (handled == 0)
		answer(fake, fd, fake->packet);
	control_packet_close(fake->packet);
	if (handled < 0)
		drop_session(fake, i);
}

static void attach(struct fake *fake)
{
	int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);

	for (unsigned int i = 0; fd >= 0 && i < FAKE_SESSIONS; i++) {
		if (fake->sessions[i] < 0) {
			fake->sessions[i] = fd;
			fake->attached++;
			return;
		}
	}
	fd_close(fd);
}

static void run_job(struct fake *fake)
{
	uint64_t value;

	if (read(fake->command, &value, sizeof(value)) < 0)
		return;
	pthread_mutex_lock(&fake->lock);
	if (fake->job)
		fake->job(fake, fake->argument);
	fake->job = NULL;
	pthread_cond_broadcast(&fake->done);
	pthread_mutex_unlock(&fake->lock);
}

static void turn(struct fake *fake)
{
	struct pollfd fds[2 + FAKE_SESSIONS + FAKE_LANES] = {
		{ .fd = fake->command, .events = POLLIN },
		{ .fd = fake->frozen ? -1 : fake->listener, .events = POLLIN },
	};

	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		fds[2 + i] = (struct pollfd){ .fd = fake->frozen ? -1 : fake->sessions[i],
			.events = POLLIN };
	for (unsigned int i = 0; i < FAKE_LANES; i++)
		fds[2 + FAKE_SESSIONS + i] = (struct pollfd){
			.fd = fake->lanes[i].used && !fake->frozen ? fake->lanes[i].doorbell : -1,
			.events = POLLIN,
		};
	poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
	if (fds[0].revents)
		run_job(fake);
	if (fake->frozen)
		return;
	if (fds[1].revents)
		attach(fake);
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++) {
		if (fds[2 + i].revents && fake->sessions[i] == fds[2 + i].fd)
			serve(fake, i);
	}
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		uint64_t rung = 0;

		if (!fake->lanes[i].used)
			continue;
		/* unlike a daemon, which leaves it to epoll's edges */
		if (read(fake->lanes[i].doorbell, &rung, sizeof(rung)) == sizeof(rung))
			fake->lanes[i].bells += rung;
		publish(fake, &fake->lanes[i]);
	}
}

static void *run(void *argument)
{
	struct fake *fake = argument;

	while (!fake->stop)
		turn(fake);
	return NULL;
}

void fake_run(struct fake *fake, void (*fn)(struct fake *fake, void *argument), void *argument)
{
	uint64_t one = 1;

	pthread_mutex_lock(&fake->lock);
	fake->job = fn;
	fake->argument = argument;
	MUST(write(fake->command, &one, sizeof(one)) == sizeof(one));
	while (fake->job)
		pthread_cond_wait(&fake->done, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

static void do_allow(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++)
		fake->lanes[i].allowed += fake->lanes[i].used ? *(uint64_t *)argument : 0;
}

void fake_allow(struct fake *fake, uint64_t batches)
{
	fake_run(fake, do_allow, &batches);
}

static void do_die(struct fake *fake, void *argument)
{
	(void)argument;
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		drop_session(fake, i);
}

void fake_die(struct fake *fake)
{
	fake_run(fake, do_die, NULL);
}

static void do_freeze(struct fake *fake, void *argument)
{
	fake->frozen = *(bool *)argument;
}

void fake_freeze(struct fake *fake, bool frozen)
{
	fake_run(fake, do_freeze, &frozen);
}

static void do_state(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct fake_lane *lane = &fake->lanes[i];

		if (!lane->used)
			continue;
		ring_store_release(&words(lane)->state, *(uint32_t *)argument); /* E4 */
		ring_futex_wake(&words(lane)->published);
	}
}

void fake_set_state(struct fake *fake, uint32_t state)
{
	fake_run(fake, do_state, &state);
}

struct event {
	uint32_t type;
	const void *body;
	size_t size;
};

static void do_event(struct fake *fake, void *argument)
{
	struct event *event = argument;

	for (unsigned int i = 0; i < FAKE_SESSIONS; i++) {
		if (fake->sessions[i] >= 0)
			control_send(fake->sessions[i], event->type, 0, event->body, event->size, NULL, 0,
				NULL, 0);
	}
}

void fake_event(struct fake *fake, uint32_t type, const void *body, size_t size)
{
	fake_run(fake, do_event, &(struct event){ .type = type, .body = body, .size = size });
}

static void do_lane_error(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct control_error *body = argument;

		if (!fake->lanes[i].used)
			continue;
		body->lane = fake->lanes[i].handle;
		control_send(fake->lanes[i].session, CONTROL_ERROR, 0, body, sizeof(*body), NULL, 0, NULL,
			0);
	}
}

void fake_lane_error(struct fake *fake, int code, const char *text)
{
	struct control_error body = { .size = sizeof(body), .code = code };

	snprintf(body.text, sizeof(body.text), "%s", text);
	fake_run(fake, do_lane_error, &body);
}

static int listen_on(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	MUST(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(listen(fd, 16) == 0);
	return fd;
}

struct fake *fake_start(const char *path, const struct fake_config *config)
{
	static unsigned int count;
	struct fake *fake = calloc(1, sizeof(*fake));

	MUST(fake);
	if (config)
		fake->config = *config;
	fake->config.slots = fake->config.slots ? fake->config.slots : 4;
	fake->config.capacity = fake->config.capacity ? fake->config.capacity : 4;
	fake->config.side = fake->config.side ? fake->config.side : 8;
	fake->config.steps = fake->config.steps ? fake->config.steps : 5;
	if (path)
		snprintf(fake->path, sizeof(fake->path), "%s", path);
	else
		snprintf(fake->path, sizeof(fake->path), "/tmp/feeder-fake-%d-%u.sock", (int)getpid(),
			__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	unlink(fake->path);
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		fake->sessions[i] = -1;
	fake->packet = calloc(1, sizeof(*fake->packet));
	fake->listener = listen_on(fake->path);
	fake->command = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&fake->lock, NULL);
	pthread_cond_init(&fake->done, NULL);
	MUST(fake->packet && pthread_create(&fake->thread, NULL, run, fake) == 0);
	return fake;
}

static void do_stop(struct fake *fake, void *argument)
{
	(void)argument;
	fake->stop = true;
}

void fake_stop(struct fake *fake)
{
	fake_run(fake, do_stop, NULL);
	pthread_join(fake->thread, NULL);
	do_die(fake, NULL);
	fd_close(fake->listener);
	fd_close(fake->command);
	unlink(fake->path);
	pthread_mutex_destroy(&fake->lock);
	pthread_cond_destroy(&fake->done);
	free(fake->packet);
	free(fake);
}
