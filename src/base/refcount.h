/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to an object that is shared between threads.
 *
 * Edge drop → free: every drop releases, the last one acquires, so that whoever frees sees all
 * that was done under any reference. A count is taken only by someone who holds one.
 */
#ifndef BASE_REFCOUNT_H
#define BASE_REFCOUNT_H

#include <stdbool.h>

struct refcount {
	unsigned int count; /* atomic */
};

static inline void refcount_init(struct refcount *r)
{
	r->count = 1;
}

static inline void refcount_take(struct refcount *r)
{
	__atomic_fetch_add(&r->count, 1, __ATOMIC_RELAXED);
}

/* True for the last one: free the object. */
static inline bool refcount_drop(struct refcount *r)
{
	return __atomic_fetch_sub(&r->count, 1, __ATOMIC_ACQ_REL) == 1; /* edge drop → free */
}

#endif
