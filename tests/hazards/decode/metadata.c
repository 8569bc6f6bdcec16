/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A15..A18: broken EXIF, and orientation that is applied only when asked. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

enum { WIDTH = 24, HEIGHT = 16 };

static const struct jpeg_recipe gradient = {
	.width = WIDTH, .height = HEIGHT, .sampling = { { 2, 2 } }, .seed = 3
};

static const uint8_t tagged[] = { 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0,
	0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0 };

#define TAG_VALUE 29 /* offset of the orientation in `tagged` */

static void make_tagged(struct jpeg_file *f, uint8_t orientation)
{
	uint8_t segment[sizeof(tagged)];

	memcpy(segment, tagged, sizeof(segment));
	segment[TAG_VALUE] = orientation;
	jpeg_make(&gradient, f);
	jpeg_file_insert(f, 2, segment, sizeof(segment));
}

/* Two entries are told and ten bytes are there. */
static void a15_broken_exif_is_no_exif(void **unused)
{
	static const uint8_t segment[] = { 0xff, 0xe1, 0, 26, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I',
		'*', 0, 8, 0, 0, 0, 2, 0, 0x12, 1, 3, 0, 1, 0, 0, 0 };
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&gradient, &f);
	jpeg_file_insert(&f, 2, segment, sizeof(segment));
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(info.orientation, 1);
	check_as_reference(d, &f);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* A count of 4 G in the orientation's own entry: its value is there all the same, or it is 1. */
static void a16_counts_in_exif_are_not_believed(void **unused)
{
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	make_tagged(&f, 6);
	memset(f.bytes + 2 + 24, 0xff, 4);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(info.width, WIDTH);
	check_as_reference(d, &f);
	/* And the entry count of the block. */
	memset(f.bytes + 2 + 18, 0xff, 2);
	check_as_reference(d, &f);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* Where shown pixel (x, y) is stored, written out case by case. */
static void stored_of_shown(uint32_t o, uint32_t x, uint32_t y, uint32_t *u, uint32_t *v)
{
	const uint32_t right = WIDTH - 1, bottom = HEIGHT - 1;
	const uint32_t us[9] = { 0, x, right - x, right - x, x, y, y, right - y, right - y };
	const uint32_t vs[9] = { 0, y, y, bottom - y, bottom - y, x, bottom - x, bottom - x, x };

	*u = us[o];
	*v = vs[o];
}

static void check_shown(const struct region *region, uint32_t o, const uint8_t *stored)
{
	for (uint32_t y = 0; y < region->box.h; y++) {
		for (uint32_t x = 0; x < region->box.w; x++) {
			uint32_t u, v;

			stored_of_shown(o, region->box.x + x, region->box.y + y, &u, &v);
			assert_memory_equal(region->data + y * region->stride + x * 3,
				stored + (v * WIDTH + u) * 3, 3);
		}
	}
}

static void check_orientation(struct decoder *d, uint8_t o, bool applied)
{
	uint32_t width, height;
	uint64_t state = o;
	struct jpeg_file f;
	uint8_t *stored;

	make_tagged(&f, o);
	stored = jpeg_reference(f.bytes, f.size, &width, &height);
	for (int i = 0; i < 30; i++) {
		struct image_info info;
		struct region region;
		struct fault fault;
		struct box b;

		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_int_equal(info.orientation, o);
		assert_int_equal(info.width, applied && o >= 5 ? HEIGHT : WIDTH);
		assert_int_equal(info.height, applied && o >= 5 ? WIDTH : HEIGHT);
		b = i == 0 ? (struct box){ 0, 0, info.width, info.height }
			   : check_random_box(&state, info.width, info.height);
		assert_int_equal(decoder_region(d, &b, &region, &fault), 0);
		assert_memory_equal(&region.box, &b, sizeof(b));
		check_shown(&region, applied ? o : 1, stored);
	}
	free(stored);
	jpeg_file_free(&f);
}

static void a17_orientation_only_by_setting(void **unused)
{
	struct decode_limits limits;

	(void)unused;
	decode_limits_init(&limits);
	for (int applied = 0; applied < 2; applied++) {
		struct decoder *d;

		limits.apply_orientation = applied;
		d = check_decoder_with(&limits);
		for (uint8_t o = 1; o <= 8; o++)
			check_orientation(d, o, applied);
		decoder_free(d);
	}
}

/* With the defaults a corner stays where the file has it. */
static void a18_corners_stay_by_default(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box corner = { WIDTH - 4, HEIGHT - 4, 4, 4 };
	uint32_t width, height;
	struct jpeg_file f;
	uint8_t *stored;

	(void)unused;
	make_tagged(&f, 8);
	stored = jpeg_reference(f.bytes, f.size, &width, &height);
	check_box(d, &f, stored, width, &corner);
	free(stored);
	jpeg_file_free(&f);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a15_broken_exif_is_no_exif),
		cmocka_unit_test(a16_counts_in_exif_are_not_believed),
		cmocka_unit_test(a17_orientation_only_by_setting),
		cmocka_unit_test(a18_corners_stay_by_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
