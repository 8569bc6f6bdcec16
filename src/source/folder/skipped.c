/* SPDX-License-Identifier: Apache-2.0 */
/* Names that were passed over. The first few in bytewise order, whatever order they come in. */
#include <stdlib.h>
#include <string.h>

#include "source/folder/walk.h"

static void skipped_keep(struct skipped *s, const char *path)
{
	size_t at = 0;
	char *copy;

	while (at < SKIPPED_KEPT && s->first[at] && strcmp(s->first[at], path) <= 0)
		at++;
	if (at == SKIPPED_KEPT)
		return;
	copy = strdup(path);
	if (!copy) /* it is counted, and only not named */
		return;
	free(s->first[SKIPPED_KEPT - 1]);
	memmove(&s->first[at + 1], &s->first[at], (SKIPPED_KEPT - 1 - at) * sizeof(*s->first));
	s->first[at] = copy;
}

void skipped_add(struct skipped *s, const char *path)
{
	s->count++;
	skipped_keep(s, path);
}

void skipped_merge(struct skipped *s, const struct skipped *other)
{
	s->count += other->count;
	for (size_t i = 0; i < SKIPPED_KEPT && other->first[i]; i++)
		skipped_keep(s, other->first[i]);
}

void skipped_free(struct skipped *s)
{
	for (size_t i = 0; i < SKIPPED_KEPT; i++)
		free(s->first[i]);
	*s = (struct skipped){ .count = 0 };
}
