/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relaxed: single bytes and words that any thread may set and read. Nothing is ordered by them:
 * a reader sees some value that was stored, and other memory must not be inferred from it.
 */
#ifndef BASE_RELAXED_H
#define BASE_RELAXED_H

#include <stdint.h>

static inline uint8_t relaxed_load_u8(const uint8_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void relaxed_store_u8(uint8_t *p, uint8_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static inline uint8_t relaxed_exchange_u8(uint8_t *p, uint8_t value)
{
	return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);
}

/* The value after it. */
static inline uint32_t relaxed_increment_u32(uint32_t *p)
{
	return __atomic_add_fetch(p, 1, __ATOMIC_RELAXED);
}

static inline uint64_t relaxed_load_u64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void relaxed_store_u64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

#endif
