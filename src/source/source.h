/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: a path in some format → a dataset: an ordered list of samples 0..N-1, each an extent
 * and a label, with class names and a fingerprint.
 *
 * Formats stand behind source/format.h; `folder` is the first. A dataset is immutable once open,
 * shared by lanes by reference, and kept in an index file so that the next open reads no
 * directory tree (source/index.h). Names are bytes from end to end.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FINGERPRINT_SIZE 16

struct dataset;

struct dataset_options {
	bool hidden;           /* count hidden names, as torchvision does */
	bool allow_empty;      /* classes without a sample keep their number */
	bool rebuild;          /* ignore an existing index */
	bool in_place;         /* keep the index inside the dataset (feeder-index --in-place) */
	const char *cache_dir; /* where indexes live; NULL: keep in memory only */
	/*
	 * Asked for every path that leaves the dataset's directory through a link: returns a
	 * descriptor opened with flags (O_PATH, or O_RDONLY | O_DIRECTORY), or -EXDEV where the
	 * link ends outside what may be read, or another negative errno. Called on the scan's
	 * threads, concurrently. NULL: no link may leave. A link to a file that may not be
	 * followed is listed with size 0 and mtime INT64_MIN; one that may be a directory (no
	 * image extension) is refused with a sentence.
	 */
	int (*open_outside)(void *context, int dirfd, const char *path, int flags);
	/*
	 * Called on the opening thread every 100 ms while scanning, or while waiting for another
	 * process that scans; returning true ends the open with -ECANCELED.
	 */
	bool (*progress)(void *context, uint64_t files, uint64_t directories);
	void *context;
	/* one warning sentence (hidden names, index not writable, …); may come several times */
	void (*warning)(void *context, const char *sentence);
};

/*
 * Opens what fd (O_PATH, a directory or a list file) names; display is the path that errors and
 * sentences quote. List files name their samples relative to the list's directory: `dirfd` is an
 * O_PATH descriptor of that directory (or -1 for a directory dataset). On failure a negative
 * errno and a sentence in text that names path, cause and remedy.
 */
int dataset_open(struct dataset **ret, int fd, int dirfd, const char *display,
	const struct dataset_options *options, char *text, size_t size);
struct dataset *dataset_ref(struct dataset *d);
void dataset_unref(struct dataset *d); /* NULL is fine; any thread */

uint64_t dataset_length(const struct dataset *d);
const uint8_t *dataset_fingerprint(const struct dataset *d); /* FINGERPRINT_SIZE bytes */
uint32_t dataset_class_count(const struct dataset *d);
const char *dataset_class_name(const struct dataset *d, uint32_t i);
const char *dataset_format(const struct dataset *d); /* "folder", "list" */
const char *dataset_display(const struct dataset *d);
/* Where the index is ("" = in memory only) and whether this open used an existing one. */
const char *dataset_index_path(const struct dataset *d);
bool dataset_index_used(const struct dataset *d);
/* The directory that sample paths are relative to; owned by the dataset. */
int dataset_dirfd(const struct dataset *d);

struct sample {
	uint64_t offset;
	uint64_t length;    /* bytes of the extent: for a folder the whole file; 0 if it is empty */
	uint64_t file_size; /* as indexed */
	int64_t mtime_ns;   /* as indexed; INT64_MIN (and sizes 0) where there was no regular
	                       file that could be looked at: why is found when it is read */
	int64_t label;
};

/* id < N. */
void dataset_sample(const struct dataset *d, uint64_t id, struct sample *ret);
/* The path of a sample relative to dataset_dirfd; returns its length, or -ENAMETOOLONG. */
int dataset_path(const struct dataset *d, uint64_t id, char *ret, size_t size);

/*
 * Per-sample verdicts, kept with the index: 0 = not known, 1 = known good, else 16 + a
 * feeder_status. Set by any thread without a lock; written to the index file by
 * dataset_save_verdicts, atomically, when any changed.
 */
uint8_t dataset_verdict(const struct dataset *d, uint64_t id);
void dataset_set_verdict(struct dataset *d, uint64_t id, uint8_t verdict);
int dataset_save_verdicts(struct dataset *d);

#endif
