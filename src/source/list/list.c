/* SPDX-License-Identifier: Apache-2.0 */
/* The list format: samples and labels in the order of a file's lines (source/list/lines.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/fd.h"
#include "source/beneath.h"
#include "source/format.h"
#include "source/list/lines.h"

#define LIST_PART   16384 /* lines a task */
#define COUNT_BATCH 256

struct list_scan {
	struct scan *scan;
	struct lines lines;
	struct chunk *chunks; /* one a task; each its task's */
	size_t chunk_count;
};

/* The directories of one chunk, found by path: open addressing, number + 1, 0 = free. */
struct directory_set {
	struct chunk *chunk;
	uint32_t *slots;
	size_t mask;
};

static size_t directory_slot(const struct directory_set *set, const char *path, size_t length)
{
	size_t at = XXH3_64bits(path, length) & set->mask;

	while (set->slots[at]) {
		const char *other =
			set->chunk->names + set->chunk->directories[set->slots[at] - 1].path;

		if (strncmp(other, path, length) == 0 && !other[length])
			break;
		at = (at + 1) & set->mask;
	}
	return at;
}

/* The number of the directory path (length bytes of it); -ENOMEM. A set never gets full. */
static int directory_get(
	struct directory_set *set, const char *path, size_t length, uint32_t *ret_number)
{
	size_t slot = directory_slot(set, path, length);
	struct index_directory *d;
	uint64_t name;

	if (!set->slots[slot]) {
		d = chunk_add_directory(set->chunk);
		if (!d || chunk_add_name(set->chunk, path, length, &name) < 0)
			return -ENOMEM;
		d->path = name;
		set->slots[slot] = (uint32_t)set->chunk->directory_count;
	}
	*ret_number = set->slots[slot] - 1;
	return 0;
}

/* Size and time of the file at path, if there is a regular one that may be looked at. */
static void sample_look(struct scan *s, const char *path, struct index_sample *ret)
{
	CLEANUP(fd_closep) int fd = beneath_open(s->root, path, O_PATH, s->options);
	struct statx st;

	ret->mtime_ns = INT64_MIN;
	if (fd < 0 ||
		statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE | STATX_MTIME, &st) < 0 ||
		!S_ISREG(st.stx_mode))
		return;
	ret->size = st.stx_size;
	ret->mtime_ns = statx_ns(&st.stx_mtime);
}

static int list_add(struct directory_set *set, struct scan *s, const struct line *line)
{
	const char *slash = strrchr(line->path, '/');
	const char *name = slash ? slash + 1 : line->path;
	struct index_sample *sample = chunk_add_sample(set->chunk);

	if (!sample ||
		directory_get(set, line->path, slash ? (size_t)(slash - line->path) : 0,
			&sample->directory) < 0 ||
		chunk_add_name(set->chunk, name, strlen(name), &sample->name) < 0)
		return -ENOMEM;
	sample->label = line->number;
	sample_look(s, line->path, sample);
	return 0;
}

static int list_task(void *context, size_t task, char *text, size_t size)
{
	struct list_scan *l = context;
	struct directory_set set = { .chunk = &l->chunks[task], .mask = 2 * LIST_PART - 1 };
	size_t first = task * LIST_PART, end = first + LIST_PART, at;
	int r = 0;

	if (end > l->lines.count)
		end = l->lines.count;
	set.slots = calloc(set.mask + 1, sizeof(*set.slots));
	if (!set.slots)
		r = -ENOMEM;
	for (at = first; r >= 0 && at < end; at++) {
		r = list_add(&set, l->scan, &l->lines.lines[at]);
		if (r >= 0 && (at % COUNT_BATCH) == COUNT_BATCH - 1 &&
			scan_count(l->scan, COUNT_BATCH, 0))
			r = -ECANCELED;
	}
	free(set.slots);
	if (r == -ENOMEM)
		sentence_set(r, text, size, "%s: not enough memory to list it", l->scan->display);
	return r;
}

/* Whether the list's times are so near that another change might have the same. */
static bool root_is_recent(const struct scan *s, const struct statx *root)
{
	return statx_ns(&root->stx_mtime) >= s->recent_ns ||
	       statx_ns(&root->stx_ctime) >= s->recent_ns;
}

static int list_build(
	const struct list_scan *l, uint32_t flags, const struct statx *root, struct image *ret)
{
	struct image_parts parts = {
		.format = list_format.number,
		.flags = flags,
		.root_inode = root->stx_ino,
		.root_size = root->stx_size,
		.root_mtime_ns = statx_ns(&root->stx_mtime),
		.root_ctime_ns = statx_ns(&root->stx_ctime),
		.root_hash = root_is_recent(l->scan, root) ? l->lines.hash : 0,
		.chunks = l->chunks,
		.chunk_count = l->chunk_count,
		.classes = l->lines.classes,
		.class_count = l->lines.class_count,
		.labels = l->lines.labels,
		.label_count = l->lines.label_count,
		.warning = l->scan->warning,
	};
	int r = image_build(ret, &parts);

	if (r < 0)
		return sentence_set(r, l->scan->text, l->scan->size, "%s: cannot be indexed: %s",
			l->scan->display, strerror(-r));
	return 0;
}

static int list_run(struct list_scan *l)
{
	struct scan *s = l->scan;

	l->chunk_count = (l->lines.count + LIST_PART - 1) / LIST_PART;
	l->chunks = calloc(l->chunk_count, sizeof(*l->chunks));
	if (!l->chunks)
		return sentence_set(
			-ENOMEM, s->text, s->size, "%s: not enough memory to list it", s->display);
	return crew_run(s, l->chunk_count, list_task, l);
}

static int list_scan_file(
	struct scan *s, uint32_t flags, const struct statx *root, struct image *ret)
{
	struct list_scan l = { .scan = s };
	int r;

	r = lines_read(&l.lines, s, root->stx_size);
	if (r >= 0)
		r = lines_label(&l.lines, s);
	if (r >= 0)
		r = list_run(&l);
	if (r >= 0)
		r = list_build(&l, flags, root, ret);
	for (size_t i = 0; l.chunks && i < l.chunk_count; i++)
		chunk_free(&l.chunks[i]);
	free(l.chunks);
	lines_free(&l.lines);
	return r;
}

static int list_check(struct scan *s, const struct image *image, const struct statx *root)
{
	const struct index_header *h = image->header;
	uint64_t hash;

	if (h->root_inode != root->stx_ino || h->root_size != root->stx_size ||
		h->root_mtime_ns != statx_ns(&root->stx_mtime) ||
		h->root_ctime_ns != statx_ns(&root->stx_ctime))
		return 1;
	if (!h->root_hash)
		return 0;
	return lines_hash(s, &hash) < 0 || hash != h->root_hash;
}

const struct source_format list_format = {
	.name = "list",
	.number = 2,
	.scan = list_scan_file,
	.check = list_check,
};
