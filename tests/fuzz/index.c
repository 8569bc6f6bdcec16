/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index files. Checksum and length are mended, since damage by chance hardly passes them, and
 * malice does: what is then accepted can be used to the last number.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "fuzz.h"
#include "source/format.h"
#include "source/image.h"

#define CHECKED_FROM (offsetof(struct index_header, checksum) + sizeof(uint64_t))

static void must_be_a_name(const char *name)
{
	REQUIRE(*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

static void must_be_a_path(const char *path)
{
	char copy[4096], *state, *part;

	if (strlen(path) >= sizeof(copy))
		return;
	strcpy(copy, path);
	REQUIRE(path[0] != '/' && !strstr(path, "//"));
	for (part = strtok_r(copy, "/", &state); part; part = strtok_r(NULL, "/", &state))
		must_be_a_name(part);
}

static volatile size_t sum; /* so that nothing is read in vain */

static void use(const struct image *image)
{
	const struct index_header *h = image->header;

	for (uint64_t i = 0; i < h->sample_count; i++) {
		const struct index_sample *s = &image->samples[i];

		must_be_a_name(image->names + s->name);
		must_be_a_path(image->names + image->directories[s->directory].path);
		sum += (size_t)image->labels[s->label];
	}
	for (uint64_t i = 0; i < h->directory_count; i++)
		must_be_a_path(image->names + image->directories[i].path);
	for (uint64_t i = 0; i < h->class_count; i++)
		sum += strlen(image->names + image->classes[i]);
	sum += strlen(image->names + h->warning);
}

/* A directory that an index may claim to be of. */
static int root_open(struct statx *ret)
{
	static int fd = -1;

	if (fd < 0) {
		fd = open(fuzz_directory(), O_PATH | O_CLOEXEC);
		REQUIRE(fd >= 0);
		REQUIRE(mkdirat(fd, "cat", 0700) == 0 && mkdirat(fd, "dog", 0700) == 0);
	}
	REQUIRE(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, ret) == 0);
	return fd;
}

static void compare_with_folder(struct image *image)
{
	struct dataset_options options = { .cache_dir = NULL };
	char text[SENTENCE_MAX] = "";
	struct statx root;
	struct scan s = {
		.root = root_open(&root),
		.file = -1,
		.display = "set",
		.format = "folder",
		.options = &options,
		.text = text,
		.size = sizeof(text),
	};
	int r;

	((struct index_header *)(void *)image->base)->root_inode = root.stx_ino;
	if (image->header->directory_count > 64)
		return;
	r = folder_format.check(&s, image, &root);
	REQUIRE(r == 0 || r == 1 || (r < 0 && text[0]));
}

static void read_as_file(const uint8_t *bytes, size_t size, int expected)
{
	struct image image = { .base = NULL };
	int fd = fuzz_memfd(bytes, size);
	char text[256] = "";
	int r = image_read(&image, fd, size, text, sizeof(text));

	REQUIRE(r == expected);
	if (r == 0)
		use(&image);
	image_free(&image);
	close(fd);
}

static void check(uint8_t *bytes, size_t size)
{
	struct image image;
	char text[256] = "";
	int r = image_check(&image, bytes, size, text, sizeof(text));

	REQUIRE(r == 0 || r == IMAGE_DAMAGED || r == IMAGE_OTHER);
	REQUIRE(r != IMAGE_DAMAGED || text[0]);
	read_as_file(bytes, size, r);
	if (r == 0) {
		use(&image);
		compare_with_folder(&image);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct index_header *h;
	uint8_t *copy = fuzz_copy(data, size);
	int before;
	struct statx root;

	root_open(&root);
	before = fuzz_lowest_fd();
	check(copy, size);
	if (size >= sizeof(*h)) {
		memcpy(copy, data, size);
		h = (void *)copy;
		memcpy(h->magic, INDEX_MAGIC, sizeof(h->magic));
		h->byte_order = INDEX_BYTE_ORDER;
		h->version = INDEX_VERSION;
		h->file_size = size;
		h->checksum = XXH3_64bits(copy + CHECKED_FROM, size - CHECKED_FROM);
		check(copy, size);
	}
	free(copy);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
