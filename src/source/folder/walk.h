/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking one class of a folder dataset, in the order of sorted(os.walk(followlinks=True)): by
 * the directories' paths, bytewise, then by name.
 *
 * Links are judged by where they end and labelled by where they stand. A link that leads back to
 * a directory above itself is left out with a warning.
 */
#ifndef SOURCE_FOLDER_WALK_H
#define SOURCE_FOLDER_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "source/chunk.h"
#include "source/names.h"
#include "source/scan.h"

#define WALK_DEPTH_MAX 64
#define SKIPPED_KEPT   3
#define INDEX_NAME     ".feeder-index" /* and what begins so: an index kept inside a dataset */

/* Names that were passed over: how many, and the first few in bytewise order of their paths. */
struct skipped {
	uint64_t count;
	char *first[SKIPPED_KEPT];
};

struct walk {
	struct scan *scan;
	char *text; /* the sentence of an error */
	size_t size;
	struct chunk found;
	struct skipped hidden;
	struct skipped hidden_beside; /* files directly in the dataset's directory */
	struct skipped loops;
	char path[PATH_MAX]; /* of the directory that is being read */
	uint64_t uncounted;  /* files since the last scan_count */
};

void walk_init(struct walk *w, struct scan *scan, char *text, size_t size);
void walk_deinit(struct walk *w); /* frees found and what was skipped */

/* The files directly in the dataset's directory, and the names of its directories, unsorted. */
int walk_root(struct walk *w, struct names *ret_directories);

/* All of the class directory name, in order, into w->found. linked: it is reached by a link. */
int walk_class(struct walk *w, const char *name, bool linked);

void skipped_add(struct skipped *s, const char *path);
void skipped_merge(struct skipped *s, const struct skipped *other);
void skipped_free(struct skipped *s);

/* Whether name ends in an image extension of ImageFolder's list, in any case. */
bool name_is_image(const char *name);

/* Whether a directory's entry counts in its names_hash; adds it if so. */
void names_hash_add(struct index_directory *d, const char *name);

#endif
