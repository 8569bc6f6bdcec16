/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011; constants and known answers of Random123's kat_vectors) and the per-sample streams of
 * augmentation: key = seed (low, high word), counter = (id low, id high, epoch,
 * view * 2^24 + operation code * 2^16 + block). The words of block 0, 1, … are used in order, so
 * a sample's pixels depend on nothing but (seed, id, epoch, view, operation).
 */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

/* out may be counter. */
void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct philox_stream {
	uint32_t key[2];
	uint32_t counter[4]; /* of the block that is drawn next */
	uint32_t words[4];
	unsigned int used; /* words of `words` already given: 4 = none left */
};

void philox_stream_init(struct philox_stream *s, uint64_t seed, uint64_t id, uint32_t epoch,
	uint32_t view, uint32_t operation);

/* The next 32-bit word; stands where torch's random() does. */
uint32_t philox_stream_next(struct philox_stream *s);

#endif
