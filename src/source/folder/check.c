/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an index still is its folder. A directory's times and inode tell whether names came,
 * went or were replaced in it; one stat a directory, and none a file (a file's own size and time
 * are checked when it is read). Where the times prove nothing (changed within SCAN_MARGIN_S
 * before the scan, or the index itself lies there) its names are read and compared.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "source/beneath.h"
#include "source/folder/check.h"
#include "source/folder/walk.h"
#include "source/image.h"
#include "source/scan.h"

#define CHECK_PART 128 /* directories a task */

struct check {
	struct scan *scan;
	const struct image *image;
};

static bool stat_agrees(const struct index_directory *d, const struct statx *st)
{
	if (!S_ISDIR(st->stx_mode) || st->stx_ino != d->inode)
		return false;
	return (d->flags & DIRECTORY_NO_TIME) ||
	       (statx_ns(&st->stx_mtime) == d->mtime_ns && statx_ns(&st->stx_ctime) == d->ctime_ns);
}

/* Consumes fd. */
static bool names_agree(int fd, const struct index_directory *d)
{
	struct index_directory now = { .flags = 0 };
	struct dirent *e;
	DIR *dir;

	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return false;
	}
	while (errno = 0, (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			names_hash_add(&now, e->d_name);
	bool read = errno == 0;
	closedir(dir);
	return read && now.entries == d->entries && now.names_hash == d->names_hash;
}

static bool directory_agrees(const struct check *c, const struct index_directory *d)
{
	const char *path = c->image->names + d->path;
	CLEANUP(fd_closep) int fd = -1;
	struct statx st;

	if (!d->flags)
		return statx(c->scan->root, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
			       STATX_BASIC_STATS, &st) == 0 &&
		       stat_agrees(d, &st);
	fd = beneath_open(c->scan->root, path, O_RDONLY | O_DIRECTORY, c->scan->options);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 ||
		!stat_agrees(d, &st))
		return false;
	if (!(d->flags & (DIRECTORY_RECENT | DIRECTORY_NO_TIME)))
		return true;
	return names_agree(fd_steal(&fd), d);
}

static int check_task(void *context, size_t task, char *text, size_t size)
{
	const struct check *c = context;
	uint64_t first = task * CHECK_PART, end = first + CHECK_PART;

	(void)text;
	(void)size;
	if (end > c->image->header->directory_count)
		end = c->image->header->directory_count;
	for (uint64_t at = first; at < end; at++)
		if (!directory_agrees(c, &c->image->directories[at]))
			return 1;
	return scan_count(c->scan, 0, end - first) ? -ECANCELED : 0;
}

int folder_check(struct scan *s, const struct image *image, const struct statx *root)
{
	struct check check = { .scan = s, .image = image };
	uint64_t n = image->header->directory_count;

	if (n == 0 || image->header->root_inode != root->stx_ino)
		return 1;
	return crew_run(s, (n + CHECK_PART - 1) / CHECK_PART, check_task, &check);
}
