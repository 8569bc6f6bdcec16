/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH64 (seed 0) of a short record of u64 words in little-endian bytes: the one hash of orders,
 * cursors and digests.
 */
#ifndef ORDER_HASH_H
#define ORDER_HASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

/* Inlined, so that a record of three words costs no call and a streaming state no allocation. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define HASH_WORDS_MAX 4

static inline uint64_t hash_words(const uint64_t *words, size_t count)
{
	uint64_t le[HASH_WORDS_MAX];

	for (size_t i = 0; i < count; i++)
		le[i] = htole64(words[i]);
	return XXH64(le, count * sizeof(le[0]), 0);
}

#endif
