/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permutations shared by lanes: one for each (order, n, seed, epoch) on the node, computed by a
 * thread of its own, off every path that a batch takes.
 */
#ifndef PIPELINE_PERMS_H
#define PIPELINE_PERMS_H

#include <stdint.h>

#include "order/order.h"

struct perms;
struct perm; /* a counted reference to one permutation */

/* ready is called by the computing thread, no lock held, when a permutation became ready. */
int perms_new(struct perms **ret, void (*ready)(void *context), void *context);
/* Every reference must have been dropped. */
void perms_free(struct perms *perms);

/*
 * A reference; computing starts at once if need be and goes on in the background. kind is TORCH,
 * FEISTEL or SEQUENTIAL. Any thread. NULL: out of memory.
 */
struct perm *perms_get(struct perms *perms, int kind, uint64_t n, uint64_t seed, uint64_t epoch);
/* A reference to ids of the client's; -errno in *ret_error and NULL on failure. */
struct perm *perms_adopt(struct perms *perms, int kind, const int64_t *ids, uint64_t count,
	uint64_t dataset_n, uint64_t epoch, int *ret_error);
void perm_put(struct perm *perm); /* NULL is fine; any thread */

/* NULL while it is being computed. *ret_error: -ENOMEM when that failed. */
const struct permutation *perm_permutation(struct perm *perm, int *ret_error);
uint64_t perm_epoch(const struct perm *perm);

#endif
