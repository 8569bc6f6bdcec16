/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of a dataset while it is scanned: the samples of one class, or of some lines of a list,
 * in the records of the index file with offsets of its own. No allocation per sample.
 */
#ifndef SOURCE_CHUNK_H
#define SOURCE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

struct index_sample {
	uint64_t size;
	int64_t mtime_ns;   /* INT64_MIN: there was no regular file that could be looked at */
	uint64_t name;      /* in names: the name inside its directory */
	uint32_t directory; /* in directories */
	uint32_t label;     /* in labels */
};

/* directory flags */
#define DIRECTORY_LINKED  1u /* reached through a link: opened beneath the root, never by stat */
#define DIRECTORY_RECENT  2u /* changed just before the scan: times alone prove nothing */
#define DIRECTORY_NO_TIME 4u /* the index lies in it: its times are not compared */

struct index_directory {
	uint64_t path; /* in names: relative to the dataset's directory; "" is that itself */
	uint64_t inode;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t names_hash; /* sum of XXH3-64 of the names of its entries, without . and .. */
	uint64_t entries;
	uint32_t flags;
	uint32_t zero;
};

_Static_assert(sizeof(struct index_sample) == 32, "index sample");
_Static_assert(sizeof(struct index_directory) == 56, "index directory");

struct chunk {
	struct index_sample *samples;
	size_t sample_count;
	size_t sample_room;
	struct index_directory *directories;
	size_t directory_count;
	size_t directory_room;
	char *names;
	size_t names_size;
	size_t names_room;
};

int chunk_add_name(struct chunk *c, const char *name, size_t length, uint64_t *ret_offset);
/* The new record, zeroed; NULL when memory is out. Valid until the next one is added. */
struct index_sample *chunk_add_sample(struct chunk *c);
struct index_directory *chunk_add_directory(struct chunk *c);
void chunk_free(struct chunk *c); /* leaves it empty */

#endif
