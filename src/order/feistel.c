/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Feistel network over two halves of b bits is a bijection of 0 … 2^2b - 1; walking its cycle
 * until the value is below n makes it one of 0 … n-1 (Black and Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002). 2^2b < 4n for n > 2, so a walk takes under four turns on
 * average. Every such permutation is even up to its walks: good for training, not uniform.
 */
#include "order/feistel.h"

#include "order/hash.h"

/* Steele, Lea and Flood's generator: the state moves by the golden ratio, the output is mixed. */
static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* MurmurHash3's finaliser. */
static uint32_t fmix32(uint32_t h)
{
	h = (h ^ (h >> 16)) * 0x85ebca6bu;
	h = (h ^ (h >> 13)) * 0xc2b2ae35u;
	return h ^ (h >> 16);
}

static unsigned int ceil_log2(uint64_t n)
{
	return n > 1 ? 64 - (unsigned int)__builtin_clzll(n - 1) : 0;
}

void feistel_init(struct feistel *f, uint64_t n, uint64_t seed, uint64_t epoch)
{
	uint64_t state = hash_words((const uint64_t[]){ seed, epoch }, 2);

	f->n = n;
	f->bits = (ceil_log2(n) + 1) / 2;
	if (f->bits == 0)
		f->bits = 1;
	f->mask = UINT32_MAX >> (32 - f->bits);
	for (int i = 0; i < FEISTEL_ROUNDS; i++)
		f->keys[i] = (uint32_t)splitmix64(&state);
}

uint64_t feistel_at(const struct feistel *f, uint64_t position)
{
	uint64_t x = position;

	do {
		uint32_t left = (uint32_t)(x >> f->bits);
		uint32_t right = (uint32_t)x & f->mask;

		for (int i = 0; i < FEISTEL_ROUNDS; i++) {
			uint32_t mixed = left ^ (fmix32(right ^ f->keys[i]) & f->mask);

			left = right;
			right = mixed;
		}
		x = (uint64_t)left << f->bits | right;
	} while (x >= f->n);
	return x;
}
