/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch's shuffles (ATen: MT19937RNGEngine.h, CPUGeneratorImpl.cpp, randperm_cpu).
 *
 * Which entries a step touches depends on draws only, never on the array. So the draws of a block
 * become indices first, and the entries are prefetched ahead of the swaps: a large shuffle then
 * waits for memory bandwidth and not for one cache miss after the other.
 */
#include "order/randperm.h"

#include <errno.h>

#include "base/stop.h"

#define MT_N   624
#define MT_M   397
#define WIDE_N (MT_N / 2) /* 64-bit draws in a block */
#define AHEAD  24         /* entries prefetched ahead of their use */

struct mt19937 {
	uint32_t state[MT_N];
};

static void mt19937_seed(struct mt19937 *mt, uint32_t seed)
{
	mt->state[0] = seed;
	for (uint32_t j = 1; j < MT_N; j++) {
		uint32_t previous = mt->state[j - 1];

		mt->state[j] = 1812433253u * (previous ^ (previous >> 30)) + j;
	}
}

static uint32_t twist(uint32_t upper, uint32_t lower)
{
	uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);

	return (y >> 1) ^ (lower & 1 ? 0x9908b0dfu : 0);
}

static uint32_t temper(uint32_t y)
{
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

/* The next MT_N draws at once. */
static void mt19937_block(struct mt19937 *mt, uint32_t draws[MT_N])
{
	uint32_t *s = mt->state;

	for (int j = 0; j < MT_N - MT_M; j++)
		s[j] = s[j + MT_M] ^ twist(s[j], s[j + 1]);
	for (int j = MT_N - MT_M; j < MT_N - 1; j++)
		s[j] = s[j + MT_M - MT_N] ^ twist(s[j], s[j + 1]);
	s[MT_N - 1] = s[MT_M - 1] ^ twist(s[MT_N - 1], s[0]);
	for (int j = 0; j < MT_N; j++)
		draws[j] = temper(s[j]);
}

bool randperm_is_inside_out(uint64_t n)
{
	return n >= UINT32_MAX / 20;
}

int randperm_swap(uint32_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop)
{
	struct mt19937 mt;
	uint32_t draws[MT_N];

	mt19937_seed(&mt, seed);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (uint32_t)i;
	for (uint64_t i = 0; i + 1 < n;) {
		unsigned int count = n - 1 - i < MT_N ? (unsigned int)(n - 1 - i) : MT_N;
		uint32_t *front = ids + i;
		uint32_t left = (uint32_t)(n - i); /* entries from front on */

		if (stop_asked(stop))
			return -ECANCELED;
		mt19937_block(&mt, draws);
		for (uint32_t k = 0; k < count; k++)
			draws[k] = k + draws[k] % (left - k);
		for (uint32_t k = 0; k < count; k++) {
			uint32_t *other = front + draws[k];
			uint32_t id = *other;

			if (k + AHEAD < count)
				__builtin_prefetch(front + draws[k + AHEAD], 1);
			*other = front[k];
			front[k] = id;
		}
		i += count;
	}
	return 0;
}

/*
 * Where ids i, i+1, … of an inside-out shuffle go: each takes the entry there, and leaves its
 * own.
 */
static void inside_out_targets(struct mt19937 *mt, uint64_t i, uint64_t targets[WIDE_N])
{
	uint32_t draws[MT_N];

	mt19937_block(mt, draws);
	for (unsigned int k = 0; k < WIDE_N; k++) {
		uint64_t draw = (uint64_t)draws[2 * k] << 32 | draws[2 * k + 1];

		targets[k] = draw % (i + k + 1);
	}
}

/* ids are uint32_t, or uint64_t if wide, which is a constant of each caller. */
static inline __attribute__((always_inline)) int inside_out(
	void *ids, uint64_t n, uint32_t seed, const atomic_bool *stop, const bool wide)
{
	struct mt19937 mt;
	uint64_t targets[WIDE_N];
	uint32_t *narrow_ids = ids;
	uint64_t *wide_ids = ids;

	mt19937_seed(&mt, seed);
	for (uint64_t i = 0; i < n;) {
		unsigned int count = n - i < WIDE_N ? (unsigned int)(n - i) : WIDE_N;

		if (stop_asked(stop))
			return -ECANCELED;
		inside_out_targets(&mt, i, targets);
		for (unsigned int k = 0; k < count; k++, i++) {
			uint64_t to = targets[k];

			if (k + AHEAD < count)
				__builtin_prefetch(
					(char *)ids + targets[k + AHEAD] * (wide ? 8 : 4), 1);
			if (wide) {
				if (to != i)
					wide_ids[i] = wide_ids[to];
				wide_ids[to] = i;
			} else {
				if (to != i)
					narrow_ids[i] = narrow_ids[to];
				narrow_ids[to] = (uint32_t)i;
			}
		}
	}
	return 0;
}

int randperm_inside_out(uint32_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop)
{
	return inside_out(ids, n, seed, stop, false);
}

int randperm_inside_out_wide(uint64_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop)
{
	return inside_out(ids, n, seed, stop, true);
}
