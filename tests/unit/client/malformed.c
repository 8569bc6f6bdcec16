/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that lies. Every field of header, field list, descriptor and reply is replaced by
 * values that are known to break things; the lane is then refused, or works, and never leaves its
 * mapping (the sanitizers and the kernel watch).
 */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t values[] = { 0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 4096, 65535, 0x7fffffff,
	0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
	0xfffffffffffff000, 0xffffffffffffffff };

struct mutation {
	size_t offset;
	size_t size;
	uint64_t value;
	unsigned int field; /* of on_field */
};

static void put(void *record, const struct mutation *m)
{
	memcpy((uint8_t *)record + m->offset, &m->value, m->size);
}

static void bend_header(struct ring_header *header, void *context)
{
	put(header, context);
}

static void bend_field(struct ring_field *field, unsigned int i, void *context)
{
	const struct mutation *m = context;

	if (i == m->field)
		put(field, m);
}

static void bend_descriptor(struct ring_descriptor *descriptor, void *context)
{
	put(descriptor, context);
}

static void bend_reply(struct control_lane *reply, void *context)
{
	put(reply, context);
}

static void touch(const void *data, uint64_t size)
{
	const volatile uint8_t *p = data;

	for (uint64_t i = 0; i < size; i++)
		(void)p[i];
}

/* Reads all that the client says may be read. */
static void read_batch(struct feeder_lane *lane, const struct feeder_batch *batch)
{
	const void *data = NULL;
	uint64_t bytes = 0;
	struct feeder_place place;

	touch(batch->images, batch->images_bytes);
	touch(batch->labels, batch->capacity * 8);
	for (uint32_t i = 0; i < batch->capacity; i++) {
		assert_int_equal(feeder_batch_place(lane, batch->number, i, &place), 0);
		touch((const uint8_t *)batch->images + i * batch->image_stride, 1);
	}
	if (feeder_batch_field(lane, batch->number, "labels", &data, &bytes) == 0)
		touch(data, bytes);
}

/* Whether the lane opened. */
static bool drive(struct feeder *f)
{
	struct feeder_batch batch = { .size = sizeof(batch) };
	struct feeder_lane_config config;
	struct feeder_lane *lane = NULL;
	char path[64];
	int r;

	feeder_lane_config_init(&config);
	config.timeout_ms = 2000;
	r = feeder_lane_open(&lane, f, "/tmp", &config);
	if (r < 0) {
		assert_int_not_equal(feeder_last_error()[0], '\0');
		assert_int_not_equal(r, -EFAULT);
		return false;
	}
	for (unsigned int i = 0; i < 6; i++) {
		r = feeder_next(lane, &batch, 2);
		if (r < 0)
			break;
		read_batch(lane, &batch);
		assert_int_equal(feeder_release(lane, batch.number), 0);
	}
	feeder_set_epoch(lane, 3);
	if (feeder_next(lane, &batch, 2) == 0)
		read_batch(lane, &batch);
	feeder_sample_path(lane, 0, path, sizeof(path));
	feeder_lane_close(lane);
	return true;
}

enum target { HEADER, FIELD, DESCRIPTOR, REPLY };

static unsigned int sweep(enum target target, size_t offset, size_t size, unsigned int field)
{
	struct mutation m = { .offset = offset, .size = size, .field = field };
	struct fake_config config = { .context = &m };
	struct fixture x;
	unsigned int refused = 0;

	config.on_header = target == HEADER ? bend_header : NULL;
	config.on_field = target == FIELD ? bend_field : NULL;
	config.on_descriptor = target == DESCRIPTOR ? bend_descriptor : NULL;
	config.on_reply = target == REPLY ? bend_reply : NULL;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		m.value = values[i];
		fixture_connect(&x, &config);
		refused += !drive(x.f);
		fixture_stop(&x);
	}
	return refused;
}

#define SWEEP(target, type, member) \
	sweep(target, offsetof(struct type, member), sizeof(((struct type *)0)->member), 0)

static void every_header_field_is_checked(void **state)
{
	const unsigned int all = sizeof(values) / sizeof(values[0]);

	(void)state;
	assert_int_equal(SWEEP(HEADER, ring_header, magic), all);
	assert_int_equal(SWEEP(HEADER, ring_header, total_size), all);
	assert_true(SWEEP(HEADER, ring_header, major) > 0);
	SWEEP(HEADER, ring_header, minor);
	assert_true(SWEEP(HEADER, ring_header, header_size) > 0);
	SWEEP(HEADER, ring_header, flags);
	assert_true(SWEEP(HEADER, ring_header, slots) > 0);
	assert_true(SWEEP(HEADER, ring_header, capacity) > 0);
	assert_true(SWEEP(HEADER, ring_header, field_count) > 0);
	assert_true(SWEEP(HEADER, ring_header, field_size) > 0);
	assert_true(SWEEP(HEADER, ring_header, place_size) > 0);
	assert_true(SWEEP(HEADER, ring_header, fields_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, words_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, descriptor_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, descriptor_stride) > 0);
	assert_true(SWEEP(HEADER, ring_header, places_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, slot_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, slot_stride) > 0);
	assert_true(SWEEP(HEADER, ring_header, parcel_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, parcel_size) > 0);
	assert_true(SWEEP(HEADER, ring_header, control_size) > 0);
	assert_true(SWEEP(HEADER, ring_header, waiting_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, telemetry_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, release_offset) > 0);
	assert_true(SWEEP(HEADER, ring_header, release_stride) > 0);
}

static void put_words_behind_the_end(struct ring_header *header, void *context)
{
	header->release_stride = *(uint32_t *)context;
	header->release_offset = header->control_size;
}

/* Words without a distance between them take no room, and may still lie behind the end. */
static void release_words_without_a_stride_are_refused(void **state)
{
	uint32_t stride = 0;
	struct fixture x;

	(void)state;
	fixture_connect(&x,
		&(struct fake_config){ .on_header = put_words_behind_the_end, .context = &stride });
	assert_false(drive(x.f));
	assert_error_says("control words");
	fixture_stop(&x);
}

static void every_field_record_is_checked(void **state)
{
	(void)state;
	for (unsigned int field = 0; field < 2; field++) {
		assert_true(sweep(FIELD, offsetof(struct ring_field, name), 8, field) > 0);
		assert_true(sweep(FIELD, offsetof(struct ring_field, dtype), 4, field) > 0);
		assert_true(sweep(FIELD, offsetof(struct ring_field, ndim), 4, field) > 0);
		assert_true(sweep(FIELD, offsetof(struct ring_field, shape), 8, field) > 0);
		sweep(FIELD, offsetof(struct ring_field, shape) + 8, 8, field);
		assert_true(sweep(FIELD, offsetof(struct ring_field, strides), 8, field) > 0);
		assert_true(sweep(FIELD, offsetof(struct ring_field, ragged), 4, field) > 0);
	}
}

static void every_descriptor_word_is_checked(void **state)
{
	(void)state;
	SWEEP(DESCRIPTOR, ring_descriptor, number);
	SWEEP(DESCRIPTOR, ring_descriptor, generation);
	SWEEP(DESCRIPTOR, ring_descriptor, flags);
	SWEEP(DESCRIPTOR, ring_descriptor, epoch);
	SWEEP(DESCRIPTOR, ring_descriptor, capacity);
	SWEEP(DESCRIPTOR, ring_descriptor, count);
	SWEEP(DESCRIPTOR, ring_descriptor, cursor_size);
	for (size_t i = 0; i < 4; i++)
		sweep(DESCRIPTOR, offsetof(struct ring_descriptor, fields) + i * 8, 8, 0);
}

static void every_word_of_a_reply_is_checked(void **state)
{
	(void)state;
	SWEEP(REPLY, control_lane, lane);
	SWEEP(REPLY, control_lane, generation);
	SWEEP(REPLY, control_lane, first);
	assert_true(SWEEP(REPLY, control_lane, cursor_size) > 0);
	SWEEP(REPLY, control_lane, moved);
}

static void a_bent_descriptor_is_an_error_with_its_batch(void **state)
{
	struct mutation m = {
		.offset = offsetof(struct ring_descriptor, fields), .size = 8, .value = 1 << 20
	};
	struct fixture x;

	(void)state;
	fixture_start(
		&x, &(struct fake_config){ .on_descriptor = bend_descriptor, .context = &m }, 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPROTO);
		assert_string_equal(
			feeder_last_error(), "the daemon's ring is malformed: images of batch 1");
	}
	fixture_stop(&x);
}

static void jump(struct fake *fake, void *argument)
{
	struct fake_lane *lane = &fake->lanes[0];
	struct ring_words *words = (void *)(lane->payload + lane->header.words_offset);

	ring_store_seq(&words->published, *(uint32_t *)argument);
}

static void a_counter_that_jumps_is_an_error(void **state)
{
	uint32_t far = 5;
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_run(x.fake, jump, &far);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPROTO);
	assert_error_says("batch 5 is published while 1 is due");
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_header_field_is_checked),
		cmocka_unit_test(release_words_without_a_stride_are_refused),
		cmocka_unit_test(every_field_record_is_checked),
		cmocka_unit_test(every_descriptor_word_is_checked),
		cmocka_unit_test(every_word_of_a_reply_is_checked),
		cmocka_unit_test(a_bent_descriptor_is_an_error_with_its_batch),
		cmocka_unit_test(a_counter_that_jumps_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
