/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and splitting a list file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/fd.h"
#include "source/list/lines.h"
#include "source/names.h"

#define SNIFF 4096 /* bytes in which the first line's tab must come: paths are shorter */

void lines_free(struct lines *l)
{
	free(l->text);
	free(l->lines);
	free(l->classes);
	free(l->labels);
	*l = (struct lines){ .text = NULL };
}

static int lines_fail(struct scan *s, size_t number, const char *what)
{
	return sentence_set(-EINVAL, s->text, s->size, "%s: line %zu %s", s->display, number, what);
}

/* Drops "." and empty components in place; what is wrong with the path, or NULL. */
static const char *path_settle(char *path)
{
	char *from = path, *to = path;

	if (*path == '/')
		return "has an absolute path; paths are relative to the list's directory";
	while (*from) {
		size_t length = strcspn(from, "/");

		if (length == 2 && from[0] == '.' && from[1] == '.')
			return "has a path with .. in it; list files from below the list's "
			       "directory";
		if (length && !(length == 1 && from[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, from, length);
			to += length;
		}
		from += length;
		from += *from == '/';
	}
	*to = '\0';
	if (to == path)
		return "has no path before its tab";
	if (to - path >= PATH_MAX)
		return "has a path that is too long to be opened";
	return NULL;
}

/* line is NUL-terminated, and length its bytes. What is wrong with it, or NULL. */
static const char *line_parse(char *line, size_t length, struct line *ret)
{
	char *tab;

	if (length && line[length - 1] == '\r')
		line[--length] = '\0';
	if (memchr(line, '\0', length))
		return "has a NUL byte in it; is this a list of path<TAB>label?";
	tab = memchr(line, '\t', length);
	if (!tab)
		return "has no tab between a path and a label";
	*tab = '\0';
	ret->path = line;
	ret->label = tab + 1;
	if (!*ret->label)
		return "has no label after its tab";
	if (strchr(ret->label, '\t'))
		return "has more than one tab";
	return path_settle(ret->path);
}

static int lines_parse(struct lines *l, struct scan *s, size_t size)
{
	char *at = l->text, *end = at + size;

	while (at < end) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		struct line *lines;
		const char *wrong;

		if (!stop)
			stop = end;
		*stop = '\0';
		lines = names_grow(l->lines, &l->room, l->count, 1, sizeof(*lines));
		if (!lines)
			return sentence_set(-ENOMEM, s->text, s->size,
				"%s: not enough memory to read it", s->display);
		l->lines = lines;
		l->lines[l->count] = (struct line){ .path = NULL };
		wrong = line_parse(at, (size_t)(stop - at), &l->lines[l->count]);
		l->count++;
		if (wrong)
			return lines_fail(s, l->count, wrong);
		at = stop + 1;
	}
	if (l->count == 0)
		return sentence_set(-ENODATA, s->text, s->size,
			"%s: the list is empty; it needs a line path<TAB>label for each sample",
			s->display);
	return 0;
}

/* Up to size bytes; their number, or a negative errno. */
static ssize_t read_all(int fd, char *ret, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, ret + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Before anything is allocated by the file's size: does it begin as a list? */
static int lines_sniff(struct scan *s, const char *head, size_t length)
{
	static const char lfs[] = "version https://git-lfs";
	size_t line = strcspn(head, "\n");

	if (strncmp(head, lfs, sizeof(lfs) - 1) == 0)
		return sentence_set(-EINVAL, s->text, s->size,
			"%s: is a Git LFS pointer and not the list itself; run git lfs pull",
			s->display);
	if (length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
		return lines_fail(s, 1, "begins with a byte order mark; save the list without it");
	if (length && !memchr(head, '\t', line))
		return lines_fail(s, 1,
			"has no tab between a path and a label; a dataset is a directory or such a "
			"list");
	return 0;
}

/* s->file is O_PATH; this opens the very file that it names, again. */
static int open_file(const struct scan *s)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", s->file);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int lines_hash(const struct scan *s, uint64_t *ret)
{
	CLEANUP(fd_closep) int fd = open_file(s);
	XXH3_state_t *state;
	char buffer[16384];
	ssize_t n;

	if (fd < 0)
		return fd;
	state = XXH3_createState();
	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset(state);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		XXH3_64bits_update(state, buffer, (size_t)n);
	*ret = XXH3_64bits_digest(state);
	n = n < 0 ? -errno : 0;
	XXH3_freeState(state);
	return (int)n;
}

int lines_read(struct lines *l, struct scan *s, uint64_t size)
{
	CLEANUP(fd_closep) int fd = open_file(s);
	char head[SNIFF + 2];
	ssize_t n;
	int r;

	n = fd < 0 ? fd : read_all(fd, head, SNIFF + 1);
	if (n < 0)
		return sentence_set((int)n, s->text, s->size, "%s: cannot read the list: %s",
			s->display, strerror((int)-n));
	head[n] = '\0';
	r = lines_sniff(s, head, (size_t)n);
	if (r < 0)
		return r;
	l->text = size < SIZE_MAX ? malloc(size + 1) : NULL;
	if (!l->text)
		return sentence_set(
			-ENOMEM, s->text, s->size, "%s: not enough memory to read it", s->display);
	n = read_all(fd, l->text, size);
	if (n < 0)
		return sentence_set((int)n, s->text, s->size, "%s: cannot read the list: %s",
			s->display, strerror((int)-n));
	l->hash = XXH3_64bits(l->text, (size_t)n);
	return lines_parse(l, s, (size_t)n);
}
