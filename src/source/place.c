/* SPDX-License-Identifier: Apache-2.0 */
/* Naming, locking and replacing index files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/fd.h"
#include "source/folder/walk.h"
#include "source/place.h"

#define STALE_S 600 /* age at which a temporary file is nobody's */
#define POLL_NS (50 * NS_PER_MS)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* mkdir -p, 0700. */
static int make_directories(const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; *copy && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(copy, 0700); /* what matters is whether the last one can be opened */
		*p = '/';
	}
	mkdir(copy, 0700);
	free(copy);
	return 0;
}

/* A readable stem: what the dataset is called, then the hash of what it is. */
static void stem_cache(struct place *p, const char *display, uint64_t hash)
{
	const char *base = base_name(display);
	char name[33];
	size_t n = 0;

	for (; *base && n < sizeof(name) - 1; base++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
			    *base))
			name[n++] = *base;
	name[n] = '\0';
	snprintf(p->stem, sizeof(p->stem), "%s-%016llx", n ? name : "dataset",
		(unsigned long long)hash);
}

int place_init_cache(struct place *p, const char *cache_dir, const char *display,
	const struct statx *root, uint32_t flags)
{
	uint64_t key[4] = { root->stx_ino, flags, XXH3_64bits(display, strlen(display)),
		root->stx_dev_major ? makedev(root->stx_dev_major, root->stx_dev_minor) : 0 };
	int r = make_directories(cache_dir);

	if (r < 0)
		return r;
	p->dirfd = open(cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dirfd < 0)
		return -errno;
	if (faccessat(p->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = -errno;
	p->shown = r < 0 ? NULL : strdup(cache_dir);
	if (!p->shown) {
		p->dirfd = fd_close(p->dirfd);
		return r < 0 ? r : -ENOMEM;
	}
	stem_cache(p, display, XXH3_64bits(key, sizeof(key)));
	return 0;
}

int place_init_inside(struct place *p, const struct scan *s)
{
	const char *base = base_name(s->display);

	p->inside = true;
	p->dirfd = openat(s->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dirfd < 0)
		return -errno;
	snprintf(p->stem, sizeof(p->stem), INDEX_NAME);
	if (s->file >= 0)
		snprintf(p->stem, sizeof(p->stem), INDEX_NAME "-%016llx",
			(unsigned long long)XXH3_64bits(base, strlen(base)));
	p->shown = s->file < 0 ? strdup(s->display)
			       : strndup(s->display,
					 base > s->display ? (size_t)(base - s->display - 1) : 0);
	if (p->shown)
		return 0;
	p->dirfd = fd_close(p->dirfd);
	return -ENOMEM;
}

void place_deinit(struct place *p)
{
	p->dirfd = fd_close(p->dirfd);
	free(p->shown);
	p->shown = NULL;
}

void place_name(const struct place *p, enum place_file file, char ret[NAME_MAX + 1])
{
	static const char *const suffixes[] = { ".index", ".verdicts", ".lock" };
	const char *suffix = p->inside && file == PLACE_INDEX ? "" : suffixes[file];

	snprintf(ret, NAME_MAX + 1, "%.200s%s", p->stem, suffix);
}

char *place_path(const struct place *p, enum place_file file)
{
	char name[NAME_MAX + 1], *path;

	place_name(p, file, name);
	if (asprintf(&path, "%s%s%s", p->shown, *p->shown ? "/" : "", name) < 0)
		return NULL;
	return path;
}

int place_open(const struct place *p, enum place_file file, struct stat *ret_stat)
{
	CLEANUP(fd_closep) int fd = -1;
	char name[NAME_MAX + 1];
	struct stat st;

	place_name(p, file, name);
	fd = openat(p->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_stat = st;
	return fd_steal(&fd);
}

int place_lock(const struct place *p, struct scan *s)
{
	CLEANUP(fd_closep) int fd = -1;
	char name[NAME_MAX + 1];
	unsigned int waits = 0;

	place_name(p, PLACE_LOCK, name);
	fd = openat(p->dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		p->inside ? 0644 : 0600);
	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		struct timespec pause = { .tv_nsec = POLL_NS };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return -1;
		if (++waits % 2 == 0 && scan_canceled(s))
			return scan_set_canceled(s);
		nanosleep(&pause, NULL);
	}
	return fd_steal(&fd);
}

void place_sweep(const struct place *p)
{
	size_t stem = strlen(p->stem);
	struct dirent *e;
	struct stat st;
	DIR *dir;
	int fd;

	fd = openat(p->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, p->stem, stem) == 0 && strstr(e->d_name + stem, ".tmp-") &&
			fstatat(p->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && st.st_mtime + STALE_S < time(NULL))
			unlinkat(p->dirfd, e->d_name, 0);
	closedir(dir);
}

static int write_all(int fd, const struct iovec *part)
{
	const char *at = part->iov_base;
	size_t left = part->iov_len;

	while (left) {
		ssize_t n = write(fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

static int write_parts(int fd, const struct iovec *parts, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = write_all(fd, &parts[i]);
	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

int place_replace(
	const struct place *p, enum place_file file, const struct iovec *parts, size_t count)
{
	char name[NAME_MAX + 1], temporary[NAME_MAX + 32];
	CLEANUP(fd_closep) int fd = -1;
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	place_name(p, file, name);
	snprintf(temporary, sizeof(temporary), "%s.tmp-%016llx", name, (unsigned long long)random);
	fd = openat(p->dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		p->inside ? 0644 : 0600);
	if (fd < 0)
		return -errno;
	r = write_parts(fd, parts, count);
	if (r >= 0 && renameat(p->dirfd, temporary, p->dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(p->dirfd, temporary, 0);
		return r;
	}
	fsync(p->dirfd); /* the name too; where that cannot be synced, a crash costs a scan */
	return 0;
}
