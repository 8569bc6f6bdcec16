/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a list file: one `path<TAB>label` a line, ended by \n or \r\n. Paths are relative to
 * the list's directory and stay below it; bytes, whatever they are, but no NUL.
 */
#ifndef SOURCE_LIST_LINES_H
#define SOURCE_LIST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/scan.h"

struct line {
	char *path; /* without . and empty components */
	char *label;
	uint32_t number; /* of its label in lines.labels */
};

struct lines {
	char *text;
	struct line *lines;
	size_t count;
	size_t room;
	/* the distinct labels: classes in bytewise order, or none if all are integers */
	const char **classes;
	size_t class_count;
	int64_t *labels; /* class numbers, or the integers in ascending order */
	size_t label_count;
	uint64_t hash; /* XXH3-64 of the file's bytes */
};

/* Reads and parses s->file of size bytes. Errors name the line. */
int lines_read(struct lines *l, struct scan *s, uint64_t size);
/* The hash of s->file as it is now; a negative errno. */
int lines_hash(const struct scan *s, uint64_t *ret);
/* Finds classes and labels. */
int lines_label(struct lines *l, struct scan *s);
void lines_free(struct lines *l);

#endif
