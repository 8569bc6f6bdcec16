/* SPDX-License-Identifier: Apache-2.0 */
/* List files, from the first byte to the index image that is built of them. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "source/format.h"
#include "source/image.h"
#include "source/list/lines.h"

static void must_stay_below(const char *path)
{
	REQUIRE(*path && *path != '/' && path[strlen(path) - 1] != '/' && !strstr(path, "//"));
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t length;

		part += *part == '/';
		length = strcspn(part, "/");
		REQUIRE(!(length == 1 && part[0] == '.'));
		REQUIRE(!(length == 2 && part[0] == '.' && part[1] == '.'));
	}
}

static void check_lines(const struct lines *l)
{
	REQUIRE(l->count > 0 && l->label_count > 0 && l->label_count <= l->count);
	REQUIRE(l->class_count == 0 || l->class_count == l->label_count);
	for (size_t i = 0; i < l->count; i++) {
		const struct line *line = &l->lines[i];

		must_stay_below(line->path);
		REQUIRE(line->number < l->label_count);
		if (l->class_count)
			REQUIRE(strcmp(l->classes[line->number], line->label) == 0);
		else
			REQUIRE(l->labels[line->number] == strtoll(line->label, NULL, 10));
	}
	for (size_t i = 1; i < l->label_count; i++) {
		REQUIRE(l->labels[i - 1] < l->labels[i]);
		if (l->class_count)
			REQUIRE(strcmp(l->classes[i - 1], l->classes[i]) < 0);
	}
}

/* What was built passes the checks of what is read. */
static void check_image(const struct image *built, const struct lines *l)
{
	uint8_t *copy = fuzz_copy(built->base, built->size);
	char text[256] = "";
	struct image image;

	if (image_check(&image, copy, built->size, text, sizeof(text)) != 0) {
		fprintf(stderr, "%s\n", text);
		REQUIRE(false);
	}
	REQUIRE(image.header->sample_count == l->count);
	for (size_t i = 0; i < l->count; i++) {
		const struct index_sample *s = &image.samples[i];
		const char *directory = image.names + image.directories[s->directory].path;
		size_t length = strlen(directory);
		const char *path = l->lines[i].path;

		REQUIRE(strncmp(path, directory, length) == 0);
		path += length;
		REQUIRE(length == 0 || *path == '/');
		REQUIRE(strcmp(path + (length > 0), image.names + s->name) == 0);
		REQUIRE(image.labels[s->label] == l->labels[l->lines[i].number]);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int root = -1;
	static const struct dataset_options options = { .cache_dir = NULL };
	char text[SENTENCE_MAX] = "";
	struct scan s = { .display = "set.tsv",
		.format = "list",
		.options = &options,
		.text = text,
		.size = sizeof(text) };
	struct lines lines = { .text = NULL };
	struct image image = { .base = NULL };
	struct statx st;
	int r, before;

	if (root < 0)
		root = open(fuzz_directory(), O_PATH | O_CLOEXEC);
	before = fuzz_lowest_fd();
	s.root = root;
	s.file = fuzz_memfd(data, size);
	REQUIRE(root >= 0 && statx(s.file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0);
	scan_init(&s);
	r = lines_read(&lines, &s, size);
	if (r >= 0)
		r = lines_label(&lines, &s);
	REQUIRE(r >= 0 || text[0]);
	REQUIRE(list_format.scan(&s, 0, &st, &image) == (r < 0 ? r : 0));
	if (r >= 0) {
		check_lines(&lines);
		check_image(&image, &lines);
		REQUIRE(list_format.check(&s, &image, &st) == 0);
	}
	image_free(&image);
	lines_free(&lines);
	close(s.file);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
