/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a class. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/folder/order.h"

/* strcmp compares bytes as unsigned char, whatever the locale is. */
static int compare_names(const void *a, const void *b, void *names)
{
	const struct index_sample *left = a, *right = b;
	const char *base = names;

	return strcmp(base + left->name, base + right->name);
}

void order_names(struct chunk *c, size_t first)
{
	if (c->sample_count - first > 1)
		qsort_r(c->samples + first, c->sample_count - first, sizeof(*c->samples),
			compare_names, c->names);
}

struct range {
	const char *path;
	uint32_t directory;
	size_t first; /* sample */
	size_t count;
};

static int compare_ranges(const void *a, const void *b)
{
	return strcmp(((const struct range *)a)->path, ((const struct range *)b)->path);
}

static void fill_ranges(const struct chunk *c, struct range *ranges)
{
	for (size_t i = 0; i < c->directory_count; i++)
		ranges[i] = (struct range){ .path = c->names + c->directories[i].path,
			.directory = (uint32_t)i };
	for (size_t i = c->sample_count; i-- > 0;) {
		ranges[c->samples[i].directory].first = i;
		ranges[c->samples[i].directory].count++;
	}
}

int order_directories(struct chunk *c)
{
	struct index_directory *directories;
	struct index_sample *samples;
	struct range *ranges;
	size_t at = 0;

	if (c->directory_count < 2)
		return 0;
	ranges = calloc(c->directory_count, sizeof(*ranges));
	directories = malloc(c->directory_count * sizeof(*directories));
	samples = malloc((c->sample_count + 1) * sizeof(*samples));
	if (!ranges || !directories || !samples) {
		free(ranges);
		free(directories);
		free(samples);
		return -ENOMEM;
	}
	fill_ranges(c, ranges);
	qsort(ranges, c->directory_count, sizeof(*ranges), compare_ranges);
	for (size_t i = 0; i < c->directory_count; i++) {
		directories[i] = c->directories[ranges[i].directory];
		for (size_t j = 0; j < ranges[i].count; j++) {
			samples[at] = c->samples[ranges[i].first + j];
			samples[at++].directory = (uint32_t)i;
		}
	}
	free(ranges);
	free(c->directories);
	free(c->samples);
	c->directories = directories;
	c->directory_room = c->directory_count;
	c->samples = samples;
	c->sample_room = c->sample_count + 1;
	return 0;
}
