/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset: its image, its verdicts, and how it is opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/refcount.h"
#include "source/escape.h"
#include "source/index.h"
#include "source/source.h"
#include "source/verdicts.h"

struct dataset {
	struct refcount references;

	/* constant after start */
	struct image image;
	struct place place; /* where verdicts are kept; none = in memory only */
	const char *format;
	char *display;
	char *index_path;
	int dirfd;
	bool index_used;

	struct verdicts verdicts;
};

/* One open, while it goes on. */
struct opening {
	struct dataset *d;
	struct scan scan;
	struct index_key key;
	struct statx root;
	const struct dataset_options *options;
	bool stored;  /* the image has a file: index_path */
	bool damaged; /* and it was said */
};

static void warn(const struct opening *o, const char *sentence)
{
	char plain[SENTENCE_MAX];

	if (o->options->warning)
		o->options->warning(
			o->options->context, escape_name(plain, sizeof(plain), sentence));
}

static int opening_memory(const struct opening *o)
{
	return sentence_set(-ENOMEM, o->scan.text, o->scan.size, "%s: not enough memory to open it",
		o->scan.display);
}

static int set_index_path(struct opening *o, const struct place *p)
{
	char *path = place_path(p, PLACE_INDEX);

	if (!path)
		return opening_memory(o);
	free(o->d->index_path);
	o->d->index_path = path;
	o->stored = true;
	return 0;
}

/* index_load from one place; a warning is said at once. */
static int try_load(struct opening *o, const struct place *p)
{
	char warning[SENTENCE_MAX];
	int r;

	r = index_load(p, &o->scan, &o->key, &o->d->image, warning, sizeof(warning));
	if (r == INDEX_DAMAGED && !o->damaged) {
		o->damaged = true;
		warn(o, warning);
	}
	if (r != 0)
		return r;
	o->d->index_used = true;
	return set_index_path(o, p);
}

static void warn_unkept(const struct opening *o, const char *where, int error)
{
	char text[SENTENCE_MAX];

	snprintf(text, sizeof(text),
		"%s: its index cannot be kept in %s (%s); it stays in memory, and the next open "
		"scans again",
		o->scan.display, where, strerror(-error));
	warn(o, text);
}

/* Where this open would keep an index; there may be none. */
static void find_place(struct opening *o)
{
	const struct dataset_options *options = o->options;
	struct place *p = &o->d->place;
	int r;

	if (options->in_place) {
		r = place_init_inside(p, &o->scan);
		if (r < 0)
			warn_unkept(o, "the dataset's directory", r);
	} else if (options->cache_dir) {
		r = place_init_cache(
			p, options->cache_dir, o->scan.display, &o->root, o->key.flags);
		if (r < 0)
			warn_unkept(o, options->cache_dir, r);
	}
}

/* An index that feeder-index --in-place left, for those who keep theirs elsewhere. */
static int try_inside(struct opening *o)
{
	struct place inside = PLACE_INIT;
	int r = INDEX_NONE;

	if (!o->options->in_place && place_init_inside(&inside, &o->scan) >= 0)
		r = try_load(o, &inside);
	place_deinit(&inside);
	return r;
}

static int scan_and_store(struct opening *o)
{
	const struct place *p = &o->d->place;
	int r;

	scan_init(&o->scan);
	r = o->key.format->scan(&o->scan, o->key.flags, &o->root, &o->d->image);
	if (r < 0 || p->dirfd < 0)
		return r;
	r = index_store(p, &o->d->image);
	if (r >= 0)
		return set_index_path(o, p);
	warn_unkept(o, p->shown, r);
	return 0;
}

/* Of several processes one scans; the others wait for its index. */
static int scan_alone(struct opening *o)
{
	const struct place *p = &o->d->place;
	CLEANUP(fd_closep) int lock = -1;
	int r;

	if (p->dirfd >= 0) {
		lock = place_lock(p, &o->scan);
		if (lock == -ECANCELED)
			return lock;
	}
	if (lock >= 0) {
		place_sweep(p);
		r = o->options->rebuild ? INDEX_NONE : try_load(o, p);
		if (r <= 0)
			return r;
	}
	return scan_and_store(o);
}

static int opening_fill(struct opening *o)
{
	struct dataset *d = o->d;
	int r = INDEX_NONE;

	find_place(o);
	if (!o->options->rebuild) {
		r = try_load(o, &d->place);
		if (r > 0)
			r = try_inside(o);
	}
	if (r > 0)
		r = scan_alone(o);
	if (r < 0)
		return r;
	if (d->image.header->warning)
		warn(o, d->image.names + d->image.header->warning);
	if (verdicts_init(&d->verdicts, d->image.header->sample_count, d->image.header->checksum) <
		0)
		return opening_memory(o);
	if (!o->stored) /* nothing to bind verdicts to */
		place_deinit(&d->place);
	verdicts_load(&d->verdicts, &d->place);
	return 0;
}

/* What fd is, and with which options; the descriptors that stay. */
static int opening_init(struct opening *o, int fd, int dirfd, const char *display)
{
	struct dataset *d = o->d;
	size_t length = strlen(display);

	while (length > 1 && display[length - 1] == '/')
		length--;
	d->display = strndup(display, length);
	d->index_path = strdup("");
	if (!d->display || !d->index_path)
		return sentence_set(-ENOMEM, o->scan.text, o->scan.size,
			"%s: not enough memory to open it", display);
	o->scan.display = d->display;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &o->root) < 0)
		return sentence_set(-errno, o->scan.text, o->scan.size,
			"%s: cannot be looked at: %s", d->display, strerror(errno));
	o->key.format = format_of(&o->root);
	if (!o->key.format)
		return sentence_set(-ENOTSUP, o->scan.text, o->scan.size,
			"%s: is neither a directory nor a list file", d->display);
	d->format = o->key.format->name;
	o->scan.format = d->format;
	o->scan.file = S_ISDIR(o->root.stx_mode) ? -1 : fd;
	d->dirfd = fcntl(o->scan.file < 0 ? fd : dirfd, F_DUPFD_CLOEXEC, 3);
	if (d->dirfd < 0)
		return sentence_set(-errno, o->scan.text, o->scan.size, "%s: cannot be opened: %s",
			d->display, strerror(errno));
	o->scan.root = d->dirfd;
	o->key.root = &o->root;
	o->key.flags = (o->options->hidden ? INDEX_HIDDEN : 0) |
		       (o->options->allow_empty ? INDEX_ALLOW_EMPTY : 0);
	return 0;
}

int dataset_open(struct dataset **ret, int fd, int dirfd, const char *display,
	const struct dataset_options *options, char *text, size_t size)
{
	struct dataset *d = calloc(1, sizeof(*d));
	struct opening o = { .d = d, .options = options };
	int r;

	if (!d)
		return sentence_set(
			-ENOMEM, text, size, "%s: not enough memory to open it", display);
	refcount_init(&d->references);
	d->place = (struct place)PLACE_INIT;
	d->dirfd = -1;
	o.scan.options = options;
	o.scan.text = text;
	o.scan.size = size;
	r = opening_init(&o, fd, dirfd, display);
	if (r >= 0)
		r = opening_fill(&o);
	if (r < 0) {
		dataset_unref(d);
		return r;
	}
	*ret = d;
	return 0;
}

struct dataset *dataset_ref(struct dataset *d)
{
	refcount_take(&d->references);
	return d;
}

void dataset_unref(struct dataset *d)
{
	if (!d || !refcount_drop(&d->references))
		return;
	verdicts_deinit(&d->verdicts);
	image_free(&d->image);
	place_deinit(&d->place);
	fd_close(d->dirfd);
	free(d->display);
	free(d->index_path);
	free(d);
}

uint64_t dataset_length(const struct dataset *d)
{
	return d->image.header->sample_count;
}

const uint8_t *dataset_fingerprint(const struct dataset *d)
{
	return d->image.header->fingerprint;
}

uint32_t dataset_class_count(const struct dataset *d)
{
	return (uint32_t)d->image.header->class_count;
}

const char *dataset_class_name(const struct dataset *d, uint32_t i)
{
	return d->image.names + d->image.classes[i];
}

const char *dataset_format(const struct dataset *d)
{
	return d->format;
}

const char *dataset_display(const struct dataset *d)
{
	return d->display;
}

const char *dataset_index_path(const struct dataset *d)
{
	return d->index_path;
}

bool dataset_index_used(const struct dataset *d)
{
	return d->index_used;
}

int dataset_dirfd(const struct dataset *d)
{
	return d->dirfd;
}

void dataset_sample(const struct dataset *d, uint64_t id, struct sample *ret)
{
	const struct index_sample *s = &d->image.samples[id];

	*ret = (struct sample){
		.offset = 0,
		.length = s->size,
		.file_size = s->size,
		.mtime_ns = s->mtime_ns,
		.label = d->image.labels[s->label],
	};
}

int dataset_path(const struct dataset *d, uint64_t id, char *ret, size_t size)
{
	const struct index_sample *s = &d->image.samples[id];
	const char *directory = d->image.names + d->image.directories[s->directory].path;
	int n = snprintf(
		ret, size, "%s%s%s", directory, *directory ? "/" : "", d->image.names + s->name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : n;
}

uint8_t dataset_verdict(const struct dataset *d, uint64_t id)
{
	return verdicts_get(&d->verdicts, id);
}

void dataset_set_verdict(struct dataset *d, uint64_t id, uint8_t verdict)
{
	verdicts_set(&d->verdicts, id, verdict);
}

int dataset_save_verdicts(struct dataset *d)
{
	return verdicts_save(&d->verdicts, &d->place);
}
