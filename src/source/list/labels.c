/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a list: integers as they are if all are, else classes sorted by name, bytewise. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/list/lines.h"

static int labels_memory(struct scan *s)
{
	return sentence_set(
		-ENOMEM, s->text, s->size, "%s: not enough memory to read it", s->display);
}

static bool label_is_integer(const char *label)
{
	label += *label == '-';
	return *label && label[strspn(label, "0123456789")] == '\0';
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_integers(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* Sorts and drops repeats; the number left. */
static size_t distinct(
	void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	char *at = array;
	size_t kept = 0;

	qsort(array, count, size, compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && compare(at + (kept - 1) * size, at + i * size) == 0)
			continue;
		memmove(at + kept++ * size, at + i * size, size);
	}
	return kept;
}

static int label_classes(struct lines *l, struct scan *s)
{
	size_t n = 0;

	l->classes = malloc(l->count * sizeof(*l->classes));
	if (!l->classes)
		return labels_memory(s);
	for (size_t i = 0; i < l->count; i++) /* runs of one label are common */
		if (n == 0 || strcmp(l->classes[n - 1], l->lines[i].label) != 0)
			l->classes[n++] = l->lines[i].label;
	n = distinct(l->classes, n, sizeof(*l->classes), compare_strings);
	l->class_count = n;
	l->label_count = n;
	l->labels = malloc(n * sizeof(*l->labels));
	if (!l->labels)
		return labels_memory(s);
	for (size_t i = 0; i < n; i++)
		l->labels[i] = (int64_t)i;
	for (size_t i = 0; i < l->count; i++) {
		const char **found = bsearch(
			&l->lines[i].label, l->classes, n, sizeof(*l->classes), compare_strings);

		l->lines[i].number = (uint32_t)(found - l->classes);
	}
	return 0;
}

static int label_integers(struct lines *l, struct scan *s)
{
	l->labels = malloc(l->count * sizeof(*l->labels));
	if (!l->labels)
		return labels_memory(s);
	for (size_t i = 0; i < l->count; i++) {
		errno = 0;
		l->labels[i] = strtoll(l->lines[i].label, NULL, 10);
		if (errno)
			return sentence_set(-ERANGE, s->text, s->size,
				"%s: line %zu has a label that does not fit 64 bits", s->display,
				i + 1);
	}
	l->label_count = distinct(l->labels, l->count, sizeof(*l->labels), compare_integers);
	for (size_t i = 0; i < l->count; i++) {
		int64_t value = strtoll(l->lines[i].label, NULL, 10);
		const int64_t *found = bsearch(
			&value, l->labels, l->label_count, sizeof(*l->labels), compare_integers);

		l->lines[i].number = (uint32_t)(found - l->labels);
	}
	return 0;
}

int lines_label(struct lines *l, struct scan *s)
{
	for (size_t i = 0; i < l->count; i++)
		if (!label_is_integer(l->lines[i].label))
			return label_classes(l, s);
	return label_integers(l, s);
}
