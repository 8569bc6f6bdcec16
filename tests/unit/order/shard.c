/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dealing, over every small N × W × B × K × tail: what the ranks get together is counted position
 * by position, and compared with what protocol/order.md promises. FEEDER_LONG=1 sweeps N to 200,
 * W to 17 and B to 8, and deals the rest to every other world and batch.
 */
#include "test.h"

#include <errno.h>

#include "oracle.h"

#define POSITIONS_MAX 2048

static const char *describe(const struct shard *s, uint64_t c)
{
	static char text[160];

	snprintf(text, sizeof(text),
		"N %" PRIu64 " W %u rank %u B %u K %u %s part %u of %u c %" PRIu64, s->n, s->world,
		s->rank, s->batch, s->accumulate, order_tail_name((int)s->tail), s->part, s->parts,
		c);
	return text;
}

static void expect(bool holds, const struct shard *s, uint64_t c, const char *what)
{
	if (!holds)
		fail_msg("%s: %s", describe(s, c), what);
}

/* Calls check for every lane of the sweep, as rank 0 with the whole batch. */
static void sweep(void (*check)(const struct shard *s), uint64_t n_short, uint64_t n_long)
{
	uint64_t n_max = long_form() ? n_long : n_short;
	uint32_t world_max = long_form() ? 17 : 9, batch_max = long_form() ? 8 : 5;
	struct shard s = { .parts = 1 };

	for (s.n = 1; s.n <= n_max; s.n++)
		for (s.world = 1; s.world <= world_max; s.world++)
			for (s.batch = 1; s.batch <= batch_max; s.batch++)
				for (s.accumulate = 1; s.accumulate <= 3; s.accumulate++)
					for (s.tail = ORDER_PAD; s.tail <= ORDER_MASK; s.tail++)
						check(&s);
}

/* Counts, at each position, the places of all ranks in one step; valid ones in valid too. */
static void deal_step(
	const struct shard *of, uint64_t c, uint64_t step, uint8_t *all, uint8_t *valid)
{
	struct shard s = *of;

	for (s.rank = 0; s.rank < s.world; s.rank++) {
		for (uint32_t i = 0; i < s.batch; i++) {
			struct place p = shard_place(&s, c, step, i);

			expect(p.position < POSITIONS_MAX, &s, c, "position out of bounds");
			expect(p.index == p.position % s.n, &s, c, "index is not p mod N");
			all[p.position]++;
			valid[p.position] += p.valid;
		}
	}
}

/* The formulas of protocol/order.md, once more and in other words: by counting up. */
static uint64_t steps_by_counting(const struct shard *s, uint64_t c)
{
	uint64_t group = (uint64_t)s->world * s->batch * s->accumulate, steps = 0;

	for (; c < s->n && (s->tail != ORDER_DROP || c + group <= s->n); c += group)
		steps += s->accumulate;
	return steps;
}

/* First position from c on that is not valid. */
static uint64_t valid_end(const struct shard *s, uint64_t c, uint64_t steps)
{
	uint64_t end = c;

	if (s->tail == ORDER_PAD && s->accumulate == 1) {
		while (end < s->n)
			end += s->world;
		return end;
	}
	end = c + steps * s->batch * s->world;
	return s->tail == ORDER_MASK && end > s->n ? s->n : end;
}

static void check_dealing_from(const struct shard *s, uint64_t c)
{
	static uint8_t all[POSITIONS_MAX], valid[POSITIONS_MAX];
	uint64_t steps = shard_steps(s, c), block = (uint64_t)s->batch * s->world;
	uint64_t end = c + steps * block, valid_to;

	expect(steps == steps_by_counting(s, c), s, c, "steps");
	memset(all, 0, sizeof(all));
	memset(valid, 0, sizeof(valid));
	for (uint64_t step = 0; step < steps; step++) {
		uint64_t done = c + (step + 1) * block;

		deal_step(s, c, step, all, valid);
		/* What is consumed after any step is a prefix: no gap, and nothing beyond. */
		for (uint64_t p = done - block; p < done; p++)
			expect(all[p] == 1, s, c, "a position of the step's block not once");
		expect(all[done] == 0, s, c, "a position beyond the block");
	}
	for (uint64_t p = 0; p < POSITIONS_MAX; p++)
		expect(all[p] == (p >= c && p < end), s, c, "dealt positions are no interval");
	valid_to = steps > 0 ? valid_end(s, c, steps) : c;
	for (uint64_t p = 0; p < POSITIONS_MAX; p++)
		expect(valid[p] == (p >= c && p < valid_to), s, c, "valid positions");
	if (s->tail != ORDER_DROP)
		expect(steps > 0 && valid_to >= s->n, s, c, "a sample of the epoch is missing");
}

static void check_dealing(const struct shard *s)
{
	check_dealing_from(s, 0);
	if (s->n > 1)
		check_dealing_from(s, s->n / 2);
	if (s->n > 3)
		check_dealing_from(s, s->n - 3);
}

static void ranks_are_disjoint_covering_and_prefixes(void **state)
{
	(void)state;
	sweep(check_dealing, 60, 200);
}

/*
 * Every rank alone: equal steps, count and valid places agree, short batches are short at the
 * end.
 */
static void check_counts(const struct shard *of)
{
	struct shard s = *of;
	uint64_t steps = shard_steps(&s, 0);

	for (s.rank = 0; s.rank < s.world; s.rank++) {
		uint64_t valid = 0;

		expect(shard_steps(&s, 0) == steps, &s, 0, "steps differ between ranks");
		for (uint64_t step = 0; step < steps; step++) {
			uint32_t count = shard_count(&s, 0, step);

			expect(count > 0 && count <= s.batch, &s, 0, "count");
			if (s.tail != ORDER_PAD || s.accumulate > 1 || step + 1 < steps)
				expect(count == s.batch, &s, 0, "a short batch before the last");
			for (uint32_t i = 0; i < s.batch; i++) {
				struct place p = shard_place(&s, 0, step, i);

				valid += p.valid;
				if (s.tail != ORDER_MASK)
					expect(p.valid == (i < count), &s, 0, "valid and count");
			}
		}
		expect(shard_valid(&s, 0) == valid, &s, 0, "shard_valid");
	}
}

static void ranks_have_equal_steps_and_the_promised_places(void **state)
{
	(void)state;
	sweep(check_counts, 60, 200);
}

/* After `done` positions another lane takes over: it must give what is left and nothing else. */
static void check_rest(const struct shard *s, uint64_t c, uint32_t world, uint32_t batch)
{
	static uint8_t all[POSITIONS_MAX], valid[POSITIONS_MAX];
	struct shard other = *s;
	uint64_t steps, end;

	other.world = world;
	other.batch = batch;
	steps = shard_steps(&other, c);
	end = s->tail == ORDER_DROP ? c + steps * batch * world : s->n;
	memset(all, 0, sizeof(all));
	memset(valid, 0, sizeof(valid));
	for (uint64_t step = 0; step < steps; step++)
		deal_step(&other, c, step, all, valid);
	for (uint64_t p = 0; p < s->n; p++)
		expect(valid[p] == (p >= c && p < end), &other, c,
			"the rest is not the unseen rest");
	if (s->tail == ORDER_DROP)
		expect(s->n - end < (uint64_t)world * batch * s->accumulate, &other, c,
			"drop left out a whole group");
}

static void check_redeal(const struct shard *s)
{
	static const uint32_t others[][2] = { { 1, 1 }, { 2, 3 }, { 3, 2 }, { 7, 4 } };
	const struct cursor start = { .order = ORDER_TORCH, .epoch = 1 };
	uint64_t steps = shard_steps(s, 0);

	for (uint64_t cut = 1; cut < steps; cut++) {
		uint64_t c = cursor_after(&start, s, cut).c;

		expect(c == cut * s->batch * s->world, s, 0, "c after the cut");
		if (c >= s->n)
			break; /* all has been seen: the cursor settles at the next epoch */
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			check_rest(s, c, others[i][0], others[i][1]);
		if (!long_form() || s->n > 60)
			continue;
		for (uint32_t mix = 0; mix < 9 * 5; mix++)
			check_rest(s, c, 1 + mix % 9, 1 + mix / 9);
	}
}

static void the_rest_can_be_dealt_to_another_world_and_batch(void **state)
{
	(void)state;
	sweep(check_redeal, 24, 100);
}

static void check_against_torch(const struct shard *of)
{
	struct permutation *order = NULL;
	struct shard s = *of;

	if (s.accumulate > 1 || s.tail == ORDER_MASK)
		return; /* torch has no such thing */
	assert_int_equal(permutation_new(&order, ORDER_TORCH, s.n, 1, 2, NULL, 0, NULL), 0);
	for (s.rank = 0; s.rank < s.world; s.rank++) {
		struct oracle o;
		uint64_t at = 0;

		oracle_deal(&o, order, s.world, s.rank, s.batch, s.tail == ORDER_DROP);
		expect(shard_steps(&s, 0) == o.batches, &s, 0, "len(loader)");
		for (uint64_t step = 0; step < o.batches; step++) {
			uint32_t count = shard_count(&s, 0, step);

			expect(count == (step + 1 < o.batches ? s.batch : o.last), &s, 0,
				"len(batch)");
			for (uint32_t i = 0; i < count; i++)
				expect(permutation_at(order, shard_place(&s, 0, step, i).index) ==
						o.ids[at++],
					&s, 0, "id");
		}
		expect(at == o.count, &s, 0, "len(sampler)");
	}
	permutation_free(order);
}

static void pad_and_drop_equal_sampler_and_loader(void **state)
{
	(void)state;
	sweep(check_against_torch, 60, 200);
}

static void check_parts(const struct shard *whole)
{
	for (uint32_t parts = 1; parts <= whole->batch; parts++) {
		struct shard s = *whole;
		uint64_t steps = shard_steps(whole, 0), valid = 0;
		uint32_t first = 0;

		s.parts = parts;
		for (s.part = 0; s.part < parts; s.part++) {
			expect(shard_first_place(&s) == first, &s, 0, "parts leave a gap");
			expect(shard_capacity(&s) > 0, &s, 0, "an empty part");
			expect(shard_steps(&s, 0) == steps, &s, 0, "steps of a part");
			for (uint64_t step = 0; step < steps; step++) {
				uint32_t count = shard_count(whole, 0, step);
				uint32_t own = count < first ? 0 : count - first;

				if (own > shard_capacity(&s))
					own = shard_capacity(&s);
				expect(shard_count(&s, 0, step) == own, &s, 0, "count of a part");
				for (uint32_t i = 0; i < shard_capacity(&s); i++) {
					struct place a = shard_place(&s, 0, step, i);
					struct place b = shard_place(whole, 0, step, first + i);

					expect(a.position == b.position && a.index == b.index &&
							a.valid == b.valid,
						&s, 0, "a part's place is not the batch's");
				}
			}
			valid += shard_valid(&s, 0);
			first += shard_capacity(&s);
		}
		expect(first == whole->batch, whole, 0, "parts do not fill the batch");
		expect(valid == shard_valid(whole, 0), whole, 0, "valid places of the parts");
	}
}

static void parts_tile_the_batch(void **state)
{
	(void)state;
	sweep(check_parts, 60, 200);
}

/* The sampler lists of torch itself: world 4 and 8, all ranks' ids one after the other. */
static void torch_sampler_vectors_hold(void **state)
{
	static const struct {
		struct shard s;
		uint64_t seed, epoch;
		uint64_t per_rank;
		int ids[12]; /* rank 0's, then rank 1's, … */
	} vectors[] = {
		{ { 10, 4, 0, 1, 1, ORDER_PAD, 0, 1 }, 0, 0, 3,
			{ 4, 3, 6, 1, 9, 2, 7, 0, 4, 5, 8, 1 } },
		{ { 10, 4, 0, 1, 1, ORDER_DROP, 0, 1 }, 0, 3, 2, { 6, 8, 0, 5, 3, 1, 7, 9 } },
		{ { 3, 8, 0, 1, 1, ORDER_PAD, 0, 1 }, 1, 0, 1, { 1, 2, 0, 1, 2, 0, 1, 2 } },
		{ { 12, 4, 0, 1, 1, ORDER_DROP, 0, 1 }, 0, 1, 3,
			{ 1, 11, 2, 4, 0, 9, 6, 5, 10, 8, 3, 7 } },
	};

	(void)state;
	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		struct shard s = vectors[v].s;
		struct permutation *order = NULL;
		const int *id = vectors[v].ids;

		assert_int_equal(permutation_new(&order, ORDER_TORCH, s.n, vectors[v].seed,
					 vectors[v].epoch, NULL, 0, NULL),
			0);
		for (s.rank = 0; s.rank < s.world; s.rank++) {
			assert_true(shard_steps(&s, 0) == vectors[v].per_rank);
			for (uint64_t j = 0; j < vectors[v].per_rank; j++) {
				struct place p = shard_place(&s, 0, j, 0);

				assert_true(p.valid);
				assert_true(permutation_at(order, p.index) == (uint64_t)*id++);
			}
		}
		permutation_free(order);
	}
}

static void refusals_name_the_numbers(void **state)
{
	static const struct {
		struct shard s;
		int error;
		const char *text;
	} cases[] = {
		{ { 10, 0, 0, 2, 1, ORDER_PAD, 0, 1 }, -EINVAL,
			"world is 0, it must be at least 1" },
		{ { 10, 4, 4, 2, 1, ORDER_PAD, 0, 1 }, -EINVAL, "rank 4 is not below world 4" },
		{ { 10, 4, 0, 0, 1, ORDER_PAD, 0, 1 }, -EINVAL,
			"batch is 0, it must be at least 1" },
		{ { 10, 4, 0, 2, 0, ORDER_PAD, 0, 1 }, -EINVAL,
			"accumulate is 0, it must be at least 1" },
		{ { 10, 4, 0, 2, 1, 0, 0, 1 }, -EINVAL, "tail 0 is none of pad, drop and mask" },
		{ { 10, 4, 0, 2, 1, 4, 0, 1 }, -EINVAL, "tail 4 is none of pad, drop and mask" },
		{ { 10, 4, 0, 2, 1, ORDER_PAD, 0, 0 }, -EINVAL,
			"a batch of 2 cannot be split into 0 parts" },
		{ { 10, 4, 0, 2, 1, ORDER_PAD, 0, 3 }, -EINVAL,
			"a batch of 2 cannot be split into 3 parts" },
		{ { 10, 4, 0, 2, 1, ORDER_PAD, 2, 2 }, -EINVAL,
			"part 2 is not below the number of parts 2" },
		{ { 0, 4, 0, 2, 1, ORDER_PAD, 0, 1 }, -ERANGE,
			"there are no samples: the order has length 0" },
		{ { 23, 4, 0, 2, 3, ORDER_DROP, 0, 1 }, -ERANGE,
			"tail drop leaves no step: 23 samples do not fill one group of world 4"
			" x batch 2 x accumulate 3 = 24" },
		{ { (UINT64_C(1) << 62) + 1, 4, 0, 2, 3, ORDER_PAD, 0, 1 }, -ERANGE,
			"4611686018427387905 samples are more than 2^62" },
		{ { 10, UINT32_MAX, 0, UINT32_MAX, 1, ORDER_PAD, 0, 1 }, -ERANGE,
			"world 4294967295 x batch 4294967295 x accumulate 1 is more than 2^62" },
		{ { 10, UINT32_MAX, 0, UINT32_MAX, UINT32_MAX, ORDER_PAD, 0, 1 }, -ERANGE,
			"world 4294967295 x batch 4294967295 x accumulate 4294967295 is more than"
			" 2^62" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[200] = "";

		assert_int_equal(shard_check(&cases[i].s, text, sizeof(text)), cases[i].error);
		assert_string_equal(text, cases[i].text);
	}
}

static void good_shards_pass_without_a_word(void **state)
{
	static const struct shard good[] = {
		{ 24, 4, 3, 2, 3, ORDER_DROP, 1, 2 },
		{ 1, 8, 7, 256, 16, ORDER_PAD, 0, 1 },
		{ 1, 8, 7, 256, 16, ORDER_MASK, 255, 256 },
		{ UINT64_C(1) << 62, 65536, 65535, 4096, 64, ORDER_DROP, 0, 1 },
	};
	char text[8] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(shard_check(&good[i], text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

/* At the largest numbers that pass the check no sum overflows. */
static void the_largest_numbers_do_not_overflow(void **state)
{
	struct shard s = { UINT64_C(1) << 62, 1u << 31, (1u << 31) - 1, 1u << 20, 1u << 11,
		ORDER_MASK, 6, 7 };
	const uint64_t c = (UINT64_C(1) << 62) - 5, last = (1u << 11) - 1;
	const uint32_t i = shard_capacity(&s) - 1;
	char text[200] = "";
	uint64_t position;

	(void)state;
	assert_int_equal(shard_check(&s, text, sizeof(text)), 0);
	assert_true(shard_steps(&s, 0) == last + 1);
	assert_true(shard_steps(&s, c) == last + 1);
	assert_false(__builtin_mul_overflow(last, (uint64_t)s.batch, &position));
	position += shard_first_place(&s) + i;
	assert_false(__builtin_mul_overflow(position, (uint64_t)s.world, &position));
	assert_false(__builtin_add_overflow(position, c + s.rank, &position));
	assert_true(shard_place(&s, c, last, i).position == position);
	assert_true(shard_place(&s, c, last, i).index == position - s.n);
	assert_false(shard_place(&s, c, last, i).valid);
	assert_true(shard_valid(&s, c) == 0);
	s.part = 0;
	s.rank = 4;
	assert_true(shard_valid(&s, c) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_disjoint_covering_and_prefixes),
		cmocka_unit_test(ranks_have_equal_steps_and_the_promised_places),
		cmocka_unit_test(the_rest_can_be_dealt_to_another_world_and_batch),
		cmocka_unit_test(pad_and_drop_equal_sampler_and_loader),
		cmocka_unit_test(parts_tile_the_batch),
		cmocka_unit_test(torch_sampler_vectors_hold),
		cmocka_unit_test(refusals_name_the_numbers),
		cmocka_unit_test(good_shards_pass_without_a_word),
		cmocka_unit_test(the_largest_numbers_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
