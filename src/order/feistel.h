/* SPDX-License-Identifier: Apache-2.0 */
/* A keyed bijection of 0 … n-1: any position's id in O(1) time and memory. */
#ifndef ORDER_FEISTEL_H
#define ORDER_FEISTEL_H

#include <stdint.h>

#define FEISTEL_ROUNDS 8

struct feistel {
	/* constant after start */
	uint64_t n;
	unsigned int bits; /* of a half, 1 … 32 */
	uint32_t mask;     /* the low `bits` bits */
	uint32_t keys[FEISTEL_ROUNDS];
};

/* n ≥ 1. */
void feistel_init(struct feistel *f, uint64_t n, uint64_t seed, uint64_t epoch);
uint64_t feistel_at(const struct feistel *f, uint64_t position); /* position < n */

#endif
