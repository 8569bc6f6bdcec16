/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder format: torchvision's ImageFolder, and a flat folder of images. The classes are the
 * directories directly in it, in bytewise order; files beside them are not counted. Without any
 * directory the files are the samples: no classes, and label 0 for all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/escape.h"
#include "source/folder/check.h"
#include "source/folder/walk.h"
#include "source/format.h"

struct class_walk {
	struct skipped hidden;
	struct skipped loops;
};

struct folder {
	struct scan *scan;
	struct names classes;
	struct skipped hidden;
	struct skipped beside; /* hidden files in the dataset's directory itself */
	struct skipped loops;
	struct class_walk *walks; /* one a class; each its task's */
	struct chunk *chunks;     /* the directory itself, then one a class; each its task's */
	int64_t *labels;
	const char **class_names;
};

static int folder_root_task(void *context, size_t task, char *text, size_t size)
{
	struct folder *f = context;
	struct walk w;
	int r;

	(void)task;
	walk_init(&w, f->scan, text, size);
	r = walk_root(&w, &f->classes);
	if (r >= 0) {
		f->chunks[0] = w.found;
		f->hidden = w.hidden;
		f->beside = w.hidden_beside;
		w.found = (struct chunk){ .samples = NULL };
		w.hidden = (struct skipped){ .count = 0 };
		w.hidden_beside = (struct skipped){ .count = 0 };
	}
	walk_deinit(&w);
	return r;
}

static int folder_class_task(void *context, size_t task, char *text, size_t size)
{
	struct folder *f = context;
	struct walk w;
	int r;

	walk_init(&w, f->scan, text, size);
	r = walk_class(&w, names_get(&f->classes, task), names_flag(&f->classes, task));
	if (r >= 0) {
		for (size_t i = 0; i < w.found.sample_count; i++)
			w.found.samples[i].label = (uint32_t)task;
		f->chunks[1 + task] = w.found;
		f->walks[task] = (struct class_walk){ .hidden = w.hidden, .loops = w.loops };
		w.found = (struct chunk){ .samples = NULL };
		w.hidden = (struct skipped){ .count = 0 };
		w.loops = (struct skipped){ .count = 0 };
	}
	walk_deinit(&w);
	return r;
}

static void folder_deinit(struct folder *f)
{
	for (size_t i = 0; i < f->classes.count; i++) {
		if (f->walks) {
			skipped_free(&f->walks[i].hidden);
			skipped_free(&f->walks[i].loops);
		}
		if (f->class_names) /* the chunks are as many as the classes from there on */
			chunk_free(&f->chunks[1 + i]);
	}
	if (f->chunks)
		chunk_free(&f->chunks[0]);
	free(f->walks);
	free(f->chunks);
	free(f->labels);
	free(f->class_names);
	names_free(&f->classes);
	skipped_free(&f->hidden);
	skipped_free(&f->beside);
	skipped_free(&f->loops);
}

static int folder_memory(const struct folder *f)
{
	return sentence_set(-ENOMEM, f->scan->text, f->scan->size,
		"%s: not enough memory to list it", f->scan->display);
}

/* Room for the classes, once they are known. */
static int folder_prepare(struct folder *f)
{
	size_t n = f->classes.count;
	struct chunk *chunks;

	chunks = realloc(f->chunks, (n + 1) * sizeof(*chunks));
	if (!chunks)
		return folder_memory(f);
	memset(chunks + 1, 0, n * sizeof(*chunks));
	f->chunks = chunks;
	f->labels = calloc(n + 1, sizeof(*f->labels));
	f->walks = calloc(n + 1, sizeof(*f->walks));
	f->class_names = calloc(n + 1, sizeof(*f->class_names));
	if (!f->labels || !f->walks || !f->class_names)
		return folder_memory(f);
	for (size_t i = 0; i < n; i++) {
		f->labels[i] = (int64_t)i;
		f->class_names[i] = names_get(&f->classes, i);
	}
	return 0;
}

/* Without classes the files in the directory count, else only what is below it. */
static void folder_settle(struct folder *f)
{
	if (f->classes.count) {
		f->chunks[0].sample_count = 0;
	} else {
		skipped_merge(&f->hidden, &f->beside);
	}
	for (size_t i = 0; i < f->classes.count; i++) {
		skipped_merge(&f->hidden, &f->walks[i].hidden);
		skipped_merge(&f->loops, &f->walks[i].loops);
	}
}

static int folder_check_filled(const struct folder *f)
{
	struct scan *s = f->scan;
	char shown[ESCAPED_MAX];
	size_t samples = f->chunks[0].sample_count, empty = 0;
	const char *first = NULL;

	for (size_t i = 0; i < f->classes.count; i++) {
		samples += f->chunks[1 + i].sample_count;
		if (f->chunks[1 + i].sample_count == 0 && empty++ == 0)
			first = names_get(&f->classes, i);
	}
	if (samples == 0)
		return sentence_set(-ENODATA, s->text, s->size,
			"%s: has no samples: neither directories of classes with images in them, "
			"nor "
			"images (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp)%s",
			s->display, f->hidden.count ? "; hidden names do not count" : "");
	if (empty == 0 || s->options->allow_empty)
		return 0;
	escape_name(shown, sizeof(shown), first);
	if (empty > 1)
		return sentence_set(-ENODATA, s->text, s->size,
			"%s/%s: %zu classes, this one first, have no samples; remove them, or set "
			"allow_empty to keep their numbers",
			s->display, shown, empty);
	return sentence_set(-ENODATA, s->text, s->size,
		"%s/%s: the class has no samples; remove it, or set allow_empty to keep its number",
		s->display, shown);
}

/* Appends "a, b, c" or "a, b, c, …" */
static void append_names(char *text, size_t size, const struct skipped *s)
{
	char shown[128];

	for (size_t i = 0; i < SKIPPED_KEPT && s->first[i]; i++) {
		size_t at = strlen(text);

		snprintf(text + at, size - at, "%s%s", i ? ", " : "",
			escape_name(shown, sizeof(shown), s->first[i]));
	}
	if (s->count > SKIPPED_KEPT)
		strncat(text, ", ...", size - strlen(text) - 1);
}

/* At most one warning sentence; it is kept in the index and said at every open. */
static void folder_warn(const struct folder *f)
{
	char *text = f->scan->warning;
	size_t size = sizeof(f->scan->warning), at;

	text[0] = '\0';
	if (f->hidden.count) {
		snprintf(text, size, "%.256s: skipped %llu hidden name%s (", f->scan->display,
			(unsigned long long)f->hidden.count, f->hidden.count > 1 ? "s" : "");
		append_names(text, size, &f->hidden);
		strncat(text,
			"), which torchvision's ImageFolder would count; the option hidden counts "
			"them",
			size - strlen(text) - 1);
	}
	if (f->loops.count) {
		at = strlen(text);
		snprintf(text + at, size - at,
			at ? "; not followed, as they lead back: "
			   : "%.256s: links not followed, as they lead back: ",
			f->scan->display);
		append_names(text, size, &f->loops);
	}
}

static int folder_build(
	const struct folder *f, uint32_t flags, const struct statx *root, struct image *ret)
{
	struct image_parts parts = {
		.format = folder_format.number,
		.flags = flags,
		.root_inode = root->stx_ino,
		.chunks = f->chunks,
		.chunk_count = 1 + f->classes.count,
		.classes = f->class_names,
		.class_count = f->classes.count,
		.labels = f->labels,
		.label_count = f->classes.count ? f->classes.count : 1,
		.warning = f->scan->warning,
	};
	int r;

	if (f->scan->options->in_place)
		f->chunks[0].directories[0].flags |= DIRECTORY_NO_TIME;
	r = image_build(ret, &parts);
	if (r == -ENOMEM)
		return folder_memory(f);
	if (r < 0)
		return sentence_set(r, f->scan->text, f->scan->size, "%s: cannot be indexed: %s",
			f->scan->display, strerror(-r));
	return 0;
}

static int folder_scan(struct scan *s, uint32_t flags, const struct statx *root, struct image *ret)
{
	struct folder f = { .scan = s };
	int r;

	f.chunks = calloc(1, sizeof(*f.chunks));
	if (!f.chunks)
		return folder_memory(&f);
	r = crew_run(s, 1, folder_root_task, &f);
	if (r >= 0) {
		names_sort(&f.classes);
		r = folder_prepare(&f);
	}
	if (r >= 0)
		r = crew_run(s, f.classes.count, folder_class_task, &f);
	if (r >= 0) {
		folder_settle(&f);
		r = folder_check_filled(&f);
	}
	if (r >= 0) {
		folder_warn(&f);
		r = folder_build(&f, flags, root, ret);
	}
	folder_deinit(&f);
	return r;
}

const struct source_format folder_format = {
	.name = "folder",
	.number = 1,
	.scan = folder_scan,
	.check = folder_check,
};
