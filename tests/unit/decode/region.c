/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region is the same box of a full decode, for every sampling and coding.
 *
 * FEEDER_LONG=1 takes far more boxes of every sampling and 20,000 boxes of larger pictures.
 */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

enum { CODINGS = 6 };

static void set_coding(struct jpeg_recipe *r, int coding)
{
	r->progressive = coding == 1;
	r->separate_scans = coding == 2;
	r->arithmetic = coding == 3;
	r->restart_mcus = coding == 4 ? 3 : 0;
	r->optimise = coding == 5;
}

static void set_factors(struct jpeg_recipe *r, unsigned int number)
{
	for (int i = 0; i < 6; i++, number /= 4)
		r->sampling[i / 2][i % 2] = (uint8_t)(1 + number % 4);
}

/* Sampling number 0..4095 of all with factors 1..4; false where libjpeg has no such. */
static bool set_sampling(struct jpeg_recipe *r, unsigned int number)
{
	unsigned int largest[2] = { 1, 1 }, blocks = 0;

	set_factors(r, number);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 2; k++) {
			if (r->sampling[i][k] > largest[k])
				largest[k] = r->sampling[i][k];
		}
		blocks += (unsigned int)r->sampling[i][0] * r->sampling[i][1];
	}
	for (int i = 0; i < 3; i++) {
		if (largest[0] % r->sampling[i][0] || largest[1] % r->sampling[i][1])
			return false;
	}
	if (blocks > 10) { /* too many for one MCU of all components */
		*r = (struct jpeg_recipe){ .seed = r->seed, .separate_scans = true };
		set_factors(r, number);
	}
	return true;
}

static void sweep_file(struct decoder *d, const struct jpeg_recipe *recipe, unsigned int boxes)
{
	struct jpeg_file f;
	uint32_t width, height;
	uint64_t state = recipe->seed;
	uint8_t *reference;

	jpeg_make(recipe, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	for (unsigned int i = 0; i < boxes; i++) {
		struct box b = check_random_box(&state, width, height);

		check_box(d, &f, reference, width, &b);
	}
	free(reference);
	jpeg_file_free(&f);
}

/* Every sampling that libjpeg decodes, in one random size and coding each (long: in all). */
static void region_every_sampling(void **unused)
{
	struct decoder *d = check_decoder();
	uint64_t state = 11;
	unsigned int rounds = test_long() ? 24 : 1, boxes = test_long() ? 60 : 6, samplings = 0;

	(void)unused;
	for (unsigned int n = 0; n < 4096; n++) {
		for (unsigned int k = 0; k < rounds; k++) {
			struct jpeg_recipe r = { .seed = n * 31 + k };

			set_coding(&r, (int)((n + k) % CODINGS));
			if (!set_sampling(&r, n))
				continue;
			r.width = 1 + test_below(&state, 40);
			r.height = 1 + test_below(&state, 40);
			r.quality = k % 2 ? 100 : 30;
			sweep_file(d, &r, boxes);
			samplings++;
		}
	}
	assert_int_equal(samplings, 1156 * rounds);
	decoder_free(d);
}

static const uint8_t usual[][4][2] = {
	{ { 1, 1 } },                     /* 444 */
	{ { 2, 1 } },                     /* 422 */
	{ { 2, 2 } },                     /* 420 */
	{ { 1, 2 } },                     /* 440 */
	{ { 4, 1 } },                     /* 411 */
	{ { 1, 4 } },                     /* 441 */
	{ { 4, 2 } },                     /* 410 with 1x1 chroma */
	{ { 4, 1 }, { 2, 1 }, { 2, 1 } }, /* 422 by factor 4 */
	{ { 2, 2 }, { 2, 1 }, { 1, 2 } }, /* each component its own */
	{ { 3, 1 } }, { { 1, 3 } },       /* odd factors */
	{ { 2, 1 }, { 2, 1 }, { 2, 1 } }, /* 444 by factor 2 */
	{ { 1, 1 }, { 2, 2 }, { 2, 2 } }, /* coarse luma */
};

/* All boxes of small pictures, at the sizes where blocks, MCUs and context rows begin. */
static void region_all_boxes_of_small_pictures(void **unused)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 31, 33, 40 };
	struct decoder *d = check_decoder();
	uint64_t state = 5;

	(void)unused;
	for (size_t s = 0; s < sizeof(usual) / sizeof(usual[0]); s++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct jpeg_recipe r = { .width = sizes[i],
				.height = sizes[test_below(&state, 16)],
				.seed = s };

			memcpy(r.sampling, usual[s], sizeof(r.sampling));
			set_coding(&r, (int)(i % CODINGS));
			sweep_file(d, &r, test_long() ? 3000 : 12);
		}
	}
	decoder_free(d);
}

/* Pixel by pixel: 1x1 boxes everywhere, the right and bottom edges included. */
static void region_one_pixel_boxes(void **unused)
{
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t s = 0; s < sizeof(usual) / sizeof(usual[0]); s++) {
		struct jpeg_recipe r = { .width = 35, .height = 18, .seed = s };
		struct jpeg_file f;
		uint32_t width, height;
		uint8_t *reference;

		memcpy(r.sampling, usual[s], sizeof(r.sampling));
		jpeg_make(&r, &f);
		reference = jpeg_reference(f.bytes, f.size, &width, &height);
		for (uint32_t at = s % 3; at < width * height; at += test_long() ? 1 : 3) {
			struct box b = { at % width, at / width, 1, 1 };

			check_box(d, &f, reference, width, &b);
		}
		free(reference);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

/* Gray, also with sampling factors, and RGB-coded. */
static void region_other_models(void **unused)
{
	static const struct jpeg_recipe recipes[] = {
		{ .model = MODEL_GRAY },
		{ .model = MODEL_GRAY, .sampling = { { 2, 2 } } },
		{ .model = MODEL_GRAY, .sampling = { { 4, 3 } }, .progressive = true },
		{ .model = MODEL_GRAY, .arithmetic = true, .restart_rows = 1 },
		{ .model = MODEL_RGB },
		{ .model = MODEL_RGB, .sampling = { { 2, 2 }, { 1, 2 }, { 2, 1 } } },
	};
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
		struct jpeg_recipe r = recipes[i];

		r.width = 61;
		r.height = 45;
		sweep_file(d, &r, test_long() ? 5000 : 60);
	}
	decoder_free(d);
}

/* Regions of CMYK and YCCK, against the decoder's own full decode (the goldens judge that). */
static void region_of_inks(void **unused)
{
	static const uint8_t factors[][4][2] = {
		{ { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
		{ { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } },
		{ { 2, 1 }, { 1, 1 }, { 2, 1 }, { 1, 1 } },
	};
	struct decoder *d = check_decoder();
	uint64_t state = 8;

	(void)unused;
	for (int i = 0; i < 6; i++) {
		struct jpeg_recipe r = { .width = 50, .height = 37, .progressive = i / 3 };
		struct region whole;
		struct fault fault;
		struct jpeg_file f;
		uint8_t *kept = malloc(50 * 37 * 3);

		r.model = i % 2 ? MODEL_YCCK : MODEL_CMYK;
		memcpy(r.sampling, factors[i % 3], sizeof(r.sampling));
		jpeg_make(&r, &f);
		assert_int_equal(check_whole(d, &f, &whole, &fault), 0);
		for (uint32_t y = 0; y < 37; y++)
			memcpy(kept + y * 50 * 3, whole.data + y * whole.stride, 50 * 3);
		for (int k = 0; k < 100; k++) {
			struct box b = check_random_box(&state, 50, 37);

			check_box(d, &f, kept, 50, &b);
		}
		free(kept);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

/* Larger pictures, where rows of MCUs are skipped and the fast Huffman path runs. */
static void region_of_larger_pictures(void **unused)
{
	struct decoder *d = check_decoder();
	unsigned int boxes = test_long() ? 20000 / 13 + 1 : 10;

	(void)unused;
	for (size_t s = 0; s < sizeof(usual) / sizeof(usual[0]); s++) {
		struct jpeg_recipe r = { .width = 397, .height = 301, .quality = 95, .seed = s };

		memcpy(r.sampling, usual[s], sizeof(r.sampling));
		set_coding(&r, (int)(s % 2));
		sweep_file(d, &r, boxes);
	}
	decoder_free(d);
}

/* Full decode and crop, as after a failed self-test, gives the same pixels. */
static void region_by_full_decode(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_recipe r = { .width = 70, .height = 50, .sampling = { { 2, 2 } } };

	(void)unused;
	decode_use_full_decode(true);
	sweep_file(d, &r, 40);
	r.progressive = true;
	sweep_file(d, &r, 40);
	decode_use_full_decode(false);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region_every_sampling),
		cmocka_unit_test(region_all_boxes_of_small_pictures),
		cmocka_unit_test(region_one_pixel_boxes),
		cmocka_unit_test(region_other_models),
		cmocka_unit_test(region_of_inks),
		cmocka_unit_test(region_of_larger_pictures),
		cmocka_unit_test(region_by_full_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
