/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests against values of Python (tools/dev/torch_digest.py, which was checked against torch
 * 1.13's DistributedSampler, and the xxhash module), and their sums over ranks, parts and pieces.
 */
#include "test.h"

#include <endian.h>

/* The order_digest of a lane's steps [from, to) of one epoch, counted from c. */
static uint64_t sum_steps(const struct shard *s, const struct permutation *order, uint64_t epoch,
	uint64_t c, uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (uint64_t step = from; step < to; step++) {
		for (uint32_t i = 0; i < shard_capacity(s); i++) {
			struct place p = shard_place(s, c, step, i);

			if (p.valid)
				sum += digest_order(
					epoch, p.position, permutation_at(order, p.index));
		}
	}
	return sum;
}

static uint64_t sum_epoch(const struct shard *s, const struct permutation *order, uint64_t epoch)
{
	return sum_steps(s, order, epoch, 0, 0, shard_steps(s, 0));
}

static struct permutation *make(int kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct permutation *p = NULL;

	assert_int_equal(permutation_new(&p, kind, n, seed, epoch, NULL, 0, NULL), 0);
	return p;
}

#define ALL UINT32_MAX

struct golden {
	uint64_t n;
	uint32_t world, rank, batch;
	uint64_t seed, first_epoch, epochs;
	uint32_t tail, accumulate;
	int order;
	uint64_t digest;
};

static const struct golden goldens[] = {
	{ 10, 4, ALL, 2, 0, 0, 1, ORDER_PAD, 1, ORDER_TORCH, 0xe6895da0e8f8a8ff },
	{ 10, 4, 1, 2, 0, 0, 1, ORDER_PAD, 1, ORDER_TORCH, 0x51c7c91c4debb438 },
	{ 10, 4, ALL, 2, 0, 0, 1, ORDER_MASK, 1, ORDER_TORCH, 0x9c78dd557769995c },
	{ 10, 4, ALL, 2, 0, 0, 1, ORDER_DROP, 1, ORDER_TORCH, 0xf8c9b6364cea2e27 },
	{ 10, 4, 2, 2, 5, 0, 3, ORDER_PAD, 2, ORDER_TORCH, 0x24461bcc514a58d3 },
	{ 1000, 3, 2, 16, 0, 0, 2, ORDER_MASK, 4, ORDER_TORCH, 0x3f6675af65e55055 },
	{ 1000, 3, 0, 16, 0, 0, 2, ORDER_DROP, 4, ORDER_TORCH, 0x9ca34cb4af96543f },
	{ 1000, 3, ALL, 16, 4294967297, 0, 2, ORDER_PAD, 4, ORDER_TORCH, 0xada6592a00f44fa4 },
	{ 3, 8, ALL, 5, 1, 0, 1, ORDER_PAD, 1, ORDER_TORCH, 0x8e0b53b0f468e2d5 },
	{ 1000, 7, 6, 9, 9, 2, 1, ORDER_PAD, 1, ORDER_FEISTEL, 0x43d8c29fb10856f2 },
	{ 1000, 7, 6, 9, 0, 0, 1, ORDER_PAD, 1, ORDER_SEQUENTIAL, 0x932365efa2e3e429 },
	{ 100000, 8, 3, 256, 0, 0, 2, ORDER_PAD, 1, ORDER_TORCH, 0x0274ed3c8fc093cd },
};

/* The digest of a golden's lane, or of all its ranks and of each batch's parts one by one. */
static uint64_t sum_golden(const struct golden *g, uint32_t parts)
{
	uint64_t sum = 0;

	for (uint64_t epoch = g->first_epoch; epoch < g->first_epoch + g->epochs; epoch++) {
		struct permutation *order = make(g->order, g->n, g->seed, epoch);

		for (uint32_t rank = 0; rank < g->world; rank++) {
			if (g->rank != ALL && g->rank != rank)
				continue;
			for (uint32_t part = 0; part < parts; part++) {
				struct shard s = { g->n, g->world, rank, g->batch, g->accumulate,
					g->tail, part, parts };

				sum += sum_epoch(&s, order, epoch);
			}
		}
		permutation_free(order);
	}
	return sum;
}

static void lanes_have_the_digests_that_python_finds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		uint64_t sum = sum_golden(&goldens[i], 1);

		if (sum != goldens[i].digest)
			fail_msg("golden %zu: %016" PRIx64, i, sum);
	}
}

static void sums_of_parts_add_up_to_the_rank(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		for (uint32_t parts = 2; parts <= goldens[i].batch && parts <= 5; parts++)
			assert_true(sum_golden(&goldens[i], parts) == goldens[i].digest);
	}
}

/* The ranks' own digests add up, and rank 1 of 4 is not the whole: the sum has something to do. */
static void sums_of_ranks_add_up_to_the_epoch(void **state)
{
	struct golden whole = goldens[0];
	uint64_t sum = 0;

	(void)state;
	for (whole.rank = 0; whole.rank < whole.world; whole.rank++) {
		uint64_t own = sum_golden(&whole, 1);

		assert_true(own != goldens[0].digest);
		sum += own;
	}
	assert_true(sum == goldens[0].digest);
}

/* After each whole group of K steps the run may be cut: both pieces add up to the uncut epoch. */
static void sums_of_pieces_add_up_to_the_epoch(void **state)
{
	static const uint64_t ns[] = { 1, 7, 24, 97, 100 };

	(void)state;
	for (uint32_t mix = 0; mix < 5 * 3 * 3 * 3 * 3; mix++) {
		struct shard s = { ns[mix % 5], 1 + mix / 5 % 3 * 3, 0, 1 + mix / 15 % 3,
			1 + mix / 45 % 3, ORDER_PAD + mix / 135, 0, 1 };
		struct permutation *order = make(ORDER_TORCH, s.n, 11, 2);

		for (s.rank = 0; s.rank < s.world; s.rank++) {
			uint64_t whole = sum_epoch(&s, order, 2);
			uint64_t steps = shard_steps(&s, 0);

			for (uint64_t cut = 0; cut < steps; cut += s.accumulate) {
				uint64_t c = cut * s.batch * s.world;
				uint64_t sum = sum_steps(&s, order, 2, 0, 0, cut);

				sum += sum_steps(&s, order, 2, c, 0, shard_steps(&s, c));
				assert_true(sum == whole);
			}
		}
		permutation_free(order);
	}
}

static void order_terms_are_xxh64_of_three_words(void **state)
{
	(void)state;
	assert_true(digest_order(1, 2, 3) == 0x8799e152e5c0cdfa);
	assert_true(digest_order(0, 0, 0) == 0xbb3302e8a9608868);
	assert_true(digest_order(2, 10, UINT64_C(1) << 40) == 0x66cd5703028f9777);
}

static void pixel_terms_are_xxh64_of_record_pixels_and_label(void **state)
{
	uint8_t pixels[300];

	(void)state;
	for (int i = 0; i < 300; i++)
		pixels[i] = (uint8_t)(7 * i);
	assert_true(digest_pixels(3, 11, 42, pixels, 300, -5) == 0x8462b124a28e8621);
}

static void a_masked_place_hashes_zeros(void **state)
{
	uint8_t *zeros = calloc(1, 150528);

	(void)state;
	assert_non_null(zeros);
	assert_true(digest_pixels(3, 11, 42, NULL, 150528, -100) == 0x974c16fc71233e90);
	for (size_t size = 0; size < 150528; size += 4095) /* around each piece of zeros */
		assert_true(digest_pixels(1, 2, 3, NULL, size, 4) ==
			    digest_pixels(1, 2, 3, zeros, size, 4));
	assert_true(digest_pixels(1, 2, 3, NULL, 4096, 4) != digest_pixels(1, 2, 3, NULL, 4097, 4));
	free(zeros);
}

static void substitutes_are_fixed_by_id_and_k(void **state)
{
	(void)state;
	assert_true(substitute_id(0, 0, 10) == 4);
	assert_true(substitute_id(5, 0, 1281167) == 847826);
	assert_true(substitute_id(5, 1, 1281167) == 1184736);
	assert_true(substitute_id(123456, 7, 1281167) == 496040);
	assert_true(substitute_id(9, 3, 1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_terms_are_xxh64_of_three_words),
		cmocka_unit_test(pixel_terms_are_xxh64_of_record_pixels_and_label),
		cmocka_unit_test(a_masked_place_hashes_zeros),
		cmocka_unit_test(substitutes_are_fixed_by_id_and_k),
		cmocka_unit_test(lanes_have_the_digests_that_python_finds),
		cmocka_unit_test(sums_of_parts_add_up_to_the_rank),
		cmocka_unit_test(sums_of_ranks_add_up_to_the_epoch),
		cmocka_unit_test(sums_of_pieces_add_up_to_the_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
