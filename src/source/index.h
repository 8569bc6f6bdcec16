/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: loading one that still is the dataset, and keeping a new one. */
#ifndef SOURCE_INDEX_H
#define SOURCE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "source/format.h"
#include "source/place.h"

/* What an index must be of. */
struct index_key {
	const struct source_format *format;
	uint32_t flags;
	const struct statx *root;
};

/*
 * 0 and an image; INDEX_NONE: no index, one of something else, or one that no longer fits;
 * INDEX_DAMAGED: with a sentence in warning; or a negative errno that ends the open.
 */
enum { INDEX_NONE = 1, INDEX_DAMAGED = 2 };
int index_load(const struct place *p, struct scan *s, const struct index_key *key,
	struct image *ret, char *warning, size_t size);

/* Writes the image's file; a negative errno. */
int index_store(const struct place *p, const struct image *image);

#endif
