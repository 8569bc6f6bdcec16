/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking one class. A directory is read once: its files become samples at once, one statx each
 * where readdir gives the type, its directories are walked after it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include "base/fd.h"
#include "source/beneath.h"
#include "source/escape.h"
#include "source/folder/order.h"
#include "source/folder/walk.h"

#define COUNT_BATCH 256

/* A directory that is being walked, and those above it. */
struct level {
	const struct level *up;
	dev_t dev;
	ino_t ino;
	unsigned int depth;
};

enum entry_kind { ENTRY_OTHER, ENTRY_FILE, ENTRY_DIRECTORY, ENTRY_LINKED_DIRECTORY };

struct entry {
	const char *name;
	enum entry_kind kind;
	uint64_t size; /* of a file */
	int64_t mtime_ns;
};

void walk_init(struct walk *w, struct scan *scan, char *text, size_t size)
{
	*w = (struct walk){ .scan = scan, .text = text, .size = size };
}

void walk_deinit(struct walk *w)
{
	chunk_free(&w->found);
	skipped_free(&w->hidden);
	skipped_free(&w->hidden_beside);
	skipped_free(&w->loops);
}

void names_hash_add(struct index_directory *d, const char *name)
{
	if (strncmp(name, INDEX_NAME, strlen(INDEX_NAME)) == 0)
		return;
	d->names_hash += XXH3_64bits(name, strlen(name));
	d->entries++;
}

/* The sentence of an error at w->path (and name in it, unless NULL). Returns error. */
static int walk_fail(struct walk *w, int error, const char *name, const char *what)
{
	char shown[ESCAPED_MAX], path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", w->path, *w->path && name ? "/" : "",
		name ? name : "");
	escape_name(shown, sizeof(shown), path);
	return sentence_set(error, w->text, w->size, "%s%s%s: %s%s%s", w->scan->display,
		*shown ? "/" : "", shown, what, error == -EXDEV ? "" : ": ",
		error == -EXDEV ? "" : strerror(-error));
}

/* Appends name to w->path; returns the length before, for walk_leave, or a negative errno. */
static int walk_enter(struct walk *w, const char *name)
{
	size_t before = strlen(w->path);
	int n = snprintf(
		w->path + before, sizeof(w->path) - before, "%s%s", before ? "/" : "", name);

	if ((size_t)n >= sizeof(w->path) - before) {
		w->path[before] = '\0';
		return walk_fail(w, -ENAMETOOLONG, NULL, "a path in it cannot be opened");
	}
	return (int)before;
}

static void walk_leave(struct walk *w, int before)
{
	w->path[before] = '\0';
}

static void entry_set_file(struct entry *e, const struct statx *st)
{
	bool regular = S_ISREG(st->stx_mode);

	e->kind = name_is_image(e->name) ? ENTRY_FILE : ENTRY_OTHER;
	e->size = regular ? st->stx_size : 0;
	e->mtime_ns = regular ? statx_ns(&st->stx_mtime) : INT64_MIN;
}

/* A link is a directory or a file by where it ends; broken ones are files, as in torchvision. */
static int classify_link(struct walk *w, struct entry *e)
{
	CLEANUP(fd_closep) int fd = -1;
	struct statx st;
	int before;

	before = walk_enter(w, e->name);
	if (before < 0)
		return before;
	fd = beneath_open(w->scan->root, w->path, O_PATH, w->scan->options);
	walk_leave(w, before);
	e->kind = name_is_image(e->name) ? ENTRY_FILE : ENTRY_OTHER;
	if (fd >= 0 &&
		statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE | STATX_MTIME, &st) == 0) {
		if (S_ISDIR(st.stx_mode))
			e->kind = ENTRY_LINKED_DIRECTORY;
		else
			entry_set_file(e, &st);
		return 0;
	}
	if (e->kind == ENTRY_FILE || fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
		return 0;
	if (fd == -EXDEV)
		return walk_fail(w, -EXDEV, e->name,
			"the link leads out of what may be read here; add its target as a root, or "
			"remove it");
	return walk_fail(w, fd < 0 ? fd : -EIO, e->name, "cannot follow the link");
}

/* By statx, where readdir gave no type, and for the size and time of files. */
static int classify_by_stat(struct walk *w, int fd, struct entry *e)
{
	struct statx st;

	if (statx(fd, e->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_SIZE | STATX_MTIME, &st) <
		0) {
		if (errno == EACCES) /* it may be listed, but not entered */
			return walk_fail(w, -EACCES, NULL, "cannot enter the directory");
		e->kind = name_is_image(e->name) ? ENTRY_FILE : ENTRY_OTHER;
		return 0; /* gone, or failing: found again when it is read */
	}
	if (S_ISDIR(st.stx_mode))
		e->kind = ENTRY_DIRECTORY;
	else if (S_ISLNK(st.stx_mode))
		return classify_link(w, e);
	else
		entry_set_file(e, &st);
	return 0;
}

static int entry_classify(struct walk *w, int fd, unsigned char type, struct entry *e)
{
	e->kind = ENTRY_OTHER;
	e->size = 0;
	e->mtime_ns = INT64_MIN;
	if (type == DT_DIR)
		e->kind = ENTRY_DIRECTORY;
	else if (type == DT_UNKNOWN)
		return classify_by_stat(w, fd, e);
	else if (type == DT_LNK)
		return classify_link(w, e);
	else if (name_is_image(e->name))
		return classify_by_stat(w, fd, e);
	return 0;
}

/* A hidden name: passed over, and kept for the warning if torchvision would count it. */
static void entry_skip(struct walk *w, int fd, unsigned char type, const char *name)
{
	struct statx st;
	int before;

	if (!name_is_image(name) && type == DT_UNKNOWN &&
		statx(fd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) == 0 && S_ISDIR(st.stx_mode))
		type = DT_DIR;
	if (type != DT_DIR && !name_is_image(name))
		return;
	before = walk_enter(w, name);
	if (before < 0)
		return;
	skipped_add(before || type == DT_DIR ? &w->hidden : &w->hidden_beside, w->path);
	walk_leave(w, before);
}

static int add_file(struct walk *w, uint32_t directory, const struct entry *e)
{
	struct index_sample *s = chunk_add_sample(&w->found);
	uint64_t name;
	int r;

	r = s ? chunk_add_name(&w->found, e->name, strlen(e->name), &name) : -ENOMEM;
	if (r < 0)
		return walk_fail(w, r, NULL, "cannot list the directory");
	*s = (struct index_sample){
		.size = e->size, .mtime_ns = e->mtime_ns, .name = name, .directory = directory
	};
	if (++w->uncounted < COUNT_BATCH)
		return 0;
	w->uncounted = 0;
	return scan_count(w->scan, COUNT_BATCH, 0) ? -ECANCELED : 0;
}

static int add_entry(struct walk *w, int fd, const struct dirent *d, uint32_t directory,
	struct names *ret_directories)
{
	struct entry e = { .name = d->d_name };
	int r;

	if (strcmp(e.name, ".") == 0 || strcmp(e.name, "..") == 0)
		return 0;
	names_hash_add(&w->found.directories[directory], e.name);
	if (e.name[0] == '.' && !w->scan->options->hidden) {
		entry_skip(w, fd, d->d_type, e.name);
		return 0;
	}
	r = entry_classify(w, fd, d->d_type, &e);
	if (r < 0 || e.kind == ENTRY_OTHER)
		return r;
	if (e.kind == ENTRY_FILE)
		return add_file(w, directory, &e);
	r = names_add(ret_directories, e.name, e.kind == ENTRY_LINKED_DIRECTORY);
	return r < 0 ? walk_fail(w, r, NULL, "cannot list the directory") : 0;
}

/* The record of the directory fd at w->path; its times are taken before it is read. */
static int add_directory(struct walk *w, const struct statx *st, bool linked)
{
	struct index_directory *d = chunk_add_directory(&w->found);
	uint64_t path;

	if (!d || chunk_add_name(&w->found, w->path, strlen(w->path), &path) < 0)
		return walk_fail(w, -ENOMEM, NULL, "cannot list the directory");
	d->path = path;
	d->inode = st->stx_ino;
	d->mtime_ns = statx_ns(&st->stx_mtime);
	d->ctime_ns = statx_ns(&st->stx_ctime);
	d->flags = linked ? DIRECTORY_LINKED : 0;
	if (d->mtime_ns >= w->scan->recent_ns || d->ctime_ns >= w->scan->recent_ns)
		d->flags |= DIRECTORY_RECENT;
	return 0;
}

/* Reads one directory: files into w->found, in bytewise order; the names of directories. */
static int read_directory(struct walk *w, DIR *dir, const struct statx *st, bool linked,
	struct names *ret_directories)
{
	uint32_t directory = (uint32_t)w->found.directory_count;
	size_t first = w->found.sample_count;
	struct dirent *d;
	int r;

	r = add_directory(w, st, linked);
	if (r < 0)
		return r;
	while (errno = 0, (d = readdir(dir))) {
		r = add_entry(w, dirfd(dir), d, directory, ret_directories);
		if (r < 0)
			return r;
	}
	if (errno)
		return walk_fail(w, -errno, NULL, "cannot read the directory");
	order_names(&w->found, first);
	r = scan_count(w->scan, w->uncounted, 1) ? -ECANCELED : 0;
	w->uncounted = 0;
	return r;
}

static void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int walk_directory(
	struct walk *w, int at, const char *name, bool linked, const struct level *up);

/* The directories in one, in bytewise order (which of several errors is met is then certain). */
static int walk_below(
	struct walk *w, DIR *dir, struct names *directories, bool linked, const struct level *level)
{
	names_sort(directories);
	for (size_t i = 0; i < directories->count; i++) {
		bool link = names_flag(directories, i);
		int before, r;

		before = walk_enter(w, names_get(directories, i));
		if (before < 0)
			return before;
		r = walk_directory(w, link ? -1 : dirfd(dir), names_get(directories, i),
			link || linked, level);
		if (r < 0)
			return r;
		walk_leave(w, before);
	}
	return 0;
}

static bool level_is_above(const struct level *level, const struct level *up)
{
	for (; up; up = up->up)
		if (up->dev == level->dev && up->ino == level->ino)
			return true;
	return false;
}

/* Opens the directory at w->path: name beneath at, or through links from the root if at < 0. */
static int open_directory(struct walk *w, int at, const char *name, DIR **ret)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd, r;

	if (at >= 0)
		fd = openat(at, name, flags | O_NOFOLLOW);
	else
		fd = beneath_open(w->scan->root, w->path, flags, w->scan->options);
	if (fd < 0) {
		r = at >= 0 ? -errno : fd;
		if (r == -EXDEV)
			return walk_fail(w, r, NULL,
				"the link leads out of what may be read here; add its target as a "
				"root, or "
				"remove it");
		return walk_fail(w, r, NULL, "cannot read the directory");
	}
	*ret = fdopendir(fd);
	if (!*ret) {
		r = walk_fail(w, -errno, NULL, "cannot read the directory");
		fd_close(fd);
		return r;
	}
	return 0;
}

/* linked: a link is on the way here. w->path already names this directory. */
static int walk_directory(
	struct walk *w, int at, const char *name, bool linked, const struct level *up)
{
	CLEANUP(dir_closep) DIR *dir = NULL;
	struct level level = { .up = up, .depth = up->depth + 1 };
	struct names directories = NAMES_INIT;
	struct statx st;
	int r;

	r = open_directory(w, at, name, &dir);
	if (r < 0)
		return r;
	if (statx(dirfd(dir), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return walk_fail(w, -errno, NULL, "cannot read the directory");
	level.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	level.ino = st.stx_ino;
	if (level_is_above(&level, up)) {
		skipped_add(&w->loops, w->path);
		return 0;
	}
	if (level.depth > WALK_DEPTH_MAX)
		return walk_fail(w, -ELOOP, NULL, "directories are nested more than 64 deep");
	r = read_directory(w, dir, &st, linked, &directories);
	if (r >= 0)
		r = walk_below(w, dir, &directories, linked, &level);
	names_free(&directories);
	return r;
}

int walk_root(struct walk *w, struct names *ret_directories)
{
	CLEANUP(dir_closep) DIR *dir = NULL;
	struct statx st;
	int r;

	r = open_directory(w, -1, "", &dir);
	if (r < 0)
		return r;
	if (statx(dirfd(dir), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return walk_fail(w, -errno, NULL, "cannot read the directory");
	return read_directory(w, dir, &st, false, ret_directories);
}

int walk_class(struct walk *w, const char *name, bool linked)
{
	struct level root = { .up = NULL };
	struct statx st;
	int r;

	if (statx(w->scan->root, "", AT_EMPTY_PATH, STATX_INO, &st) < 0)
		return walk_fail(w, -errno, NULL, "cannot read the directory");
	root.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	root.ino = st.stx_ino;
	snprintf(w->path, sizeof(w->path), "%s", name);
	r = walk_directory(w, linked ? -1 : w->scan->root, name, linked, &root);
	if (r < 0)
		return r;
	r = order_directories(&w->found);
	return r < 0 ? walk_fail(w, r, NULL, "cannot list the class") : 0;
}
