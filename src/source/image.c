/* SPDX-License-Identifier: Apache-2.0 */
/* Building and checking the index image. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "source/fingerprint.h"
#include "source/image.h"

#define CHECKED_FROM (offsetof(struct index_header, checksum) + sizeof(uint64_t))

void *image_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_HUGEPAGE); /* fewer faults where it is supported */
	return p;
}

void image_free(struct image *image)
{
	if (image->base)
		munmap(image->base, image->size);
	*image = (struct image){ .base = NULL };
}

static uint64_t image_checksum(const unsigned char *base, size_t size)
{
	return XXH3_64bits(base + CHECKED_FROM, size - CHECKED_FROM);
}

/* The sections follow the header in this order without gaps; each is a multiple of 8 bytes. */
static void image_attach(struct image *image, unsigned char *base, size_t size)
{
	const struct index_header *h = (const void *)base;
	unsigned char *at = base + sizeof(*h);

	image->base = base;
	image->size = size;
	image->header = h;
	image->samples = (const void *)at;
	at += h->sample_count * sizeof(struct index_sample);
	image->directories = (const void *)at;
	at += h->directory_count * sizeof(struct index_directory);
	image->classes = (const void *)at;
	at += h->class_count * sizeof(uint64_t);
	image->labels = (const void *)at;
	at += h->label_count * sizeof(int64_t);
	image->names = (const void *)at;
}

static void image_copy_chunk(
	struct image *image, const struct chunk *c, size_t *sample, size_t *directory, size_t *name)
{
	struct index_sample *s = (struct index_sample *)image->samples + *sample;
	struct index_directory *d = (struct index_directory *)image->directories + *directory;

	for (size_t i = 0; i < c->sample_count; i++) {
		s[i] = c->samples[i];
		s[i].name += *name;
		s[i].directory += (uint32_t)*directory;
	}
	for (size_t i = 0; i < c->directory_count; i++) {
		d[i] = c->directories[i];
		d[i].path += *name;
	}
	if (c->names_size)
		memcpy((char *)image->names + *name, c->names, c->names_size);
	*sample += c->sample_count;
	*directory += c->directory_count;
	*name += c->names_size;
}

static int image_count(struct index_header *h, const struct image_parts *parts, size_t *ret_size)
{
	uint64_t names = 1 + strlen(parts->warning) + 1;

	memcpy(h->magic, INDEX_MAGIC, sizeof(h->magic));
	h->byte_order = INDEX_BYTE_ORDER;
	h->version = INDEX_VERSION;
	h->format = parts->format;
	h->flags = parts->flags;
	h->class_count = parts->class_count;
	h->label_count = parts->label_count;
	h->root_inode = parts->root_inode;
	h->root_size = parts->root_size;
	h->root_mtime_ns = parts->root_mtime_ns;
	h->root_ctime_ns = parts->root_ctime_ns;
	h->root_hash = parts->root_hash;
	for (size_t i = 0; i < parts->chunk_count; i++) {
		h->sample_count += parts->chunks[i].sample_count;
		h->directory_count += parts->chunks[i].directory_count;
		names += parts->chunks[i].names_size;
	}
	for (size_t i = 0; i < parts->class_count; i++)
		names += strlen(parts->classes[i]) + 1;
	h->names_size = names;
	h->file_size = sizeof(*h) + h->sample_count * sizeof(struct index_sample) +
		       h->directory_count * sizeof(struct index_directory) +
		       h->class_count * sizeof(uint64_t) + h->label_count * sizeof(int64_t) + names;
	if (h->directory_count > UINT32_MAX || h->label_count > UINT32_MAX ||
		h->file_size > INDEX_SIZE_MAX)
		return -EOVERFLOW;
	*ret_size = h->file_size;
	return 0;
}

int image_build(struct image *ret, const struct image_parts *parts)
{
	struct index_header counted = { .format = 0 }, *h;
	struct image image;
	size_t size, sample = 0, directory = 0, name = 1;
	unsigned char *base;
	int r;

	r = image_count(&counted, parts, &size);
	if (r < 0)
		return r;
	base = image_pages(size);
	if (!base)
		return -ENOMEM;
	h = (void *)base;
	*h = counted;
	image_attach(&image, base, size);
	if (parts->label_count)
		memcpy((int64_t *)image.labels, parts->labels,
			parts->label_count * sizeof(int64_t));
	for (size_t i = 0; i < parts->class_count; i++) {
		size_t length = strlen(parts->classes[i]) + 1;

		((uint64_t *)image.classes)[i] = name;
		memcpy((char *)image.names + name, parts->classes[i], length);
		name += length;
	}
	h->warning = *parts->warning ? name : 0;
	memcpy((char *)image.names + name, parts->warning, strlen(parts->warning) + 1);
	name += strlen(parts->warning) + 1;
	for (size_t i = 0; i < parts->chunk_count; i++)
		image_copy_chunk(&image, &parts->chunks[i], &sample, &directory, &name);
	r = fingerprint_compute(&image, h->fingerprint);
	if (r < 0) {
		image_free(&image);
		return r;
	}
	h->checksum = image_checksum(base, size);
	mprotect(base, size, PROT_READ); /* from now on constant, also by mistake */
	*ret = image;
	return 0;
}

static int damaged(char *text, size_t size, const char *why)
{
	snprintf(text, size, "%s", why);
	return IMAGE_DAMAGED;
}

/* One name inside a directory: not empty, no slash, not . or .. */
static bool name_is_plain(const char *name, size_t length)
{
	if (length == 0 || memchr(name, '/', length))
		return false;
	return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

static bool path_is_plain(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (!name_is_plain(path, length))
			return false;
		path += length;
		if (*path && !*++path)
			return false; /* ends in a slash */
	}
	return true;
}

/* Sums of counts are bounded by the file's size before anything is multiplied. */
static bool image_sizes_agree(const struct index_header *h, size_t size)
{
	if (h->sample_count > size / sizeof(struct index_sample) ||
		h->directory_count > size / sizeof(struct index_directory) ||
		h->class_count > size / sizeof(uint64_t) ||
		h->label_count > size / sizeof(int64_t) || h->names_size > size)
		return false;
	return sizeof(*h) + h->sample_count * sizeof(struct index_sample) +
		       h->directory_count * sizeof(struct index_directory) +
		       h->class_count * sizeof(uint64_t) + h->label_count * sizeof(int64_t) +
		       h->names_size ==
	       size;
}

static const char *image_find_fault(const struct image *image)
{
	const struct index_header *h = image->header;

	if (h->names_size == 0 || image->names[0] || image->names[h->names_size - 1])
		return "its names do not end";
	if (h->warning >= h->names_size)
		return "its warning lies outside";
	for (uint64_t i = 0; i < h->class_count; i++)
		if (image->classes[i] >= h->names_size)
			return "a class name lies outside";
	for (uint64_t i = 0; i < h->directory_count; i++)
		if (image->directories[i].path >= h->names_size ||
			!path_is_plain(image->names + image->directories[i].path))
			return "a directory's path is impossible";
	for (uint64_t i = 0; i < h->sample_count; i++) {
		const struct index_sample *s = &image->samples[i];
		const char *name;

		if (s->directory >= h->directory_count || s->label >= h->label_count ||
			s->name >= h->names_size)
			return "a sample's record points outside";
		name = image->names + s->name;
		if (!name_is_plain(name, strlen(name)))
			return "a sample's name is impossible";
	}
	return NULL;
}

int image_check(struct image *ret, unsigned char *base, size_t size, char *text, size_t text_size)
{
	const struct index_header *h = (const void *)base;
	struct image image;
	const char *fault;

	if (size < sizeof(*h))
		return damaged(text, text_size, "it is shorter than its header");
	if (memcmp(h->magic, INDEX_MAGIC, sizeof(h->magic)) != 0)
		return damaged(text, text_size, "it does not begin as an index");
	if (h->byte_order != INDEX_BYTE_ORDER || h->version != INDEX_VERSION)
		return IMAGE_OTHER;
	if (h->file_size != size)
		return damaged(text, text_size, "its length is not the one that it states");
	if (h->checksum != image_checksum(base, size))
		return damaged(text, text_size, "its checksum is wrong");
	if (!image_sizes_agree(h, size))
		return damaged(text, text_size, "its counts do not fit its length");
	if (h->sample_count == 0)
		return damaged(text, text_size, "it has no samples");
	image_attach(&image, base, size);
	fault = image_find_fault(&image);
	if (fault)
		return damaged(text, text_size, fault);
	*ret = image;
	return 0;
}

int image_read(struct image *ret, int fd, uint64_t size, char *text, size_t text_size)
{
	unsigned char *base;
	size_t done = 0;
	int r;

	if (size < sizeof(struct index_header) || size > INDEX_SIZE_MAX)
		return damaged(text, text_size, size ? "its length is impossible" : "it is empty");
	base = image_pages(size);
	if (!base)
		return -ENOMEM;
	while (done < size) {
		ssize_t n = pread(fd, base + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : damaged(text, text_size, "it became shorter");
			munmap(base, size);
			return r;
		}
		done += (size_t)n;
	}
	mprotect(base, size, PROT_READ);
	r = image_check(ret, base, size, text, text_size);
	if (r != 0)
		munmap(base, size);
	return r;
}
