/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfeeder against a hostile daemon: the fake daemon of the client's unit tests, whose rings and
 * answers the input bends.
 *
 * The input: a byte that chooses what the client does, then patches: where u8, at u16, count u8,
 * bytes. A patch xors its bytes into a header, a field, a reply or a descriptor, changes a word of
 * the running ring, or stands in for an answer. Whatever comes, calls end with 0 or an error that
 * has a sentence, and what a batch points at lies in the ring and can be read.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clients/c/client.h"
#include "fake-daemon.h"
#include "fake-parts.h"
#include "fuzz.h"

#define PATCHES_MOST 32
#define WAIT_MS      10

enum where {
	IN_HEADER,
	IN_IMAGES,
	IN_LABELS,
	IN_REPLY,
	IN_DESCRIPTOR, /* of the batches with number mod 4 = the high bits of `at` */
	IN_WORDS,      /* published and state, after the first batch */
	FOR_ANSWER,    /* to the request whose number is the high bits of `at` */
	WHERES
};

struct patch {
	enum where where;
	unsigned int at;
	size_t count;
	const uint8_t *bytes;
};

/* Constant while the fake runs on it: set by fake_run. */
struct script {
	struct patch patches[PATCHES_MOST];
	unsigned int count;
	unsigned int requests; /* so far; the fake's thread */
};

static struct script script;
static struct fake *fake;

/* ---- the daemon's side ---- */

static void bend(enum where where, unsigned int high, void *to, size_t size)
{
	for (unsigned int i = 0; i < script.count; i++) {
		const struct patch *p = &script.patches[i];

		if (p->where != where || p->at >> 14 != high)
			continue;
		for (size_t k = 0; k < p->count; k++)
			((uint8_t *)to)[((p->at & 0x3fff) + k) % size] ^= p->bytes[k];
	}
}

static void on_header(struct ring_header *header, void *context)
{
	(void)context;
	bend(IN_HEADER, 0, header, sizeof(*header));
}

static void on_field(struct ring_field *field, unsigned int i, void *context)
{
	(void)context;
	bend(i == 0 ? IN_IMAGES : IN_LABELS, 0, field, sizeof(*field));
}

static void on_reply(struct control_lane *reply, void *context)
{
	(void)context;
	bend(IN_REPLY, 0, reply, sizeof(*reply));
}

static void on_descriptor(struct ring_descriptor *d, void *context)
{
	(void)context;
	bend(IN_DESCRIPTOR, d->number & 3, d, sizeof(*d));
}

/* The patch's bytes as the body: of the reply, of an error, of an event before the answer. */
static int on_packet(struct fake *f, int fd, const struct control_packet *packet, void *context)
{
	unsigned int request = script.requests++;

	(void)f;
	(void)context;
	for (unsigned int i = 0; i < script.count; i++) {
		const struct patch *p = &script.patches[i];
		uint32_t type = packet->header.type | CONTROL_REPLY, serial = packet->header.serial;

		if (p->where != FOR_ANSWER || p->at >> 8 != request)
			continue;
		if ((p->at & 7) == 7)
			return -1;
		if (p->at & 1)
			type = CONTROL_ERROR + (p->at >> 4 & 3);
		if (p->at & 2)
			serial = 0;
		control_send(fd, type, serial, p->bytes, p->count, NULL, 0, &fd, p->at >> 3 & 1);
		if (serial != 0)
			return 1;
	}
	return 0;
}

static void take_script(struct fake *f, void *argument)
{
	(void)f;
	script = *(const struct script *)argument;
}

static void bend_words(struct fake *f, void *argument)
{
	(void)argument;
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct fake_lane *lane = &f->lanes[i];
		uint32_t words[2];

		if (!lane->used)
			continue;
		words[0] = fake_words(lane)->published;
		words[1] = fake_words(lane)->state;
		bend(IN_WORDS, 0, words, sizeof(words));
		ring_store_seq(&fake_words(lane)->published, words[0]); /* E3 */
		ring_store_release(&fake_words(lane)->state, words[1]); /* E4 */
	}
}

/* ---- the client's side ---- */

static int checked(int r)
{
	REQUIRE(r >= 0 || feeder_last_error()[0]);
	return r;
}

static void must_lie_in(const struct feeder_lane *lane, const void *p, uint64_t bytes)
{
	uintptr_t at = (uintptr_t)p, from = (uintptr_t)lane->map.payload;
	uint64_t total = lane->map.header.total_size;
	const volatile uint8_t *read = p;

	REQUIRE(at >= from && bytes <= total && at - from <= total - bytes);
	if (bytes > 0)
		REQUIRE(read[0] + read[bytes / 2] + read[bytes - 1] >= 0);
}

static void use_batch(struct feeder_lane *lane, const struct feeder_batch *batch)
{
	static const char *const names[] = { "images", "labels", "boxes" };
	const void *data = NULL;
	uint64_t bytes = 0;
	struct feeder_place place;

	REQUIRE(batch->count <= batch->capacity);
	must_lie_in(lane, batch->images, batch->images_bytes);
	must_lie_in(lane, batch->labels, batch->capacity * sizeof(int64_t));
	for (uint32_t i = 0; i < batch->capacity && i < 8; i++) {
		must_lie_in(lane, (const uint8_t *)batch->images + i * batch->image_stride,
			lane->image_bytes);
		REQUIRE(checked(feeder_batch_place(lane, batch->number, i, &place)) == 0);
	}
	for (int i = 0; i < 3; i++) {
		if (checked(feeder_batch_field(lane, batch->number, names[i], &data, &bytes)) == 0)
			must_lie_in(lane, data, bytes);
	}
}

static void drain(struct feeder_lane *lane, unsigned int deeds)
{
	struct feeder_batch batch = { .size = sizeof(batch) };
	uint64_t held = 0;

	for (int i = 0; i < 7; i++) {
		if (checked(feeder_next(lane, &batch, WAIT_MS)) < 0)
			break;
		use_batch(lane, &batch);
		if (i == 0)
			fake_run(fake, bend_words, NULL);
		if ((deeds & 1) && i == 2)
			held = batch.number;
		else
			REQUIRE(checked(feeder_release(lane, batch.number)) == 0);
	}
	if (held)
		REQUIRE(checked(feeder_release(lane, held)) == 0);
}

static void move(struct feeder_lane *lane, unsigned int deeds)
{
	uint8_t cursor[FEEDER_CURSOR_MAX];
	int size = checked(feeder_cursor(lane, cursor, sizeof(cursor)));

	if (size >= 0 && (deeds & 2))
		checked(feeder_seek(lane, cursor, (size_t)size));
	if (deeds & 4)
		checked(feeder_set_epoch(lane, 3));
	drain(lane, deeds);
}

static void ask(struct feeder *f, struct feeder_lane *lane, unsigned int deeds)
{
	struct feeder_lane_info info = { .size = sizeof(info) };
	char path[128];
	int64_t label;
	int fd;

	REQUIRE(checked(feeder_lane_info(lane, &info)) == 0);
	REQUIRE(strlen(info.format) < 16);
	for (uint32_t i = 0; i < 4; i++) {
		const char *name = feeder_class_name(lane, i);

		REQUIRE(!name || strlen(name) < 1 << 20);
	}
	if (deeds & 8) {
		int r = checked(feeder_sample_path(lane, 1, path, sizeof(path)));

		REQUIRE(r < 0 || strlen(path) == (size_t)r);
		checked(feeder_sample_label(lane, 2, &label));
	}
	if ((deeds & 16) && checked(feeder_stats(f, &fd)) == 0)
		close(fd);
}

static void connect_and_use(unsigned int deeds)
{
	struct feeder_connect_options options;
	struct feeder_lane_config config;
	struct feeder_lane *lane;
	struct feeder *f;

	feeder_connect_options_init(&options);
	options.socket = fake->path;
	options.job = "fuzz";
	options.timeout_ms = WAIT_MS * 10;
	if (checked(feeder_connect(&f, &options)) < 0)
		return;
	feeder_lane_config_init(&config);
	config.batch_size = 4;
	config.timeout_ms = WAIT_MS * 10;
	if (checked(feeder_lane_open(&lane, f, "/tmp", &config)) == 0) {
		ask(f, lane, deeds);
		drain(lane, deeds);
		move(lane, deeds);
		if (deeds & 32)
			feeder_lane_close(lane);
	}
	feeder_disconnect(f);
}

static void end(void)
{
	fake_stop(fake);
}

static void start(void)
{
	static const struct fake_config config = {
		.on_packet = on_packet,
		.on_header = on_header,
		.on_field = on_field,
		.on_reply = on_reply,
		.on_descriptor = on_descriptor,
	};
	char path[108];

	snprintf(path, sizeof(path), "%.80s/socket", fuzz_directory());
	fake = fake_start(path, &config);
	atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_copy(data, size);
	struct input in = { copy, size };
	struct script next = { .count = 0 };
	unsigned int deeds = input_u8(&in);
	int before;

	if (!fake)
		start();
	while (in.left > 0 && next.count < PATCHES_MOST) {
		struct patch *p = &next.patches[next.count++];

		p->where = input_u8(&in) % WHERES;
		p->at = input_u16(&in);
		p->count = input_u8(&in);
		p->bytes = input_take(&in, p->count, &p->count);
	}
	fake_run(fake, take_script, &next);
	before = fuzz_lowest_fd();
	connect_and_use(deeds);
	fake_die(fake); /* before the patches go */
	REQUIRE(fuzz_lowest_fd() == before);
	free(copy);
	return 0;
}
