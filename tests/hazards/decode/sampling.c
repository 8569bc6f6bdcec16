/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A36..A38, A46..A51, A53..A56, A59: samplings, edges, crop and skip. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

struct picture {
	struct decoder *decoder;
	struct jpeg_file file;
	uint8_t *reference;
	uint32_t width;
	uint32_t height;
};

static void picture_init(struct picture *p, const struct jpeg_recipe *r)
{
	p->decoder = check_decoder();
	jpeg_make(r, &p->file);
	p->reference = jpeg_reference(p->file.bytes, p->file.size, &p->width, &p->height);
}

static void picture_deinit(struct picture *p)
{
	decoder_free(p->decoder);
	jpeg_file_free(&p->file);
	free(p->reference);
}

static void picture_check(const struct picture *p, uint32_t x, uint32_t y, uint32_t w, uint32_t h)
{
	const struct box b = { x, y, w, h };

	check_box(p->decoder, &p->file, p->reference, p->width, &b);
}

static void check_recipe(const struct jpeg_recipe *r, int boxes)
{
	struct picture p;
	uint64_t state = r->seed;

	picture_init(&p, r);
	picture_check(&p, 0, 0, p.width, p.height);
	for (int i = 0; i < boxes; i++) {
		struct box b = check_random_box(&state, p.width, p.height);

		picture_check(&p, b.x, b.y, b.w, b.h);
	}
	picture_deinit(&p);
}

static void a36_410_and_its_like(void **unused)
{
	const struct jpeg_recipe recipes[] = {
		{ .width = 97, .height = 73, .sampling = { { 4, 1 }, { 2, 1 }, { 2, 1 } } },
		{ .width = 97, .height = 73, .sampling = { { 4, 2 } } },
		{ .width = 97, .height = 73, .sampling = { { 2, 4 } } },
		{ .width = 97, .height = 73, .sampling = { { 4, 2 } }, .progressive = true },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		check_recipe(&recipes[i], 40);
}

/* 4:2:2 written with doubled vertical factors is as 4:2:2, and exactly libjpeg's. */
static void a37_odd_way_to_write_422(void **unused)
{
	struct jpeg_recipe odd = { .width = 61,
		.height = 43,
		.sampling = { { 2, 2 }, { 1, 2 }, { 1, 2 } },
		.flat = true,
		.quality = 95 };
	struct jpeg_recipe usual = odd;
	struct picture a, b;

	(void)unused;
	check_recipe(&odd, 40);
	memcpy(usual.sampling, (uint8_t[4][2]){ { 2, 1 }, { 1, 1 }, { 1, 1 } }, 8);
	picture_init(&a, &odd);
	picture_init(&b, &usual);
	for (uint32_t i = 0; i < 61 * 43 * 3; i++)
		assert_true(abs(a.reference[i] - b.reference[i]) <= 4);
	picture_check(&a, 0, 0, 61, 43);
	picture_deinit(&a);
	picture_deinit(&b);
}

static void a38_each_component_its_own_factors(void **unused)
{
	const struct jpeg_recipe r = {
		.width = 97, .height = 73, .sampling = { { 2, 2 }, { 2, 1 }, { 1, 2 } }
	};

	(void)unused;
	check_recipe(&r, 150);
}

/* Never scaled by the DCT: a picture comes in its own size, its white edge white. */
static void a46_no_scaled_decode(void **unused)
{
	const struct jpeg_recipe r = { .width = 601, .height = 431, .sampling = { { 2, 2 } } };
	struct picture p;
	struct image_info info;
	struct fault fault;

	(void)unused;
	picture_init(&p, &r);
	assert_int_equal(decoder_open(p.decoder, p.file.bytes, p.file.size, &info, &fault), 0);
	assert_int_equal(info.width, 601);
	assert_int_equal(info.height, 431);
	picture_check(&p, 0, 0, 601, 431);
	picture_check(&p, 600, 0, 1, 431);
	picture_check(&p, 0, 430, 601, 1);
	picture_deinit(&p);
}

/* Every first row and every number of rows of a short picture, in the three kinds of upsampling. */
static void a47_every_start_and_length(void **unused)
{
	static const uint8_t factors[3][2] = { { 2, 2 }, { 2, 1 }, { 1, 2 } };

	(void)unused;
	for (int i = 0; i < 3; i++) {
		const struct jpeg_recipe r = {
			.width = 20, .height = 35, .sampling = { { factors[i][0], factors[i][1] } }
		};
		struct picture p;

		picture_init(&p, &r);
		for (uint32_t y = 0; y < 35; y++) {
			for (uint32_t h = 1; h <= 35 - y; h++)
				picture_check(&p, 3, y, 9, h);
		}
		picture_deinit(&p);
	}
}

/* All but the last row is skipped, where the library's own count is wrong. */
static void a48_only_the_last_row(void **unused)
{
	(void)unused;
	for (uint32_t height = 1; height < 50; height++) {
		const struct jpeg_recipe r = {
			.width = 24, .height = height, .sampling = { { 2, 2 } }
		};
		struct picture p;

		picture_init(&p, &r);
		picture_check(&p, 0, height - 1, 24, 1);
		picture_deinit(&p);
	}
}

/* Ends below any row of a tall picture, also the last: never an endless loop. */
static void a49_ends_anywhere(void **unused)
{
	const struct jpeg_recipe r = { .width = 16, .height = 760, .sampling = { { 2, 2 } } };
	struct picture p;

	(void)unused;
	picture_init(&p, &r);
	for (uint32_t y = 1; y < 760; y += 19)
		picture_check(&p, 0, y, 16, 760 - y);
	for (uint32_t y = 741; y < 760; y++)
		picture_check(&p, 0, y, 16, 1);
	picture_deinit(&p);
}

/* Skipping with fancy upsampling, which is always on: chroma is interpolated, not repeated. */
static void a50_skip_is_fancy(void **unused)
{
	const struct jpeg_recipe r = { .width = 64, .height = 140, .sampling = { { 2, 2 } } };
	struct picture p;

	(void)unused;
	picture_init(&p, &r);
	for (uint32_t y = 95; y < 115; y++)
		picture_check(&p, 0, y, 64, 20);
	picture_deinit(&p);
}

/* Every residue of left edge and width: under ASan, no write beyond the buffer. */
static void a51_every_residue_of_x_and_width(void **unused)
{
	const struct jpeg_recipe r = { .width = 80, .height = 20, .sampling = { { 2, 2 } } };
	struct picture p;

	(void)unused;
	picture_init(&p, &r);
	for (uint32_t x = 17; x < 33; x++) {
		for (uint32_t w = 1; w < 34; w++)
			picture_check(&p, x, 9, w, 6);
	}
	picture_deinit(&p);
}

/* One way for baseline and progressive, none of it through buffered-image mode. */
static void a53_crop_and_skip_in_both_codings(void **unused)
{
	(void)unused;
	for (int progressive = 0; progressive < 2; progressive++) {
		const struct jpeg_recipe r = { .width = 80,
			.height = 80,
			.sampling = { { 2, 2 } },
			.progressive = progressive };
		struct picture p;

		picture_init(&p, &r);
		for (uint32_t at = 1; at < 60; at++)
			picture_check(&p, at, at, 20, 20);
		picture_deinit(&p);
	}
}

/*
 * Only the first scans of a progressive picture: ended by EOI it is smoothed across blocks, and a
 * box is that of the whole; without EOI it is truncated.
 */
static void a54_first_scans_only(void **unused)
{
	const struct jpeg_recipe r = {
		.width = 120, .height = 110, .sampling = { { 2, 2 } }, .progressive = true
	};
	struct decoder *d = check_decoder();

	(void)unused;
	for (unsigned int scans = 1; scans < 6; scans++) {
		struct jpeg_file f;
		uint32_t width, height;
		uint64_t state = scans;
		uint8_t *reference;

		jpeg_make(&r, &f);
		/* Up to the segments before the next scan. */
		f.size = jpeg_file_find(&f, 0xda, scans);
		while (f.bytes[f.size - 2] != 0xff || f.bytes[f.size - 1] != 0xc4)
			f.size--;
		f.size -= 2;
		check_status(d, &f, FEEDER_STATUS_TRUNCATED, "more are missing");
		memcpy(f.bytes + f.size, "\xff\xd9", 2);
		f.size += 2;
		reference = jpeg_reference(f.bytes, f.size, &width, &height);
		for (int i = 0; i < 30; i++) {
			struct box b = check_random_box(&state, width, height);

			check_box(d, &f, reference, width, &b);
		}
		check_box(d, &f, reference, width, &(struct box){ 32, 40, 40, 40 });
		free(reference);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

/* The right and the bottom edge, at even widths that are no multiple of an MCU. */
static void a55_right_and_bottom_edges(void **unused)
{
	static const uint8_t factors[3][2] = { { 2, 1 }, { 2, 2 }, { 1, 2 } };

	(void)unused;
	for (int i = 0; i < 3; i++) {
		for (uint32_t size = 34; size < 48; size += 2) {
			const struct jpeg_recipe r = { .width = size,
				.height = size,
				.sampling = { { factors[i][0], factors[i][1] } } };
			struct picture p;

			picture_init(&p, &r);
			for (uint32_t n = 1; n < 6; n++) {
				picture_check(&p, size - n, 0, n, size);
				picture_check(&p, 0, size - n, size, n);
				picture_check(&p, size - n, size - n, n, n);
			}
			picture_deinit(&p);
		}
	}
}

/* The self-test passes, and what a daemon does when it does not is as exact. */
static void a56_self_test_and_its_fallback(void **unused)
{
	const struct jpeg_recipe r = { .width = 70, .height = 50, .sampling = { { 2, 2 } } };
	char text[200];

	(void)unused;
	assert_int_equal(decode_self_test(text, sizeof(text)), 0);
	decode_use_full_decode(true);
	check_recipe(&r, 50);
	decode_use_full_decode(false);
}

/* Restart markers turn the fast Huffman path off: the same pixels as without. */
static void a59_restart_intervals(void **unused)
{
	struct jpeg_recipe r = { .width = 200, .height = 150, .sampling = { { 2, 2 } } };
	struct picture plain, restarted;

	(void)unused;
	picture_init(&plain, &r);
	r.restart_mcus = 3;
	picture_init(&restarted, &r);
	assert_memory_equal(plain.reference, restarted.reference, 200 * 150 * 3);
	picture_check(&restarted, 0, 0, 200, 150);
	picture_check(&restarted, 50, 60, 90, 80);
	picture_deinit(&plain);
	picture_deinit(&restarted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a36_410_and_its_like),
		cmocka_unit_test(a37_odd_way_to_write_422),
		cmocka_unit_test(a38_each_component_its_own_factors),
		cmocka_unit_test(a46_no_scaled_decode),
		cmocka_unit_test(a47_every_start_and_length),
		cmocka_unit_test(a48_only_the_last_row),
		cmocka_unit_test(a49_ends_anywhere),
		cmocka_unit_test(a50_skip_is_fancy),
		cmocka_unit_test(a51_every_residue_of_x_and_width),
		cmocka_unit_test(a53_crop_and_skip_in_both_codings),
		cmocka_unit_test(a54_first_scans_only),
		cmocka_unit_test(a55_right_and_bottom_edges),
		cmocka_unit_test(a56_self_test_and_its_fallback),
		cmocka_unit_test(a59_restart_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
