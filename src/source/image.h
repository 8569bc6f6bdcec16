/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index image: one dataset, packed. It is the index file byte for byte (protocol/index.md)
 * and the table in memory: whoever scanned builds it, whoever finds the file reads it whole.
 *
 * The file is read and not mapped: nobody who truncates it can kill the daemon, and what was
 * checked cannot change afterwards.
 */
#ifndef SOURCE_IMAGE_H
#define SOURCE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/chunk.h"

#define INDEX_MAGIC      "FDRINDEX"
#define INDEX_VERSION    1u
#define INDEX_BYTE_ORDER 0x01020304u
#define INDEX_SIZE_MAX   ((uint64_t)1 << 42)

/* header flags: the options that shape the list */
#define INDEX_HIDDEN      1u
#define INDEX_ALLOW_EMPTY 2u

struct index_header {
	char magic[8];
	uint32_t byte_order;
	uint32_t version;
	uint64_t file_size;
	uint64_t checksum; /* XXH3-64 (seed 0) of all bytes behind this field */
	uint32_t format;   /* 1 folder, 2 list */
	uint32_t flags;
	uint64_t sample_count;
	uint64_t directory_count;
	uint64_t class_count;
	uint64_t label_count;
	uint64_t names_size;
	uint64_t root_inode; /* of the dataset's directory, or of the list file */
	uint64_t root_size;  /* of the list file; 0 for a directory, as the next two */
	int64_t root_mtime_ns;
	int64_t root_ctime_ns;
	uint64_t warning; /* in names: said again at every open; 0 = none */
	uint8_t fingerprint[16];
	uint64_t root_hash; /* XXH3-64 of a list file that was recent when scanned; else 0 */
};

_Static_assert(sizeof(struct index_header) == 144, "index header");
_Static_assert(offsetof(struct index_header, checksum) == 24, "index header");
_Static_assert(offsetof(struct index_header, fingerprint) == 120, "index header");

struct image {
	unsigned char
		*base; /* an anonymous mapping, read-only once built or checked; NULL = none */
	size_t size;
	const struct index_header *header;
	const struct index_sample *samples;
	const struct index_directory *directories;
	const uint64_t *classes; /* in names */
	const int64_t *labels;
	const char *names; /* names[0] and the last byte are NUL */
};

struct image_parts {
	uint32_t format;
	uint32_t flags;
	uint64_t root_inode, root_size;
	int64_t root_mtime_ns, root_ctime_ns;
	uint64_t root_hash;
	const struct chunk
		*chunks; /* samples in the dataset's order; sample.label indexes labels */
	size_t chunk_count;
	const char *const *classes;
	size_t class_count;
	const int64_t *labels;
	size_t label_count;
	const char *warning; /* "" = none */
};

/* -ENOMEM; -EOVERFLOW beyond 2^32 - 1 directories or labels. */
int image_build(struct image *ret, const struct image_parts *parts);

/*
 * Takes fd's size bytes. 0, a negative errno, or IMAGE_DAMAGED with why in text (any bytes
 * whatever are harmless), or IMAGE_OTHER: a version or byte order that this feeder does not read.
 */
enum { IMAGE_DAMAGED = 1, IMAGE_OTHER = 2 };
int image_read(struct image *ret, int fd, uint64_t size, char *text, size_t text_size);

/* Checks all of what image_read checks on size bytes at base, without taking them over. */
int image_check(struct image *ret, unsigned char *base, size_t size, char *text, size_t text_size);

void image_free(struct image *image);

/* Pages for an image: zeroed; NULL when memory is out. */
void *image_pages(size_t size);

#endif
