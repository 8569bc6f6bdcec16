/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded bytes in flight. Classes are 16 KiB·{1, 1.5}·2^k; anything above the last class is
 * outsize and freed when it comes back.
 */
#include "base/bytes.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define CLASS_COUNT 22
#define OUTSIZE     CLASS_COUNT

struct bytes_pool {
	size_t budget; /* constant after start */

	/* guarded by lock */
	pthread_mutex_t lock;
	size_t out;  /* capacity of buffers handed out */
	size_t held; /* out and idle */
	size_t peak;
	struct list idle[CLASS_COUNT];
};

static size_t class_size(unsigned int c)
{
	size_t base = (size_t)16384 << (c / 2);

	return c % 2 ? base + base / 2 : base;
}

static unsigned int class_of(size_t length)
{
	for (unsigned int c = 0; c < CLASS_COUNT; c++) {
		if (length <= class_size(c))
			return c;
	}
	return OUTSIZE;
}

int bytes_pool_new(struct bytes_pool **ret, size_t budget)
{
	struct bytes_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->budget = budget;
	pthread_mutex_init(&pool->lock, NULL);
	for (unsigned int c = 0; c < CLASS_COUNT; c++)
		list_init(&pool->idle[c]);
	*ret = pool;
	return 0;
}

static void bytes_free(struct bytes_pool *pool, struct bytes *b)
{
	pool->held -= b->capacity;
	free(b->data);
	free(b);
}

void bytes_pool_free(struct bytes_pool *pool)
{
	struct list *node;

	if (!pool)
		return;
	for (unsigned int c = 0; c < CLASS_COUNT; c++) {
		while ((node = list_pop(&pool->idle[c])))
			bytes_free(pool, CONTAINER_OF(node, struct bytes, link));
	}
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Frees idle buffers, the largest classes first, until `size` more fit. Lock held. */
static void make_room(struct bytes_pool *pool, size_t size)
{
	for (unsigned int c = CLASS_COUNT; c-- > 0 && pool->held + size > pool->budget;) {
		struct list *node;

		while (pool->held + size > pool->budget && (node = list_pop(&pool->idle[c])))
			bytes_free(pool, CONTAINER_OF(node, struct bytes, link));
	}
}

static struct bytes *bytes_alloc(struct bytes_pool *pool, unsigned int c, size_t capacity)
{
	struct bytes *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	list_init(&b->link);
	b->size_class = c;
	b->capacity = capacity;
	b->data = aligned_alloc(64, (capacity + BYTES_TAIL + 63) / 64 * 64);
	if (!b->data) {
		free(b);
		return NULL;
	}
	pool->held += capacity;
	if (pool->held > pool->peak)
		pool->peak = pool->held;
	return b;
}

static struct bytes *take(struct bytes_pool *pool, size_t length, bool beyond)
{
	unsigned int c = class_of(length);
	size_t capacity = c == OUTSIZE ? length : class_size(c);
	struct bytes *b = NULL;

	pthread_mutex_lock(&pool->lock);
	if (!beyond && pool->out > 0 && pool->out + capacity > pool->budget)
		goto out;
	if (c != OUTSIZE && !list_empty(&pool->idle[c])) {
		b = CONTAINER_OF(list_pop(&pool->idle[c]), struct bytes, link);
	} else {
		make_room(pool, capacity);
		b = bytes_alloc(pool, c, capacity);
	}
	if (b) {
		pool->out += capacity;
		b->length = length;
	}
out:
	pthread_mutex_unlock(&pool->lock);
	return b;
}

struct bytes *bytes_take(struct bytes_pool *pool, size_t length)
{
	return take(pool, length, false);
}

struct bytes *bytes_take_beyond(struct bytes_pool *pool, size_t length)
{
	return take(pool, length, true);
}

void bytes_give(struct bytes_pool *pool, struct bytes *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->out -= b->capacity;
	if (b->size_class == OUTSIZE || pool->held > pool->budget)
		bytes_free(pool, b);
	else
		list_prepend(&pool->idle[b->size_class], &b->link);
	pthread_mutex_unlock(&pool->lock);
}

size_t bytes_pool_out(struct bytes_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t out = pool->out;
	pthread_mutex_unlock(&pool->lock);
	return out;
}

size_t bytes_pool_peak(struct bytes_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t peak = pool->peak;
	pthread_mutex_unlock(&pool->lock);
	return peak;
}
