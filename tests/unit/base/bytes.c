/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of encoded bytes: budget, reuse, outsize buffers, many threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static struct bytes_pool *make(size_t budget)
{
	struct bytes_pool *pool = NULL;

	assert_int_equal(bytes_pool_new(&pool, budget), 0);
	return pool;
}

/* All of it can be written, the tail too: under a sanitizer this is what checks the size. */
static void fill(struct bytes *b, int value)
{
	memset(b->data, value, b->length);
	memset(b->data + b->length, 0, BYTES_TAIL);
}

static void a_buffer_is_aligned_and_large_enough(void **state)
{
	static const size_t lengths[] = { 0, 1, 16384, 16385, 24576, 24577, 93 * KIB, 2 * MIB + 1 };
	struct bytes_pool *pool = make(64 * MIB);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct bytes *b = bytes_take(pool, lengths[i]);

		assert_non_null(b);
		assert_true(b->length == lengths[i]);
		assert_true(b->capacity >= lengths[i]);
		assert_true(b->capacity < lengths[i] + lengths[i] / 2 + 16385);
		assert_true((uintptr_t)b->data % 64 == 0);
		assert_true(bytes_pool_out(pool) == b->capacity);
		memset(b->data, 0x5a, b->capacity + BYTES_TAIL);
		bytes_give(pool, b);
		assert_true(bytes_pool_out(pool) == 0);
	}
	bytes_give(pool, NULL);
	bytes_pool_free(pool);
	bytes_pool_free(NULL);
}

static void a_given_buffer_is_taken_again(void **state)
{
	struct bytes_pool *pool = make(MIB);
	struct bytes *first = bytes_take(pool, 20000), *other;
	unsigned char *data = first->data;

	(void)state;
	bytes_give(pool, first);
	for (size_t length = 16385; length <= 24576; length += 1000) {
		struct bytes *b = bytes_take(pool, length);

		assert_ptr_equal(b, first);
		assert_ptr_equal(b->data, data);
		assert_true(b->length == length);
		bytes_give(pool, b);
	}
	first = bytes_take(pool, 20000);
	other = bytes_take(pool, 20000); /* the only idle one is out */
	assert_ptr_not_equal(first->data, other->data);
	bytes_give(pool, first);
	bytes_give(pool, other);
	assert_true(bytes_pool_peak(pool) == 2 * 24576);
	bytes_pool_free(pool);
}

static void the_budget_is_kept_to_the_byte(void **state)
{
	struct bytes_pool *pool = make(4 * 16384);
	struct bytes *taken[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		taken[i] = bytes_take(pool, 16384);
		assert_non_null(taken[i]);
	}
	assert_true(bytes_pool_out(pool) == 4 * 16384);
	assert_null(bytes_take(pool, 1));
	bytes_give(pool, taken[0]);
	assert_null(bytes_take(pool, 16385)); /* needs 24,576 and 16,384 are left */
	taken[0] = bytes_take(pool, 1);
	assert_non_null(taken[0]);
	for (int i = 0; i < 4; i++)
		bytes_give(pool, taken[i]);
	assert_true(bytes_pool_peak(pool) == 4 * 16384);
	bytes_pool_free(pool);
}

/* Idle buffers count too: they are freed for another class, and the peak stays within budget. */
static void idle_buffers_make_room_for_other_classes(void **state)
{
	struct bytes_pool *pool = make(4 * 16384);
	struct bytes *taken[4], *large;

	(void)state;
	for (int i = 0; i < 4; i++)
		taken[i] = bytes_take(pool, 16384);
	for (int i = 0; i < 4; i++)
		bytes_give(pool, taken[i]);
	large = bytes_take(pool, 3 * 16384);
	assert_non_null(large);
	fill(large, 1);
	taken[0] = bytes_take(pool, 16384);
	assert_non_null(taken[0]);
	assert_null(bytes_take(pool, 1));
	assert_true(bytes_pool_peak(pool) == 4 * 16384);
	bytes_give(pool, large);
	bytes_give(pool, taken[0]);
	bytes_pool_free(pool);
}

/* A single buffer beyond the budget is let through alone, and nothing beside it. */
static void one_large_file_passes_alone(void **state)
{
	struct bytes_pool *pool = make(MIB);
	struct bytes *small = bytes_take(pool, 1), *large;

	(void)state;
	assert_null(bytes_take(pool, 5 * MIB)); /* something is out */
	bytes_give(pool, small);
	large = bytes_take(pool, 5 * MIB);
	assert_non_null(large);
	fill(large, 2);
	assert_null(bytes_take(pool, 1));
	bytes_give(pool, large);
	small = bytes_take(pool, 1);
	assert_non_null(small);
	assert_true(bytes_pool_out(pool) == 16384);
	bytes_give(pool, small);
	bytes_pool_free(pool);
}

/* Beyond the last class (24 MiB) a buffer has just its size, and is freed when it comes back. */
static void outsize_buffers_are_not_kept(void **state)
{
	struct bytes_pool *pool = make(100 * MIB);
	struct bytes *large = bytes_take(pool, 24 * MIB + 1);

	(void)state;
	assert_non_null(large);
	assert_true(bytes_pool_out(pool) == 24 * MIB + 1);
	fill(large, 3);
	bytes_give(pool, large);
	large = bytes_take(pool, 30 * MIB);
	assert_non_null(large);
	assert_true(bytes_pool_peak(pool) == 30 * MIB); /* and not 54: the first is gone */
	bytes_give(pool, large);
	bytes_pool_free(pool);
}

#define THREADS 4
#define ROUNDS  3000

struct job {
	struct bytes_pool *pool;
	unsigned int seed;
	unsigned int taken, refused;
	bool torn;
};

static void *take_and_give(void *arg)
{
	struct job *job = arg;
	struct bytes *held[3] = { NULL };
	unsigned int random = job->seed;

	for (int round = 0; round < ROUNDS; round++) {
		int i = round % 3;

		if (held[i]) {
			const unsigned char *data = held[i]->data;

			/* Whoever else had these bytes would have left another mark. */
			job->torn |= data[0] != (unsigned char)job->seed ||
				     data[held[i]->length - 1] != (unsigned char)job->seed;
			bytes_give(job->pool, held[i]);
		}
		random = random * 1664525u + 1013904223u;
		held[i] = bytes_take(job->pool, 1 + (random >> 8) % 100000);
		if (held[i])
			memset(held[i]->data, (int)job->seed, held[i]->length);
		job->taken += held[i] != NULL;
		job->refused += held[i] == NULL;
	}
	for (int i = 0; i < 3; i++)
		bytes_give(job->pool, held[i]);
	return NULL;
}

static void threads_share_a_pool_and_keep_its_budget(void **state)
{
	struct bytes_pool *pool = make(500000);
	struct job jobs[THREADS] = { 0 };
	pthread_t threads[THREADS];
	unsigned int taken = 0, refused = 0;

	(void)state;
	for (unsigned int t = 0; t < THREADS; t++) {
		jobs[t].pool = pool;
		jobs[t].seed = t + 1;
		assert_int_equal(pthread_create(&threads[t], NULL, take_and_give, &jobs[t]), 0);
	}
	for (unsigned int t = 0; t < THREADS; t++) {
		pthread_join(threads[t], NULL);
		assert_false(jobs[t].torn);
		taken += jobs[t].taken;
		refused += jobs[t].refused;
	}
	assert_int_equal(taken + refused, THREADS * ROUNDS);
	assert_true(taken > ROUNDS);
	assert_true(bytes_pool_out(pool) == 0);
	assert_true(bytes_pool_peak(pool) <= 500000);
	bytes_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_aligned_and_large_enough),
		cmocka_unit_test(a_given_buffer_is_taken_again),
		cmocka_unit_test(the_budget_is_kept_to_the_byte),
		cmocka_unit_test(idle_buffers_make_room_for_other_classes),
		cmocka_unit_test(one_large_file_passes_alone),
		cmocka_unit_test(outsize_buffers_are_not_kept),
		cmocka_unit_test(threads_share_a_pool_and_keep_its_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
