/* SPDX-License-Identifier: Apache-2.0 */
/* Packed lists of names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/names.h"

void *names_grow(void *array, size_t *room, size_t used, size_t count, size_t size)
{
	size_t want, bytes;
	void *grown;

	if (count <= *room - used)
		return array;
	if (__builtin_add_overflow(used, count, &want))
		return NULL;
	if (want < 2 * *room)
		want = 2 * *room;
	if (want < 64)
		want = 64;
	if (__builtin_mul_overflow(want, size, &bytes))
		return NULL;
	grown = realloc(array, bytes);
	if (grown)
		*room = want;
	return grown;
}

int names_add(struct names *n, const char *name, bool flag)
{
	size_t length = strlen(name) + 2;
	char *bytes = names_grow(n->bytes, &n->room, n->used, length, 1);
	size_t *at;

	if (!bytes)
		return -ENOMEM;
	n->bytes = bytes;
	at = names_grow(n->at, &n->at_room, n->count, 1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	n->at = at;
	n->bytes[n->used] = flag;
	memcpy(n->bytes + n->used + 1, name, length - 1);
	n->at[n->count++] = n->used;
	n->used += length;
	return 0;
}

static int names_compare(const void *a, const void *b, void *bytes)
{
	const char *base = bytes;

	return strcmp(base + *(const size_t *)a + 1, base + *(const size_t *)b + 1);
}

void names_sort(struct names *n)
{
	if (n->count > 1)
		qsort_r(n->at, n->count, sizeof(*n->at), names_compare, n->bytes);
}

void names_free(struct names *n)
{
	free(n->bytes);
	free(n->at);
	*n = (struct names)NAMES_INIT;
}
