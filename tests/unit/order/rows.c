/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order, sharding and resume as they went wrong elsewhere: each test is the condition of the
 * hazard row that it is named after (tests/hazards/README.md).
 */
#include "test.h"

#include <errno.h>

#include "oracle.h"

#define MAX_N 1024

static struct permutation *make(uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct permutation *p = NULL;

	assert_int_equal(permutation_new(&p, ORDER_TORCH, n, seed, epoch, NULL, 0, NULL), 0);
	return p;
}

/* How often each id of an epoch is delivered as valid, by all ranks from c on. */
static void count_ids(const struct shard *of, const struct permutation *order, uint64_t c,
	unsigned int times[MAX_N])
{
	struct shard s = *of;

	memset(times, 0, MAX_N * sizeof(times[0]));
	for (s.rank = 0; s.rank < s.world; s.rank++) {
		for (uint64_t step = 0; step < shard_steps(&s, c); step++) {
			for (uint32_t i = 0; i < s.batch; i++) {
				struct place p = shard_place(&s, c, step, i);

				if (p.valid)
					times[permutation_at(order, p.index)]++;
			}
		}
	}
}

static void assert_each_once(const struct shard *s, const struct permutation *order)
{
	unsigned int times[MAX_N];

	count_ids(s, order, 0, times);
	for (uint64_t id = 0; id < s->n; id++)
		assert_int_equal(times[id], 1);
}

static void c01_padding_is_flagged_and_mask_repeats_nothing(void **state)
{
	struct shard mask = { 10, 4, 0, 3, 1, ORDER_MASK, 0, 1 };
	struct shard pad = { 10, 4, 0, 3, 1, ORDER_PAD, 0, 1 };
	struct permutation *order = make(10, 0, 0);
	unsigned int invalid = 0, repeats = 0;

	(void)state;
	assert_each_once(&mask, order);
	for (mask.rank = pad.rank = 0; pad.rank < 4; mask.rank = ++pad.rank) {
		for (uint32_t i = 0; i < 3; i++) {
			invalid += !shard_place(&mask, 0, 0, i).valid;
			repeats += shard_place(&pad, 0, 0, i).position >= 10;
		}
	}
	assert_int_equal(invalid, 2); /* 4 x 3 places for 10 samples */
	assert_int_equal(repeats, 2); /* valid, and known by p >= N */
	permutation_free(order);
}

static void c02_the_union_of_valid_samples_is_the_set_in_every_world(void **state)
{
	static const uint32_t worlds[] = { 1, 2, 3, 7 };
	struct permutation *order = make(100, 0, 0);

	(void)state;
	for (int w = 0; w < 4; w++) {
		struct shard s = { 100, worlds[w], 0, 8, 1, ORDER_MASK, 0, 1 };

		assert_each_once(&s, order);
	}
	permutation_free(order);
}

static void c04_drop_and_pad_are_apart_and_their_counts_known_before(void **state)
{
	struct shard pad = { 10, 4, 0, 2, 1, ORDER_PAD, 0, 1 };
	struct shard drop = { 10, 4, 0, 2, 1, ORDER_DROP, 0, 1 };
	struct permutation *order = make(10, 0, 0);
	unsigned int padded[MAX_N], dropped[MAX_N], sum_padded = 0, sum_dropped = 0;

	(void)state;
	count_ids(&pad, order, 0, padded);
	count_ids(&drop, order, 0, dropped);
	for (int id = 0; id < 10; id++) {
		assert_in_range(padded[id], 1, 2);  /* pad repeats and never drops */
		assert_in_range(dropped[id], 0, 1); /* drop leaves out and never repeats */
		sum_padded += padded[id];
		sum_dropped += dropped[id];
	}
	assert_true(sum_padded == 4 * shard_valid(&pad, 0));
	assert_true(sum_dropped == 4 * shard_valid(&drop, 0));
	assert_int_equal(sum_padded, 12);
	assert_int_equal(sum_dropped, 8);
	permutation_free(order);
}

static void c05_the_epoch_advances_by_itself(void **state)
{
	struct shard s = { 50, 2, 0, 4, 1, ORDER_PAD, 0, 1 };
	struct cursor first = { .order = ORDER_TORCH, .seed = 3 };
	struct cursor second = cursor_after(&first, &s, shard_steps(&s, 0));
	struct permutation *a = make(50, 3, first.epoch), *b = make(50, 3, second.epoch);
	struct permutation *again = make(50, 3, 1);
	unsigned int same = 0;

	(void)state;
	assert_true(second.epoch == 1 && second.c == 0);
	for (uint64_t p = 0; p < 50; p++) {
		same += permutation_at(a, p) == permutation_at(b, p);
		assert_true(permutation_at(b, p) == permutation_at(again, p));
	}
	assert_in_range(same, 0, 10);
	permutation_free(a);
	permutation_free(b);
	permutation_free(again);
}

static void c07_tiny_sets_are_padded_by_going_round_and_none_is_an_error(void **state)
{
	static const struct shard tiny[] = { { 3, 7, 0, 1, 1, ORDER_PAD, 0, 1 },
		{ 3, 8, 0, 1, 1, ORDER_PAD, 0, 1 }, { 1, 8, 0, 4, 1, ORDER_PAD, 0, 1 } };
	struct shard none = { 0, 2, 0, 1, 1, ORDER_PAD, 0, 1 };
	char text[160] = "";

	(void)state;
	for (int t = 0; t < 3; t++) {
		struct shard s = tiny[t];
		struct permutation *order = make(s.n, 1, 0);

		assert_int_equal(shard_check(&s, text, sizeof(text)), 0);
		assert_true(shard_steps(&s, 0) == 1);
		for (s.rank = 0; s.rank < s.world; s.rank++) {
			struct place p = shard_place(&s, 0, 0, 0);
			struct oracle o;

			oracle_deal(&o, order, s.world, s.rank, s.batch, false);
			assert_true(p.valid && shard_count(&s, 0, 0) == 1);
			assert_true(o.count == 1 && permutation_at(order, p.index) == o.ids[0]);
		}
		permutation_free(order);
	}
	assert_int_equal(shard_check(&none, text, sizeof(text)), -ERANGE);
	assert_string_equal(text, "there are no samples: the order has length 0");
}

static void c08_ranks_differ_by_one_at_most_and_nothing_is_lost(void **state)
{
	struct shard s = { 19, 4, 0, 2, 1, ORDER_MASK, 0, 1 };
	struct permutation *order = make(19, 0, 0);

	(void)state;
	assert_each_once(&s, order);
	for (s.rank = 0; s.rank < 4; s.rank++)
		assert_in_range(shard_valid(&s, 0), 4, 5);
	permutation_free(order);
}

static void c09_strided_shards_do_not_overlap_and_equal_the_sampler(void **state)
{
	struct shard s = { 10, 4, 0, 3, 1, ORDER_PAD, 0, 1 };
	static const int torch[4][3] = { { 4, 3, 6 }, { 1, 9, 2 }, { 7, 0, 4 }, { 5, 8, 1 } };
	struct permutation *order = make(10, 0, 0);
	bool seen[12] = { false };

	(void)state;
	for (s.rank = 0; s.rank < 4; s.rank++) {
		for (uint32_t i = 0; i < 3; i++) {
			struct place p = shard_place(&s, 0, 0, i);

			assert_true(p.position < 12 && !seen[p.position]);
			seen[p.position] = true;
			assert_true(permutation_at(order, p.index) == (uint64_t)torch[s.rank][i]);
		}
	}
	permutation_free(order);
}

static void c10_every_epoch_is_whole_and_pads_with_its_own_first_samples(void **state)
{
	struct shard s = { 29, 3, 0, 4, 1, ORDER_MASK, 0, 1 };
	struct shard pad = { 29, 3, 2, 4, 1, ORDER_PAD, 0, 1 };
	struct cursor at = { .order = ORDER_TORCH };

	(void)state;
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		struct permutation *order = make(29, 0, at.epoch);
		struct place last = shard_place(&pad, 0, 2, 1); /* the only repeat, p = 29 */

		assert_true(at.epoch == epoch && at.c == 0);
		assert_each_once(&s, order);
		assert_true(last.valid && last.position == 29 && last.index == 0);
		at = cursor_after(&at, &s, shard_steps(&s, at.c));
		permutation_free(order);
	}
}

/* A barrier of all ranks at each step: nobody may be missing at any. */
static void c12_all_ranks_meet_at_every_step(void **state)
{
	(void)state;
	for (uint32_t tail = ORDER_PAD; tail <= ORDER_MASK; tail++) {
		struct shard s = { 9, 2, 0, 1, 1, tail, 0, 1 }; /* 5 samples and 4 */
		unsigned int arrived[8] = { 0 };
		uint64_t steps = shard_steps(&s, 0);

		for (s.rank = 0; s.rank < 2; s.rank++) {
			for (uint64_t step = 0; step < shard_steps(&s, 0); step++) {
				assert_true(shard_count(&s, 0, step) == 1);
				arrived[step]++;
			}
		}
		assert_int_equal(steps, tail == ORDER_DROP ? 4 : 5);
		for (uint64_t step = 0; step < 8; step++)
			assert_int_equal(arrived[step], step < steps ? 2 : 0);
	}
}

/* Ids of rank 0 over epochs 0 to 2, from a cursor on; returns how many. */
static uint64_t run_to_end(struct cursor at, const struct shard *s, uint64_t *ids)
{
	uint64_t count = 0;
	bool moved;

	at = cursor_settle(&at, s, &moved);
	assert_false(moved);
	while (at.epoch < 3) {
		struct permutation *order = make(s->n, at.seed, at.epoch);
		uint64_t c = at.c, steps = shard_steps(s, c);

		assert_true(steps > 0); /* no epoch is empty */
		for (uint64_t step = 0; step < steps; step++)
			for (uint32_t i = 0; i < shard_count(s, c, step); i++)
				ids[count++] =
					permutation_at(order, shard_place(s, c, step, i).index);
		at = cursor_after(&at, s, steps);
		permutation_free(order);
	}
	return count;
}

static void c22_state_after_the_last_batch_is_the_next_epochs_start(void **state)
{
	(void)state;
	for (uint32_t tail = ORDER_PAD; tail <= ORDER_MASK; tail++) {
		struct shard s = { 29, 2, 0, 4, 1, tail, 0, 1 };
		struct cursor at = { .order = ORDER_TORCH, .seed = 8 };
		uint64_t whole[MAX_N], rest[MAX_N], given = 0;
		uint64_t total = run_to_end(at, &s, whole), steps = shard_steps(&s, 0);

		assert_true(cursor_after(&at, &s, steps).epoch == 1);
		assert_true(cursor_after(&at, &s, steps).c == 0);
		for (uint64_t cut = 0; cut < 3 * steps; cut++) {
			uint64_t count = run_to_end(at, &s, rest);

			assert_true(given + count == total);
			assert_memory_equal(rest, whole + given, count * sizeof(rest[0]));
			given += shard_count(&s, at.c, 0);
			at = cursor_after(&at, &s, 1);
		}
		assert_true(at.epoch == 3 && at.c == 0 && given == total);
	}
}

static void c26_the_rest_is_dealt_in_permutation_order(void **state)
{
	struct shard four = { 60, 4, 0, 3, 1, ORDER_MASK, 0, 1 };
	struct shard three = { 60, 3, 0, 3, 1, ORDER_MASK, 0, 1 };
	struct cursor at = { .order = ORDER_TORCH };
	struct permutation *order = make(60, 0, 0);
	uint64_t c = cursor_after(&at, &four, 2).c, p = 24;

	(void)state;
	assert_true(c == 24);
	/*
	 * Going round the ranks place by place walks the permutation, from where world 4 stopped.
	 */
	for (uint64_t step = 0; step < shard_steps(&three, c); step++) {
		for (uint32_t i = 0; i < 3; i++) {
			for (three.rank = 0; three.rank < 3; three.rank++, p++) {
				struct place place = shard_place(&three, c, step, i);

				assert_true(place.position == p);
				if (place.valid)
					assert_true(permutation_at(order, place.index) ==
						    permutation_at(order, p));
			}
		}
	}
	assert_true(p == 60);
	permutation_free(order);
}

static void c27_a_global_step_is_the_same_set_in_every_world(void **state)
{
	struct permutation *order = make(1000, 0, 0);

	(void)state;
	for (uint32_t world = 1; world <= 8; world *= 2) {
		struct shard s = { 1000, world, 0, 64 / world, 1, ORDER_MASK, 0, 1 };

		assert_true(shard_steps(&s, 0) == 16);
		for (uint64_t step = 0; step < 16; step++) {
			bool expected[1000] = { false }, got[1000] = { false };

			for (uint64_t p = 64 * step; p < 64 * (step + 1) && p < 1000; p++)
				expected[permutation_at(order, p)] = true;
			for (s.rank = 0; s.rank < world; s.rank++) {
				for (uint32_t i = 0; i < s.batch; i++) {
					struct place p = shard_place(&s, 0, step, i);

					if (p.valid)
						got[permutation_at(order, p.index)] = true;
				}
			}
			assert_memory_equal(got, expected, sizeof(got));
		}
	}
	permutation_free(order);
}

/* 1,000 batches in groups of 7: the epoch's steps are whole groups, and known from its first. */
static void c31_an_epoch_can_be_whole_groups_of_accumulation(void **state)
{
	struct shard s = { 1000 * 4 * 2, 2, 0, 4, 7, ORDER_PAD, 0, 1 };

	(void)state;
	assert_true(shard_steps(&s, 0) == 1001);
	s.tail = ORDER_MASK;
	assert_true(shard_steps(&s, 0) == 1001);
	s.tail = ORDER_DROP;
	assert_true(shard_steps(&s, 0) == 994);
	s.accumulate = 1;
	assert_true(shard_steps(&s, 0) == 1000);
}

static void c32_drop_drops_whole_effective_batches(void **state)
{
	static const uint64_t steps[][2] = { { 16, 8 }, { 24, 8 }, { 31, 8 }, { 32, 16 } };
	struct shard s = { 15, 1, 0, 2, 8, ORDER_DROP, 0, 1 };
	char text[200];

	(void)state;
	assert_int_equal(shard_check(&s, text, sizeof(text)), -ERANGE);
	for (int i = 0; i < 4; i++) {
		s.n = steps[i][0];
		assert_int_equal(shard_check(&s, text, sizeof(text)), 0);
		assert_true(shard_steps(&s, 0) == steps[i][1]);
		assert_true(shard_valid(&s, 0) == 2 * steps[i][1]);
	}
}

static void c35_as_many_samples_as_promised_and_no_more(void **state)
{
	(void)state;
	for (uint32_t batch = 1; batch <= 16; batch++) {
		struct shard s = { 10, 1, 0, batch, 1, ORDER_PAD, 0, 1 };
		struct permutation *order = make(10, 0, 0);

		assert_true(shard_valid(&s, 0) == 10);
		assert_each_once(&s, order);
		permutation_free(order);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c01_padding_is_flagged_and_mask_repeats_nothing),
		cmocka_unit_test(c02_the_union_of_valid_samples_is_the_set_in_every_world),
		cmocka_unit_test(c04_drop_and_pad_are_apart_and_their_counts_known_before),
		cmocka_unit_test(c05_the_epoch_advances_by_itself),
		cmocka_unit_test(c07_tiny_sets_are_padded_by_going_round_and_none_is_an_error),
		cmocka_unit_test(c08_ranks_differ_by_one_at_most_and_nothing_is_lost),
		cmocka_unit_test(c09_strided_shards_do_not_overlap_and_equal_the_sampler),
		cmocka_unit_test(c10_every_epoch_is_whole_and_pads_with_its_own_first_samples),
		cmocka_unit_test(c12_all_ranks_meet_at_every_step),
		cmocka_unit_test(c22_state_after_the_last_batch_is_the_next_epochs_start),
		cmocka_unit_test(c26_the_rest_is_dealt_in_permutation_order),
		cmocka_unit_test(c27_a_global_step_is_the_same_set_in_every_world),
		cmocka_unit_test(c31_an_epoch_can_be_whole_groups_of_accumulation),
		cmocka_unit_test(c32_drop_drops_whole_effective_batches),
		cmocka_unit_test(c35_as_many_samples_as_promised_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
