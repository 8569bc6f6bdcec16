/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded bytes of samples in flight, inside a byte budget.
 *
 * Buffers come in size classes and are kept for reuse: once warm, taking and giving back neither
 * allocates nor frees, and the whole of what was ever handed out stays within the budget (a
 * single buffer larger than the budget is allowed when nothing else is out, so that a large file
 * cannot block its lane for ever). Every buffer has BYTES_TAIL readable bytes behind its length,
 * zeroed by the reader, so that decoders may look a little past the end.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define BYTES_TAIL 64

struct bytes {
	struct list link;    /* owner's: in a free list while pooled */
	unsigned char *data; /* 64-byte aligned */
	size_t length;       /* bytes that are valid */
	size_t capacity;     /* without BYTES_TAIL; the class size, or more for an outsize buffer */
	unsigned int size_class;
};

struct bytes_pool;

/* budget in bytes; -ENOMEM. */
int bytes_pool_new(struct bytes_pool **ret, size_t budget);
/* All buffers must have been given back. */
void bytes_pool_free(struct bytes_pool *pool);

/*
 * A buffer for at least length bytes (its ->length is set to length), or NULL when the budget is
 * spent or memory is out; idle buffers of other classes are freed to make room first. Any thread.
 */
struct bytes *bytes_take(struct bytes_pool *pool, size_t length);
/* The same, beyond the budget if need be: for the one sample that its lane cannot go on without. */
struct bytes *bytes_take_beyond(struct bytes_pool *pool, size_t length);
void bytes_give(struct bytes_pool *pool, struct bytes *b);

/* Budgeted bytes now out, and the most ever held (out and idle together). Any thread. */
size_t bytes_pool_out(struct bytes_pool *pool);
size_t bytes_pool_peak(struct bytes_pool *pool);

#endif
