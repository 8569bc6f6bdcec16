/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a dataset's index lives: a directory and the stem of its files there.
 *
 *   cache    CACHE/NAME-HASH.index      .verdicts  .lock
 *   inside   DATASET/.feeder-index      .verdicts  .lock  (lists: .feeder-index-HASH)
 *
 * Temporary files are FILE.tmp-RANDOM. feeder removes nothing else, and these only under the lock
 * and when they are ten minutes old.
 */
#ifndef SOURCE_PLACE_H
#define SOURCE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "source/scan.h"

enum place_file { PLACE_INDEX, PLACE_VERDICTS, PLACE_LOCK };

struct place {
	int dirfd; /* -1: there is no such place */
	bool inside;
	char stem[NAME_MAX + 1];
	char *shown; /* of the directory, for people */
};

#define PLACE_INIT          \
	{                   \
		.dirfd = -1 \
	}

/*
 * Beneath cache_dir, which is created (0700) if it is missing. The hash is of the display path,
 * the root's inode and device (anonymous device numbers, which change with every mount, are left
 * out) and flags.
 */
int place_init_cache(struct place *p, const char *cache_dir, const char *display,
	const struct statx *root, uint32_t flags);
/* In the directory s->root; s->display is the dataset's. */
int place_init_inside(struct place *p, const struct scan *s);
void place_deinit(struct place *p);

void place_name(const struct place *p, enum place_file file, char ret[NAME_MAX + 1]);
/* Directory and name for people; NULL when memory is out. The caller frees it. */
char *place_path(const struct place *p, enum place_file file);

/*
 * Waits for the lock of the place, asking s for cancellation. Returns a descriptor that holds it
 * until closed, -1 where locks cannot be had (several may then work at once: harmless, as files
 * are replaced whole), or -ECANCELED.
 */
int place_lock(const struct place *p, struct scan *s);
/* Removes temporary files that a killed process left. Under the lock only. */
void place_sweep(const struct place *p);

/*
 * Replaces file by the concatenated parts: a temporary name, fsync, rename. At every moment the
 * old file is there whole, or the new one.
 */
int place_replace(
	const struct place *p, enum place_file file, const struct iovec *parts, size_t count);

/* Opens file for reading; only a regular one. *ret_stat is its stat. */
int place_open(const struct place *p, enum place_file file, struct stat *ret_stat);

#endif
