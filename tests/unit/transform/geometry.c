/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crop parameters and sizes against golden values of an independent writing-down of torchvision's
 * code (golden.py); the stream's keying.
 */
#include "transform/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "golden-geometry.h"

static const struct shape {
	float scale[2], ratio[2];
} shapes[] = GOLDEN_SHAPES;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void crops_are_torchvisions(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(golden_crops); i++) {
		const struct golden_crop *g = &golden_crops[i];
		const struct shape *shape = &shapes[g->shape];
		struct philox_stream s;
		struct crop_box box;

		philox_stream_init(&s, g->seed, g->id, g->epoch, 0, OPERATION_RANDOM_RESIZED_CROP);
		box = random_resized_crop(&s, g->width, g->height, shape->scale, shape->ratio);
		if (memcmp(&box, &g->box, sizeof(box)) != 0)
			fail_msg("crop %zu of %ux%u: %u,%u %ux%u, expected %u,%u %ux%u", i,
				g->width, g->height, box.x, box.y, box.w, box.h, g->box.x, g->box.y,
				g->box.w, g->box.h);
		assert_true(box.w >= 1 && box.x + box.w <= g->width);
		assert_true(box.h >= 1 && box.y + box.h <= g->height);
		philox_stream_init(&s, g->seed, g->id, g->epoch, 0, OPERATION_HORIZONTAL_FLIP);
		assert_int_equal(random_flip(&s, 0.5f), g->flip);
	}
}

static void flip_probabilities(void **state)
{
	struct philox_stream s;
	int flips = 0;

	(void)state;
	philox_stream_init(&s, 5, 5, 5, 0, OPERATION_HORIZONTAL_FLIP);
	for (int i = 0; i < 1000; i++) {
		assert_false(random_flip(&s, 0));
		assert_true(random_flip(&s, 1));
		flips += random_flip(&s, 0.25f);
	}
	assert_in_range(flips, 200, 300);
}

static void sizes_are_torchvisions(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(golden_sizes); i++) {
		const struct golden_size *g = &golden_sizes[i];
		uint32_t w, h;
		int32_t x, y;

		resize_size(g->width, g->height, g->size, &w, &h);
		assert_int_equal(w, g->resized_w);
		assert_int_equal(h, g->resized_h);
		center_crop(g->width, g->height, g->size, g->size, &x, &y);
		assert_int_equal(x, g->x);
		assert_int_equal(y, g->y);
	}
}

static void center_crop_rounds_half_to_even(void **state)
{
	int32_t x, y;

	(void)state;
	center_crop(375, 373, 224, 224, &x, &y);
	assert_int_equal(x, 76);
	assert_int_equal(y, 74);
	center_crop(100, 101, 224, 224, &x, &y);
	assert_int_equal(x, -62);
	assert_int_equal(y, -61);
}

static void resize_of_a_line_is_never_empty(void **state)
{
	uint32_t w, h;

	(void)state;
	resize_size(1, 65535, 256, &w, &h);
	assert_int_equal(w, 256);
	assert_int_equal(h, 65535 * 256);
	resize_size(65535, 1, 1, &w, &h);
	assert_int_equal(w, 65535);
	assert_int_equal(h, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crops_are_torchvisions),
		cmocka_unit_test(flip_probabilities),
		cmocka_unit_test(sizes_are_torchvisions),
		cmocka_unit_test(center_crop_rounds_half_to_even),
		cmocka_unit_test(resize_of_a_line_is_never_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
