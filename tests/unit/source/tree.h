/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files for the tests of room source: made in a temporary directory, removed after. */
#ifndef TESTS_SOURCE_TREE_H
#define TESTS_SOURCE_TREE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "source/source.h"

struct tree {
	char path[64]; /* holds data/ and cache/ */
	char data[80];
	char cache[80];
	char text[1024]; /* the sentence of the last open */
	char warnings[4096];
	unsigned int warned;
	struct dataset_options options;
};

static inline int tree_remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_DNR)
		chmod(path, 0700);
	remove(path);
	return 0;
}

static inline void tree_warned(void *context, const char *sentence)
{
	struct tree *t = context;

	t->warned++;
	strncat(t->warnings, sentence, sizeof(t->warnings) - strlen(t->warnings) - 2);
	strcat(t->warnings, "\n");
}

static inline int tree_setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	strcpy(t->path, "/tmp/feeder-source-XXXXXX");
	if (!mkdtemp(t->path))
		return -1;
	chmod(t->path, 0755);
	snprintf(t->data, sizeof(t->data), "%s/data", t->path);
	snprintf(t->cache, sizeof(t->cache), "%s/cache", t->path);
	mkdir(t->data, 0755);
	t->options.cache_dir = t->cache;
	t->options.warning = tree_warned;
	t->options.context = t;
	*state = t;
	return 0;
}

static inline int tree_teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static inline const char *tree_at(const struct tree *t, const char *name)
{
	static _Thread_local char paths[4][PATH_MAX];
	static _Thread_local unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", t->data, name);
	return path;
}

/* Makes name below data, and the directories on the way. */
static inline void tree_file(const struct tree *t, const char *name, const char *content)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s", tree_at(t, name));
	for (char *p = path + strlen(t->data) + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0755);
			*p = '/';
		}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static inline void tree_directory(const struct tree *t, const char *name)
{
	assert_int_equal(mkdir(tree_at(t, name), 0755), 0);
}

static inline void tree_link(const struct tree *t, const char *target, const char *name)
{
	assert_int_equal(symlink(target, tree_at(t, name)), 0);
}

/* Opens data, or a list file in it. */
static inline int tree_open_at(struct tree *t, const char *name, struct dataset **ret)
{
	char display[PATH_MAX];
	int fd, dirfd, r;

	snprintf(display, sizeof(display), "%s%s%s", t->data, *name ? "/" : "", name);
	fd = open(display, O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	dirfd = *name ? open(t->data, O_PATH | O_CLOEXEC) : -1;
	t->text[0] = '\0';
	t->warnings[0] = '\0';
	t->warned = 0;
	r = dataset_open(ret, fd, dirfd, display, &t->options, t->text, sizeof(t->text));
	close(fd);
	if (dirfd >= 0)
		close(dirfd);
	return r;
}

static inline struct dataset *tree_open(struct tree *t)
{
	struct dataset *d = NULL;
	int r = tree_open_at(t, "", &d);

	if (r < 0)
		fail_msg("%s (%s)", t->text, strerror(-r));
	return d;
}

/* The open fails with error, and its sentence has all of the words (NULL ends them). */
static inline void tree_refused(struct tree *t, const char *name, int error, ...)
{
	struct dataset *d = NULL;
	const char *word;
	va_list args;

	assert_int_equal(tree_open_at(t, name, &d), error);
	assert_null(d);
	va_start(args, error);
	while ((word = va_arg(args, const char *)))
		if (!strstr(t->text, word))
			fail_msg("no \"%s\" in: %s", word, t->text);
	va_end(args);
}

/* The samples are these paths with these labels: "path label", …, NULL. */
static inline void assert_samples(const struct dataset *d, const char *const *expected)
{
	uint64_t n = dataset_length(d);

	for (uint64_t i = 0; i < n && expected[i]; i++) {
		char path[PATH_MAX], line[PATH_MAX + 32];
		struct sample s;

		assert_true(dataset_path(d, i, path, sizeof(path)) > 0);
		dataset_sample(d, i, &s);
		snprintf(line, sizeof(line), "%s %lld", path, (long long)s.label);
		assert_string_equal(line, expected[i]);
	}
	for (uint64_t i = 0; i < n; i++)
		assert_non_null(expected[i]);
	assert_null(expected[n]);
}

#define SAMPLES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Without root's powers, so that permissions count. */
static inline void tree_without_power(uid_t *before)
{
	*before = geteuid();
	if (*before == 0)
		assert_int_equal(seteuid(65534), 0);
}

static inline void tree_with_power(uid_t before)
{
	if (before == 0)
		assert_int_equal(seteuid(0), 0);
}

#endif
