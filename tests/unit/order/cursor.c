/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors: their bytes, what is refused, and where they stand after every cut. */
#include "test.h"

#include <errno.h>

static struct cursor example(void)
{
	struct cursor cursor = {
		.order = ORDER_TORCH, .seed = 0x1122334455667788, .epoch = 3, .c = 4096
	};

	for (int i = 0; i < 16; i++)
		cursor.fingerprint[i] = (uint8_t)(0xa0 + i);
	return cursor;
}

/* Written by Python's struct and xxhash modules from protocol/order.md. */
static const uint8_t example_bytes[CURSOR_SIZE] = { 0x01, 0x00, 0x00, 0x00, 0x8c, 0x91, 0x1d, 0x22,
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae,
	0xaf, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x03, 0, 0,
	0, 0, 0, 0, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

static void assert_same(const struct cursor *a, const struct cursor *b)
{
	assert_memory_equal(a->fingerprint, b->fingerprint, sizeof(a->fingerprint));
	assert_int_equal(a->order, b->order);
	assert_true(a->seed == b->seed);
	assert_true(a->epoch == b->epoch);
	assert_true(a->c == b->c);
}

static void bytes_are_as_documented(void **state)
{
	struct cursor cursor = example();
	uint8_t bytes[CURSOR_SIZE];

	(void)state;
	memset(bytes, 0xee, sizeof(bytes));
	cursor_encode(&cursor, bytes);
	assert_memory_equal(bytes, example_bytes, CURSOR_SIZE);
}

static void a_cursor_survives_its_bytes(void **state)
{
	static const uint64_t values[] = { 0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX };
	char text[160] = "";

	(void)state;
	for (int i = 0; i < 6 * 125; i++) {
		struct cursor before = example(), after;
		uint8_t bytes[CURSOR_SIZE];

		before.order = (uint32_t)(ORDER_TORCH + i / 125);
		before.seed = values[i % 5];
		before.epoch = values[i / 5 % 5];
		before.c = values[i / 25 % 5];
		memset(&after, 0xee, sizeof(after));
		cursor_encode(&before, bytes);
		assert_int_equal(cursor_decode(&after, bytes, CURSOR_SIZE, text, sizeof(text)), 0);
		assert_same(&after, &before);
	}
	assert_string_equal(text, "");
}

static void assert_refused(const void *bytes, size_t size, const char *sentence)
{
	struct cursor untouched = example(), cursor = example();
	char text[160] = "";

	assert_int_equal(cursor_decode(&cursor, bytes, size, text, sizeof(text)), -EBADMSG);
	assert_string_equal(text, sentence);
	assert_same(&cursor, &untouched);
}

/* Bytes with a right check word and one wrong field: made by hand, as another program would. */
static void refusals_name_what_is_wrong(void **state)
{
	struct cursor cursor = example();
	uint8_t bytes[CURSOR_SIZE + 8] = { 0 };

	(void)state;
	cursor_encode(&cursor, bytes);
	assert_refused(NULL, 0, "the cursor has 0 bytes, too few for a version");
	assert_refused(bytes, 3, "the cursor has 3 bytes, too few for a version");
	assert_refused(bytes, 63, "the cursor has 63 bytes, version 1 has 64");
	assert_refused(bytes, 72, "the cursor has 72 bytes, version 1 has 64");
	bytes[0] = 2;
	assert_refused(bytes, 72, "the cursor is of version 2, this feeder knows version 1");
	bytes[0] = 1;
	bytes[48] ^= 1;
	assert_refused(
		bytes, 64, "the cursor is damaged: check word 221d918c, its bytes give 892b07be");
	cursor.order = 7;
	cursor_encode(&cursor, bytes);
	assert_refused(bytes, 64, "the cursor has the unknown order 7");
	cursor.order = 0xfffffffe;
	cursor_encode(&cursor, bytes);
	assert_refused(bytes, 64, "the cursor has the unknown order 4294967294");
}

/* The check words are those of example_bytes with one of the spare bytes set. */
static void spare_bytes_must_be_zero(void **state)
{
	uint8_t bytes[CURSOR_SIZE];

	(void)state;
	memcpy(bytes, example_bytes, CURSOR_SIZE);
	bytes[28] = 1;
	memcpy(bytes + 4, "\x11\x18\x87\x1d", 4);
	assert_refused(bytes, CURSOR_SIZE, "the cursor's spare bytes are not zero");
	memcpy(bytes, example_bytes, CURSOR_SIZE);
	bytes[63] = 1;
	memcpy(bytes + 4, "\x01\x2e\x59\xa1", 4);
	assert_refused(bytes, CURSOR_SIZE, "the cursor's spare bytes are not zero");
}

static void every_flipped_bit_is_noticed(void **state)
{
	(void)state;
	for (int bit = 0; bit < 8 * CURSOR_SIZE; bit++) {
		uint8_t bytes[CURSOR_SIZE];
		struct cursor cursor;
		char text[160];

		memcpy(bytes, example_bytes, CURSOR_SIZE);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(
			cursor_decode(&cursor, bytes, CURSOR_SIZE, text, sizeof(text)), -EBADMSG);
	}
}

static struct cursor at(uint64_t epoch, uint64_t c)
{
	struct cursor cursor = example();

	cursor.epoch = epoch;
	cursor.c = c;
	return cursor;
}

/*
 * Every cut of every small lane: cursor_after moves by whole steps of all ranks, from the same
 * cursor to the same bytes on each of them, and is the next epoch's start after the last step.
 */
static void after_moves_by_whole_steps_of_all_ranks(void **state)
{
	(void)state;
	for (uint32_t mix = 0; mix < 30 * 4 * 4 * 3 * 3; mix++) {
		struct shard s = { 1 + mix % 30, 1 + mix / 30 % 4, 0, 1 + mix / 120 % 4,
			1 + mix / 480 % 3, ORDER_PAD + mix / 1440, 0, 1 };
		struct cursor start = at(7, mix % 5 < s.n ? mix % 5 : 0);
		uint64_t steps = shard_steps(&s, start.c);

		for (uint64_t cut = 0; cut <= steps + 2; cut++) {
			struct cursor expected = at(7, start.c + cut * s.batch * s.world);
			struct cursor after;

			if (cut > 0 && cut >= steps)
				expected = at(8, 0);
			for (s.rank = 0; s.rank < s.world; s.rank++) {
				after = cursor_after(&start, &s, cut);
				assert_same(&after, &expected);
			}
		}
	}
}

/* One step after another is the same as many at once, wherever the lane is opened anew. */
static void after_is_the_same_in_one_go_or_reopened_at_each_group(void **state)
{
	(void)state;
	for (uint32_t mix = 0; mix < 30 * 3 * 3 * 3 * 3; mix++) {
		struct shard s = { 1 + mix % 30, 1 + mix / 30 % 3, 0, 1 + mix / 90 % 3,
			1 + mix / 270 % 3, ORDER_PAD + mix / 810, 0, 1 };
		uint64_t steps = shard_steps(&s, 0);
		struct cursor start = at(2, 0), walked = start;

		for (uint64_t cut = 0; cut < steps; cut += s.accumulate) {
			struct cursor direct = cursor_after(&start, &s, cut);
			bool moved;
			struct cursor settled = cursor_settle(&walked, &s, &moved);

			assert_same(&walked, &direct);
			assert_false(moved);
			assert_same(&settled, &walked);
			assert_true(shard_steps(&s, walked.c) == steps - cut);
			walked = cursor_after(&walked, &s, s.accumulate);
		}
		if (steps > 0)
			assert_true(walked.epoch == 3 && walked.c == 0);
	}
}

static void settle_goes_on_to_the_next_epoch_where_nothing_is_left(void **state)
{
	(void)state;
	for (uint32_t mix = 0; mix < 30 * 4 * 4 * 3 * 3; mix++) {
		struct shard s = { 1 + mix % 30, 1 + mix / 30 % 4, 0, 1 + mix / 120 % 4,
			1 + mix / 480 % 3, ORDER_PAD + mix / 1440, 0, 1 };
		uint64_t group = (uint64_t)s.world * s.batch * s.accumulate;

		for (uint64_t c = 0; c <= s.n + 2; c++) {
			bool nothing = s.tail == ORDER_DROP ? c + group > s.n : c >= s.n;
			struct cursor before = at(4, c);
			struct cursor expected = c > 0 && nothing ? at(5, 0) : before;
			bool moved = !nothing;
			struct cursor after = cursor_settle(&before, &s, &moved);

			assert_same(&after, &expected);
			assert_int_equal(moved, c > 0 && nothing);
		}
	}
}

static void a_hostile_c_does_no_harm(void **state)
{
	struct shard s = { 1000, 3, 1, 7, 2, ORDER_PAD, 0, 1 };
	struct cursor far = at(1, UINT64_MAX), next = at(2, 0);
	struct cursor near = at(1, 999);
	bool moved;
	struct cursor settled = cursor_settle(&far, &s, &moved);
	struct cursor after = cursor_after(&far, &s, 5);

	(void)state;
	assert_true(moved);
	assert_same(&settled, &next);
	assert_same(&after, &next);
	after = cursor_after(&near, &s, UINT64_MAX);
	assert_same(&after, &next);
	assert_true(shard_steps(&s, UINT64_MAX) == 0);
	assert_true(shard_valid(&s, UINT64_MAX) == 0);
	assert_int_equal(shard_count(&s, UINT64_MAX, 0), 7);
	s.accumulate = 1;
	assert_int_equal(shard_count(&s, UINT64_MAX, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_as_documented),
		cmocka_unit_test(a_cursor_survives_its_bytes),
		cmocka_unit_test(refusals_name_what_is_wrong),
		cmocka_unit_test(spare_bytes_must_be_zero),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(after_moves_by_whole_steps_of_all_ranks),
		cmocka_unit_test(after_is_the_same_in_one_go_or_reopened_at_each_group),
		cmocka_unit_test(settle_goes_on_to_the_next_epoch_where_nothing_is_left),
		cmocka_unit_test(a_hostile_c_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
