/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.randperm(n) on a CPU generator after manual_seed(seed), to the last value.
 *
 * torch keeps the low 32 bits of a seed and shuffles in one of two ways, by n alone; callers
 * choose with randperm_is_inside_out() and tests force either on a small n. ids has n entries.
 * stop (may be NULL) is looked at between blocks of draws: -ECANCELED, ids then undefined.
 */
#ifndef ORDER_RANDPERM_H
#define ORDER_RANDPERM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* True from n = UINT32_MAX / 20 = 214,748,364 on. Older torch (before 2.6) never does this. */
bool randperm_is_inside_out(uint64_t n);

/* Fisher and Yates from the front, one 32-bit draw a swap. n < 2^32. */
int randperm_swap(uint32_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop);

/* Inside out, one 64-bit draw an id. n ≤ 2^32; the wide form for more. */
int randperm_inside_out(uint32_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop);
int randperm_inside_out_wide(uint64_t *ids, uint64_t n, uint32_t seed, const atomic_bool *stop);

#endif
