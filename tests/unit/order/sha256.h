/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), to compare permutations with published hashes. */
#ifndef TESTS_SHA256_H
#define TESTS_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t h[8];
	uint64_t length; /* bytes so far */
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t size);
/* The first 16 hex digits. */
void sha256_finish16(struct sha256 *s, char ret[17]);

#endif
