/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs by parents and by name. */
#include "control/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define DEPTH_MAX 256 /* directories between a root and a dataset */

int place_id_read(struct place_id *ret, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct place_id){ st.st_dev, st.st_ino };
	return 0;
}

bool place_id_equal(const struct place_id *a, const struct place_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

int open_resolved(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned int)flags, .resolve = resolve };

	for (;;) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EINTR && errno != EAGAIN) /* EAGAIN: a rename raced with ".." */
			return -errno;
	}
}

int fd_name(int fd, char *ret, size_t size)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, ret, size);
	if (length < 0)
		return -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	ret[length] = '\0';
	return 0;
}

bool beneath_by_parents(int fd, const struct place_id *root)
{
	CLEANUP(fd_closep) int own = -1;
	struct place_id here = { 0 }, above = { 0 };

	if (place_id_read(&here, fd) < 0)
		return false;
	for (unsigned int depth = 0; depth < DEPTH_MAX; depth++) {
		if (place_id_equal(&here, root))
			return true;
		int up = open_resolved(own >= 0 ? own : fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC,
			RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS);
		fd_close(own);
		own = up;
		if (up < 0 || place_id_read(&above, up) < 0 || place_id_equal(&above, &here))
			return false;
		here = above;
	}
	return false;
}

bool beneath_by_name(int fd, int root_fd)
{
	char name[PATH_MAX], root[PATH_MAX];
	struct place_id a = { 0 }, b = { 0 };

	if (fd_name(fd, name, sizeof(name)) < 0 || fd_name(root_fd, root, sizeof(root)) < 0)
		return false;
	size_t length = strcmp(root, "/") != 0 ? strlen(root) : 0;
	if (strncmp(name, root, length) != 0 || name[length] != '/')
		return false;
	CLEANUP(fd_closep)
	int found = open_resolved(root_fd, name + length + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	return found >= 0 && place_id_read(&a, fd) == 0 && place_id_read(&b, found) == 0 &&
	       place_id_equal(&a, &b);
}

bool is_entry_of(int fd, int dirfd)
{
	char name[PATH_MAX];
	struct stat a, b;

	if (fd_name(fd, name, sizeof(name)) < 0 || fstat(fd, &a) < 0)
		return false;
	const char *slash = strrchr(name, '/');
	return slash && fstatat(dirfd, slash + 1, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
