/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of names, packed, each with one flag byte; sorted bytewise. */
#ifndef SOURCE_NAMES_H
#define SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names {
	char *bytes; /* each name: flag, bytes, NUL */
	size_t used;
	size_t room;
	size_t *at; /* offsets in bytes, in the list's order */
	size_t count;
	size_t at_room;
};

#define NAMES_INIT            \
	{                     \
		.bytes = NULL \
	}

int names_add(struct names *n, const char *name, bool flag);
void names_sort(struct names *n);
void names_free(struct names *n); /* leaves it empty */

static inline const char *names_get(const struct names *n, size_t i)
{
	return n->bytes + n->at[i] + 1;
}

static inline bool names_flag(const struct names *n, size_t i)
{
	return n->bytes[n->at[i]] != 0;
}

/*
 * The array with room for count elements of size more than the used ones, moved if need be; it
 * doubles. NULL when memory is out: the old array stays.
 */
void *names_grow(void *array, size_t *room, size_t used, size_t count, size_t size);

#endif
