/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A01..A08, A19, A64: colour models, component ids, profiles. Goldens are Pillow's. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "goldens.h"

/* All goldens of a row, whole and in boxes; returns how many there are. */
static int check_row(const char *row)
{
	struct decoder *d = check_decoder();
	int found = 0;

	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		const struct golden *g = &goldens[i];
		const struct box all = { 0, 0, g->width, g->height };
		uint64_t state = i;
		struct jpeg_file f;

		if (strncmp(g->name, row, strlen(row)) != 0)
			continue;
		found++;
		jpeg_file_copy(&f, g->file, g->size, 0);
		check_box(d, &f, g->rgb, g->width, &all);
		for (int k = 0; k < 20; k++) {
			struct box b = check_random_box(&state, g->width, g->height);

			check_box(d, &f, g->rgb, g->width, &b);
		}
		jpeg_file_free(&f);
	}
	decoder_free(d);
	return found;
}

static void a01_four_components_decode_to_rgb(void **unused)
{
	(void)unused;
	assert_int_equal(check_row("a01"), 1);
}

/* Rows are three channels wide and as far apart as told: none is striped into the next. */
static void a02_rows_of_four_components_are_three_wide(void **unused)
{
	const struct jpeg_recipe r = { .width = 33, .height = 20, .model = MODEL_CMYK };
	struct decoder *d = check_decoder();
	const struct box right = { 16, 0, 17, 20 };
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;
	uint8_t kept[20][17 * 3];

	(void)unused;
	jpeg_make(&r, &f);
	assert_int_equal(check_whole(d, &f, &region, &fault), 0);
	assert_true(region.stride >= 33 * 3);
	for (uint32_t y = 0; y < 20; y++)
		memcpy(kept[y], region.data + y * region.stride + 16 * 3, 17 * 3);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(decoder_region(d, &right, &region, &fault), 0);
	for (uint32_t y = 0; y < 20; y++)
		assert_memory_equal(region.data + y * region.stride, kept[y], 17 * 3);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a03_inks_by_app14(void **unused)
{
	(void)unused;
	assert_int_equal(check_row("a03"), 5);
}

static void a04_light_ycck_stays_light(void **unused)
{
	struct decoder *d = check_decoder();
	struct region region;
	struct fault fault;
	struct jpeg_file f = { 0 };
	uint64_t sum = 0;

	(void)unused;
	assert_int_equal(check_row("a04"), 1);
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		if (strcmp(goldens[i].name, "a04_light_ycck") == 0)
			jpeg_file_copy(&f, goldens[i].file, goldens[i].size, 0);
	}
	assert_int_equal(check_whole(d, &f, &region, &fault), 0);
	for (uint32_t y = 0; y < region.box.h; y++) {
		for (uint32_t i = 0; i < region.box.w * 3; i++)
			sum += region.data[y * region.stride + i];
	}
	assert_true(sum / (region.box.w * region.box.h * 3) > 150);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a06_any_component_ids(void **unused)
{
	(void)unused;
	assert_int_equal(check_row("a06"), 4);
}

static void a07_rgb_by_adobe_unless_jfif(void **unused)
{
	(void)unused;
	assert_int_equal(check_row("a07"), 2);
}

static void a08_ids_rgb_are_rgb(void **unused)
{
	(void)unused;
	assert_int_equal(check_row("a08"), 1);
}

/* A profile, whole, split over three segments in the wrong order, or cut: the same pixels. */
static void a19_profiles_are_ignored(void **unused)
{
	static const uint8_t parts[3] = { 2, 1, 3 };
	const struct jpeg_recipe r = { .width = 40, .height = 30, .sampling = { { 2, 2 } } };
	struct decoder *d = check_decoder();
	uint32_t width, height;

	(void)unused;
	for (int broken = 0; broken < 2; broken++) {
		struct jpeg_file f;
		uint8_t *reference;
		const struct box all = { 0, 0, 40, 30 };

		jpeg_make(&r, &f);
		reference = jpeg_reference(f.bytes, f.size, &width, &height);
		for (int i = 0; i < 3; i++) {
			uint8_t segment[60] = { 0xff, 0xe2, 0, 58 };

			memcpy(segment + 4, "ICC_PROFILE", 12);
			segment[16] = broken ? 9 : parts[i];
			segment[17] = broken ? 0 : 3;
			memset(segment + 18, 0xff - i, sizeof(segment) - 18);
			jpeg_file_insert(&f, 2, segment, sizeof(segment));
		}
		check_box(d, &f, reference, width, &all);
		free(reference);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

static void a64_gray_has_three_equal_channels(void **unused)
{
	const struct jpeg_recipe r = { .width = 30, .height = 20, .model = MODEL_GRAY };
	struct decoder *d = check_decoder();
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	assert_int_equal(check_whole(d, &f, &region, &fault), 0);
	for (uint32_t y = 0; y < 20; y++) {
		for (uint32_t x = 0; x < 30; x++) {
			const uint8_t *p = region.data + y * region.stride + x * 3;

			assert_int_equal(p[0], p[1]);
			assert_int_equal(p[0], p[2]);
		}
	}
	jpeg_file_free(&f);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a01_four_components_decode_to_rgb),
		cmocka_unit_test(a02_rows_of_four_components_are_three_wide),
		cmocka_unit_test(a03_inks_by_app14),
		cmocka_unit_test(a04_light_ycck_stays_light),
		cmocka_unit_test(a06_any_component_ids),
		cmocka_unit_test(a07_rgb_by_adobe_unless_jfif),
		cmocka_unit_test(a08_ids_rgb_are_rgb),
		cmocka_unit_test(a19_profiles_are_ignored),
		cmocka_unit_test(a64_gray_has_three_equal_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
