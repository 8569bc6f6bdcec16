/* SPDX-License-Identifier: Apache-2.0 */
/* Part of a dataset while it is scanned. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/chunk.h"
#include "source/names.h"

int chunk_add_name(struct chunk *c, const char *name, size_t length, uint64_t *ret_offset)
{
	char *names = names_grow(c->names, &c->names_room, c->names_size, length + 1, 1);

	if (!names)
		return -ENOMEM;
	c->names = names;
	memcpy(names + c->names_size, name, length);
	names[c->names_size + length] = '\0';
	*ret_offset = c->names_size;
	c->names_size += length + 1;
	return 0;
}

struct index_sample *chunk_add_sample(struct chunk *c)
{
	struct index_sample *samples =
		names_grow(c->samples, &c->sample_room, c->sample_count, 1, sizeof(*samples));

	if (!samples)
		return NULL;
	c->samples = samples;
	samples[c->sample_count] = (struct index_sample){ .size = 0 };
	return &samples[c->sample_count++];
}

struct index_directory *chunk_add_directory(struct chunk *c)
{
	struct index_directory *directories = names_grow(
		c->directories, &c->directory_room, c->directory_count, 1, sizeof(*directories));

	if (!directories)
		return NULL;
	c->directories = directories;
	directories[c->directory_count] = (struct index_directory){ .flags = 0 };
	return &directories[c->directory_count++];
}

void chunk_free(struct chunk *c)
{
	free(c->samples);
	free(c->directories);
	free(c->names);
	*c = (struct chunk){ .samples = NULL };
}
