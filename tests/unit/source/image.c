/* SPDX-License-Identifier: Apache-2.0 */
/* Index images whose checksum is right and whose content is made to hurt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

#include "source/image.h"

static void build(struct image *ret)
{
	static const char *const classes[] = { "cat", "dog" };
	static const int64_t labels[] = { 0, 1 };
	struct chunk c = { .samples = NULL };
	struct image_parts parts = { .format = 1,
		.chunks = &c,
		.chunk_count = 1,
		.classes = classes,
		.class_count = 2,
		.labels = labels,
		.label_count = 2,
		.warning = "careful" };
	uint64_t cat, dog, names[2];

	assert_int_equal(chunk_add_name(&c, "cat", 3, &cat), 0);
	assert_int_equal(chunk_add_name(&c, "dog/sub", 7, &dog), 0);
	assert_int_equal(chunk_add_name(&c, "a.jpg", 5, &names[0]), 0);
	assert_int_equal(chunk_add_name(&c, "b.jpg", 5, &names[1]), 0);
	chunk_add_directory(&c)->path = cat;
	chunk_add_directory(&c)->path = dog;
	for (uint32_t i = 0; i < 2; i++)
		*chunk_add_sample(&c) = (struct index_sample){
			.size = i, .name = names[i], .directory = i, .label = i
		};
	assert_int_equal(image_build(ret, &parts), 0);
	chunk_free(&c);
}

/* A writable copy that is exactly as long, so that a sanitizer sees what is read beyond it. */
static unsigned char *copy_of(const struct image *image)
{
	unsigned char *copy = malloc(image->size);

	memcpy(copy, image->base, image->size);
	return copy;
}

static int check(struct image *ret, unsigned char *base, size_t size)
{
	char text[128];
	size_t from = offsetof(struct index_header, checksum) + 8;

	((struct index_header *)(void *)base)->checksum = XXH3_64bits(base + from, size - from);
	return image_check(ret, base, size, text, sizeof(text));
}

static void what_was_built_is_accepted(void **state)
{
	struct image built, checked;
	unsigned char *copy;

	(void)state;
	build(&built);
	copy = copy_of(&built);
	assert_int_equal(check(&checked, copy, built.size), 0);
	assert_string_equal(checked.names + checked.classes[1], "dog");
	assert_string_equal(checked.names + checked.samples[1].name, "b.jpg");
	assert_string_equal(checked.names + checked.header->warning, "careful");
	assert_memory_equal(copy, built.base, built.size);
	free(copy);
	image_free(&built);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = { { "a.jpg", "../.." }, { "a.jpg", "..\0" }, { "a.jpg", ".\0." },
		{ "a.jpg", "\0" }, { "a.jpg", "/.jpg" }, { "dog/sub", "../subs" },
		{ "dog/sub", "/og/sub" }, { "dog/sub", "dog/.." }, { "dog/sub", "do//sub" },
		{ "dog/sub", "dog/su/" }, { "dog/sub", "./g/sub" } };
	struct image built, checked;

	(void)state;
	build(&built);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char *copy = copy_of(&built);
		size_t length = strlen(cases[i].from);
		unsigned char *at = memmem(copy, built.size, cases[i].from, length + 1);

		assert_non_null(at);
		strncpy((char *)at, cases[i].to, length);
		assert_int_equal(check(&checked, copy, built.size), IMAGE_DAMAGED);
		free(copy);
	}
	image_free(&built);
}

/* Every number in it set to what hurts: refused, or all that it says can be used. */
static void numbers_are_checked(void **state)
{
	static const uint64_t evil[] = { 0, 1, 2, 3, 0x7fffffff, 0xffffffff, 0x100000000,
		0x0800000000000000, 0x2000000000000001, 0x8000000000000000, UINT64_MAX };
	unsigned int refused = 0;
	struct image built, checked;

	(void)state;
	build(&built);
	for (size_t at = 8; at + 8 <= built.size; at += 4) {
		for (size_t i = 0; i < sizeof(evil) / sizeof(*evil); i++) {
			unsigned char *copy = copy_of(&built);
			volatile size_t sum = 0;

			memcpy(copy + at, &evil[i], 8);
			if (check(&checked, copy, built.size) != 0) {
				refused++;
				free(copy);
				continue;
			}
			for (uint64_t id = 0; id < checked.header->sample_count; id++) {
				const struct index_sample *s = &checked.samples[id];

				sum += strlen(checked.names + s->name) +
				       strlen(checked.names +
					       checked.directories[s->directory].path) +
				       (size_t)checked.labels[s->label];
			}
			for (uint64_t c = 0; c < checked.header->class_count; c++)
				sum += strlen(checked.names + checked.classes[c]);
			sum += strlen(checked.names + checked.header->warning);
			free(copy);
		}
	}
	assert_true(refused > 200);
	image_free(&built);
}

static void every_length_is_checked(void **state)
{
	struct image built, checked;

	(void)state;
	build(&built);
	for (size_t size = 0; size < built.size; size++) {
		unsigned char *copy = malloc(size ? size : 1);
		struct index_header *h = (void *)copy;
		char text[128];
		int r;

		memcpy(copy, built.base, size);
		if (size >= sizeof(*h)) {
			h->file_size = size;
			r = check(&checked, copy, size);
		} else {
			r = image_check(&checked, copy, size, text, sizeof(text));
		}
		assert_int_equal(r, IMAGE_DAMAGED);
		free(copy);
	}
	image_free(&built);
}

static void another_version_is_not_damage(void **state)
{
	struct image built, checked;
	unsigned char *copy;

	(void)state;
	build(&built);
	copy = copy_of(&built);
	((struct index_header *)(void *)copy)->version++;
	assert_int_equal(check(&checked, copy, built.size), IMAGE_OTHER);
	free(copy);
	image_free(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_built_is_accepted),
		cmocka_unit_test(names_that_lead_elsewhere_are_refused),
		cmocka_unit_test(numbers_are_checked),
		cmocka_unit_test(every_length_is_checked),
		cmocka_unit_test(another_version_is_not_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
