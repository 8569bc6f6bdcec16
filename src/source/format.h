/* SPDX-License-Identifier: Apache-2.0 */
/* What a format of datasets does: one ops table each. */
#ifndef SOURCE_FORMAT_H
#define SOURCE_FORMAT_H

#include <stdint.h>
#include <sys/stat.h>

#include "source/image.h"
#include "source/scan.h"

struct source_format {
	const char *name;
	uint32_t number; /* in index files; never renumbered */
	/* Reads the dataset itself. 0, or a negative errno and a sentence in s->text. */
	int (*scan)(struct scan *s, uint32_t flags, const struct statx *root, struct image *ret);
	/* Whether an index still is the dataset: 0; 1 = scan anew; a negative errno as in scan. */
	int (*check)(struct scan *s, const struct image *image, const struct statx *root);
};

extern const struct source_format folder_format;
extern const struct source_format list_format;

/* The format of what root describes; NULL if there is none. */
const struct source_format *format_of(const struct statx *root);

#endif
