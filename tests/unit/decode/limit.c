/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards the limit that feeder is measured against: a slower limit would flatter the ratio.
 *
 * The linker sends this executable's calls into libjpeg-turbo through here (--wrap): what is
 * called, how often, and with which sizes must be exactly what an exact box needs. Nothing of it
 * depends on the machine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include <jpeglib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "decode/limit.h"

static struct {
	unsigned int creates, sources, headers, starts, crops, skips, reads, aborts, allocations,
		progress;
	uint32_t crop_x, crop_width, skipped, rows;
} calls;

void __real_jpeg_CreateDecompress(j_decompress_ptr info, int version, size_t size);
void __real_jpeg_mem_src(j_decompress_ptr info, const unsigned char *bytes, unsigned long size);
int __real_jpeg_read_header(j_decompress_ptr info, boolean require);
boolean __real_jpeg_start_decompress(j_decompress_ptr info);
void __real_jpeg_crop_scanline(j_decompress_ptr info, JDIMENSION *x, JDIMENSION *width);
JDIMENSION __real_jpeg_skip_scanlines(j_decompress_ptr info, JDIMENSION rows);
JDIMENSION __real_jpeg_read_scanlines(j_decompress_ptr info, JSAMPARRAY rows, JDIMENSION max);
void __real_jpeg_abort_decompress(j_decompress_ptr info);
void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void __wrap_jpeg_CreateDecompress(j_decompress_ptr info, int version, size_t size);
void __wrap_jpeg_mem_src(j_decompress_ptr info, const unsigned char *bytes, unsigned long size);
int __wrap_jpeg_read_header(j_decompress_ptr info, boolean require);
boolean __wrap_jpeg_start_decompress(j_decompress_ptr info);
void __wrap_jpeg_crop_scanline(j_decompress_ptr info, JDIMENSION *x, JDIMENSION *width);
JDIMENSION __wrap_jpeg_skip_scanlines(j_decompress_ptr info, JDIMENSION rows);
JDIMENSION __wrap_jpeg_read_scanlines(j_decompress_ptr info, JSAMPARRAY rows, JDIMENSION max);
void __wrap_jpeg_abort_decompress(j_decompress_ptr info);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void __wrap_jpeg_CreateDecompress(j_decompress_ptr info, int version, size_t size)
{
	calls.creates++;
	__real_jpeg_CreateDecompress(info, version, size);
}

void __wrap_jpeg_mem_src(j_decompress_ptr info, const unsigned char *bytes, unsigned long size)
{
	calls.sources++;
	__real_jpeg_mem_src(info, bytes, size);
}

int __wrap_jpeg_read_header(j_decompress_ptr info, boolean require)
{
	calls.headers++;
	return __real_jpeg_read_header(info, require);
}

boolean __wrap_jpeg_start_decompress(j_decompress_ptr info)
{
	calls.starts++;
	/* The settings that decide the speed, as they are when it starts. */
	assert_int_equal(info->out_color_space, JCS_RGB);
	assert_int_equal(info->dct_method, JDCT_ISLOW);
	assert_true(info->do_fancy_upsampling);
	assert_int_equal(info->scale_num, info->scale_denom);
	assert_false(info->buffered_image);
	assert_false(info->quantize_colors);
	calls.progress += info->progress != NULL;
	return __real_jpeg_start_decompress(info);
}

void __wrap_jpeg_crop_scanline(j_decompress_ptr info, JDIMENSION *x, JDIMENSION *width)
{
	calls.crops++;
	__real_jpeg_crop_scanline(info, x, width);
	calls.crop_x = *x;
	calls.crop_width = *width;
}

JDIMENSION __wrap_jpeg_skip_scanlines(j_decompress_ptr info, JDIMENSION rows)
{
	calls.skips++;
	calls.skipped += rows;
	assert_int_equal(info->output_scanline, 0);
	return __real_jpeg_skip_scanlines(info, rows);
}

JDIMENSION __wrap_jpeg_read_scanlines(j_decompress_ptr info, JSAMPARRAY rows, JDIMENSION max)
{
	JDIMENSION n;

	/* Aligned rows would be stored past the cache. */
	assert_int_equal((uintptr_t)rows[0] % 64, 8);
	n = __real_jpeg_read_scanlines(info, rows, max);
	calls.reads++;
	calls.rows += n;
	return n;
}

void __wrap_jpeg_abort_decompress(j_decompress_ptr info)
{
	calls.aborts++;
	__real_jpeg_abort_decompress(info);
}

void *__wrap_malloc(size_t size)
{
	calls.allocations++;
	return __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	calls.allocations++;
	return __real_aligned_alloc(alignment, size);
}

static void check_pixels(const struct limit *l, const struct box *b, const struct region *region)
{
	size_t stride;
	const uint8_t *pixels = limit_pixels(l, &stride);

	for (uint32_t y = 0; y < b->h; y++)
		assert_memory_equal(
			pixels + y * stride, region->data + y * region->stride, (size_t)b->w * 3);
}

/* The same bytes as decoder_region. */
static void limit_gives_the_same_pixels(void **unused)
{
	struct decoder *d = check_decoder();
	struct limit *l;
	uint64_t state = 17;

	(void)unused;
	assert_int_equal(limit_new(&l), 0);
	for (unsigned int i = 0; i < 60; i++) {
		struct jpeg_recipe r = { .width = 1 + test_below(&state, 90),
			.height = 1 + test_below(&state, 90),
			.sampling = { { (uint8_t)(1 + i % 2), (uint8_t)(1 + i / 2 % 2) } },
			.model = i % 7 == 0 ? MODEL_GRAY : MODEL_YCC,
			.progressive = i % 5 == 0,
			.seed = i };
		struct jpeg_file f;

		jpeg_make(&r, &f);
		for (int k = 0; k < 10; k++) {
			struct box b = check_random_box(&state, r.width, r.height);
			struct image_info info;
			struct region region;
			struct fault fault;

			assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
			assert_int_equal(decoder_region(d, &b, &region, &fault), 0);
			assert_int_equal(limit_region(l, f.bytes, f.size, &b), 0);
			check_pixels(l, &b, &region);
		}
		jpeg_file_free(&f);
	}
	limit_free(l);
	decoder_free(d);
}

/* Of a 4:2:0 picture whose MCUs are 16 x 16: the fewest columns and rows, the fewest calls. */
static void check_calls(const struct box *b, uint32_t width)
{
	uint32_t left = (b->x > 0 ? b->x - 1 : 0) / 16 * 16;
	uint32_t right = b->x + b->w < width ? b->x + b->w + 1 : width;

	/* At least three samples of chroma, counted from before the MCU's edge. */
	if (right < (b->x > 0 ? b->x - 1 : 0) + 6)
		right = (b->x > 0 ? b->x - 1 : 0) + 6;
	assert_int_equal(calls.sources, 1);
	assert_int_equal(calls.headers, 1);
	assert_int_equal(calls.starts, 1);
	assert_int_equal(calls.crops, 1);
	assert_int_equal(calls.crop_x, left);
	assert_int_equal(calls.crop_width, right - left);
	assert_int_equal(calls.skips, b->y > 0);
	assert_int_equal(calls.skipped, b->y);
	assert_int_equal(calls.rows, b->h);
	/* libjpeg gives at most a row group of two, and its context cuts one group per MCU row. */
	assert_true(calls.reads <= b->h / 2 + 2 + b->h / 16 + 1);
	assert_int_equal(calls.aborts, 1);
	assert_int_equal(calls.creates, 0);
	assert_int_equal(calls.allocations, 0);
	assert_int_equal(calls.progress, 0);
}

static void limit_does_only_what_is_necessary(void **unused)
{
	const struct jpeg_recipe r = { .width = 200, .height = 170, .sampling = { { 2, 2 } } };
	const struct box all = { 0, 0, 200, 170 };
	struct limit *l;
	struct jpeg_file f;
	uint64_t state = 23;

	(void)unused;
	jpeg_make(&r, &f);
	memset(&calls, 0, sizeof(calls));
	assert_int_equal(limit_new(&l), 0);
	assert_int_equal(calls.creates, 1);
	assert_int_equal(limit_region(l, f.bytes, f.size, &all), 0);
	for (int i = 0; i < 300; i++) {
		struct box b = check_random_box(&state, 190, 170);

		if (i % 10 == 0)
			b.y = 0;
		memset(&calls, 0, sizeof(calls));
		assert_int_equal(limit_region(l, f.bytes, f.size, &b), 0);
		check_calls(&b, 200);
	}
	jpeg_file_free(&f);
	limit_free(l);
	limit_free(NULL);
}

static void limit_survives_what_it_cannot_decode(void **unused)
{
	const struct jpeg_recipe r = { .width = 40, .height = 30 };
	const struct jpeg_recipe inks = { .width = 40, .height = 30, .model = MODEL_CMYK };
	const struct box box = { 3, 4, 10, 10 }, outside = { 35, 4, 10, 10 };
	struct limit *l;
	struct jpeg_file f;

	(void)unused;
	assert_int_equal(limit_new(&l), 0);
	jpeg_make(&inks, &f);
	assert_int_equal(limit_region(l, f.bytes, f.size, &box), -EBADMSG);
	jpeg_file_free(&f);
	assert_int_equal(limit_region(l, (const uint8_t *)"GIF89a", 6, &box), -EBADMSG);
	jpeg_make(&r, &f);
	assert_int_equal(limit_region(l, f.bytes, f.size, &outside), -EBADMSG);
	assert_int_equal(limit_region(l, f.bytes, f.size, &box), 0);
	jpeg_file_free(&f);
	limit_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_gives_the_same_pixels),
		cmocka_unit_test(limit_does_only_what_is_necessary),
		cmocka_unit_test(limit_survives_what_it_cannot_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
