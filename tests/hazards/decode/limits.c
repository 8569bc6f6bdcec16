/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A27..A35, A52, A62, A63, A74: limits, and processes that are refused by name. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

static void make_scans(struct jpeg_file *f, unsigned int scans, uint32_t size)
{
	const struct jpeg_recipe r = {
		.width = size, .height = size, .progressive = true, .scans = scans, .flat = true
	};

	jpeg_make(&r, f);
}

/* Width and height in the frame header. */
static void set_size(struct jpeg_file *f, uint8_t sof, uint32_t width, uint32_t height)
{
	uint8_t *p = f->bytes + jpeg_file_find(f, sof, 0) + 5;

	p[0] = (uint8_t)(height >> 8);
	p[1] = (uint8_t)height;
	p[2] = (uint8_t)(width >> 8);
	p[3] = (uint8_t)width;
}

static void a27_a_thousand_tiny_scans(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	make_scans(&f, 1000, test_long() ? 1000 : 100);
	check_status(d, &f, FEEDER_STATUS_TOO_MANY_SCANS, "500 scans");
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

static void a28_scan_limit_from_both_sides(void **unused)
{
	struct decode_limits limits;
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	make_scans(&f, 501, 40);
	check_status(d, &f, FEEDER_STATUS_TOO_MANY_SCANS, "500 scans");
	jpeg_file_free(&f);
	make_scans(&f, 500, 40);
	check_as_reference(d, &f);
	jpeg_file_free(&f);
	make_scans(&f, 499, 40);
	check_as_reference(d, &f);
	decoder_free(d);

	decode_limits_init(&limits);
	limits.max_scans = 498;
	d = check_decoder_with(&limits);
	check_status(d, &f, FEEDER_STATUS_TOO_MANY_SCANS, "498 scans");
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a29_huge_size_is_refused_by_the_header(void **unused)
{
	const struct jpeg_recipe r = { .width = 8, .height = 8, .flat = true };
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	set_size(&f, 0xc0, 62994, 65284);
	check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "62994 x 65284");
	/* Within the limit of pixels, and far beyond what so few bytes can hold. */
	set_size(&f, 0xc0, 13000, 13000);
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "cannot hold");
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a30_tiny_progressive_takes_no_memory(void **unused)
{
	const struct jpeg_recipe r = { .width = 8, .height = 8, .flat = true, .progressive = true };
	struct decode_limits limits;
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	set_size(&f, 0xc2, 60000, 60000);
	check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "60000 x 60000");
	set_size(&f, 0xc2, 13000, 13000);
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "cannot hold");
	decoder_free(d);
	decode_limits_init(&limits);
	limits.max_memory = 10 << 20;
	d = check_decoder_with(&limits);
	check_status(d, &f, FEEDER_STATUS_MEMORY_LIMIT, "memory cap");
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

/* Pixels and memory in the defaults' own proportion: exactly the largest picture decodes. */
static void a31_largest_allowed_picture_decodes(void **unused)
{
	uint32_t width = test_long() ? 8000 : 805, height = test_long() ? 6000 : 603;
	const struct jpeg_recipe r = {
		.width = width, .height = height, .progressive = true, .quality = 30
	};
	struct decode_limits limits;
	struct decoder *d;
	struct jpeg_file f;

	(void)unused;
	decode_limits_init(&limits);
	assert_true(limits.max_pixels * 6 <= limits.max_memory);
	limits.max_pixels = (uint64_t)width * height;
	limits.max_memory = limits.max_pixels * 6;
	jpeg_make(&r, &f);
	d = check_decoder_with(&limits);
	check_as_reference(d, &f);
	decoder_free(d);
	limits.max_pixels--;
	d = check_decoder_with(&limits);
	check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "the limit is");
	decoder_free(d);
	limits.max_pixels++;
	limits.max_memory /= 4;
	d = check_decoder_with(&limits);
	check_status(d, &f, FEEDER_STATUS_MEMORY_LIMIT, "memory cap");
	jpeg_file_free(&f);
	decoder_free(d);
}

/* The environment's JPEGMEM does not undo the cap, in either direction. */
static void a31_environment_does_not_override(void **unused)
{
	const struct jpeg_recipe r = { .width = 500, .height = 400, .progressive = true };
	struct decode_limits limits;
	struct decoder *d;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	setenv("JPEGMEM", "1k", 1);
	d = check_decoder();
	check_status(d, &f, FEEDER_STATUS_OK, "");
	decoder_free(d);
	setenv("JPEGMEM", "1000000k", 1);
	decode_limits_init(&limits);
	limits.max_memory = 1 << 20;
	d = check_decoder_with(&limits);
	check_status(d, &f, FEEDER_STATUS_MEMORY_LIMIT, "memory cap");
	decoder_free(d);
	unsetenv("JPEGMEM");
	jpeg_file_free(&f);
}

/* What one decoder may take is known before: two bytes a coefficient, checked to the byte. */
static void a32_worst_case_is_threads_times_cap(void **unused)
{
	const struct jpeg_recipe r = {
		.width = 400, .height = 300, .sampling = { { 2, 2 } }, .progressive = true
	};
	struct decode_limits limits;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	decode_limits_init(&limits);
	for (int less = 0; less < 2; less++) {
		struct decoder *d;

		limits.max_memory = 400 * 300 * 3 - (uint64_t)less;
		d = check_decoder_with(&limits);
		if (less)
			check_status(d, &f, FEEDER_STATUS_MEMORY_LIMIT, "memory cap");
		else
			check_as_reference(d, &f);
		decoder_free(d);
	}
	jpeg_file_free(&f);
}

static void a33_arithmetic_coding_is_decoded(void **unused)
{
	struct decoder *d = check_decoder();

	(void)unused;
	for (int progressive = 0; progressive < 2; progressive++) {
		const struct jpeg_recipe r = { .width = 80,
			.height = 60,
			.sampling = { { 2, 2 } },
			.arithmetic = true,
			.progressive = progressive };
		struct jpeg_file f;
		struct fault fault;

		jpeg_make(&r, &f);
		check_as_reference(d, &f);
		f.size /= 2;
		assert_int_equal(check_end(d, &f, &fault), FEEDER_STATUS_TRUNCATED);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

static void check_process(uint8_t sof, uint8_t precision, const char *word)
{
	const struct jpeg_recipe r = { .width = 16, .height = 16 };
	struct decoder *d = check_decoder();
	struct jpeg_file f;
	size_t at;

	jpeg_make(&r, &f);
	at = jpeg_file_find(&f, 0xc0, 0);
	f.bytes[at + 1] = sof;
	f.bytes[at + 4] = precision;
	check_status(d, &f, FEEDER_STATUS_UNSUPPORTED_PROCESS, word);
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

static void a34_process_and_precision_are_named(void **unused)
{
	(void)unused;
	check_process(0xc3, 8, "lossless (SOF3) JPEG, 8 bits");
	check_process(0xc0, 12, "12 bits a sample");
	check_process(0xc1, 12, "12 bits a sample (SOF1)");
	check_process(0xc2, 12, "12 bits a sample (SOF2)");
	check_process(0xc5, 8, "hierarchical");
	check_process(0xcb, 8, "arithmetic lossless");
}

static void a35_odd_precisions(void **unused)
{
	(void)unused;
	check_process(0xc3, 14, "14 bits");
	check_process(0xc0, 9, "9 bits");
	check_process(0xc0, 0, "0 bits");
	check_process(0xc0, 255, "255 bits");
}

/* Precision is known before libjpeg starts, whatever the box and sampling. */
static void a52_precision_is_checked_before_the_start(void **unused)
{
	const struct jpeg_recipe r = { .width = 32, .height = 32, .sampling = { { 2, 2 } } };
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	f.bytes[jpeg_file_find(&f, 0xc0, 0) + 4] = 12;
	assert_int_equal(
		decoder_open(d, f.bytes, f.size, &info, &fault), FEEDER_STATUS_UNSUPPORTED_PROCESS);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* No height in the header, given after the first scan: refused by its own reason. */
static void a62_height_zero(void **unused)
{
	const struct jpeg_recipe r = { .width = 32, .height = 32 };
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&r, &f);
	set_size(&f, 0xc0, 32, 0);
	jpeg_file_insert(&f, f.size - 2, (const uint8_t *)"\xff\xdc\0\4\0\x20", 6);
	check_status(d, &f, FEEDER_STATUS_HEIGHT_ZERO, "");
	set_size(&f, 0xc0, 0, 32);
	check_status(d, &f, FEEDER_STATUS_BAD_HEADER, "");
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

static void check_thin(struct decoder *d, uint32_t width, uint32_t height)
{
	const struct jpeg_recipe r = {
		.width = width, .height = height, .sampling = { { 2, 2 } }, .flat = true
	};
	uint64_t state = width;
	struct jpeg_file f;
	uint8_t *reference;

	jpeg_make(&r, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	for (int i = 0; i < 5; i++) {
		struct box b = check_random_box(&state, width, height);

		check_box(d, &f, reference, width, &b);
	}
	free(reference);
	jpeg_file_free(&f);
}

static void a63_longest_sides(void **unused)
{
	static const uint32_t beyond[] = { 65501, 65535 };
	const struct jpeg_recipe r = { .width = 8, .height = 8 };
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	check_thin(d, 65500, 1);
	check_thin(d, 1, 65500);
	check_thin(d, 1, 1);
	jpeg_make(&r, &f);
	for (int i = 0; i < 2; i++) {
		set_size(&f, 0xc0, beyond[i], 8);
		check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "65500");
		set_size(&f, 0xc0, 8, beyond[i]);
		check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "65500");
	}
	jpeg_file_free(&f);
	decoder_free(d);
}

/* A budget of a nanosecond: every picture is over it, is named so, and the next one decodes. */
static void a74_time_budget_of_a_sample(void **unused)
{
	(void)unused;
	for (int progressive = 0; progressive < 2; progressive++) {
		const struct jpeg_recipe r = {
			.width = 64, .height = 64, .progressive = progressive
		};
		struct decode_limits limits;
		struct decoder *d;
		struct jpeg_file f;

		jpeg_make(&r, &f);
		decode_limits_init(&limits);
		limits.max_cpu_ns = 1;
		d = check_decoder_with(&limits);
		check_status(d, &f, FEEDER_STATUS_DECODE_TIMEOUT, "CPU time");
		check_status(d, &f, FEEDER_STATUS_DECODE_TIMEOUT, "CPU time");
		decoder_free(d);
		d = check_decoder();
		check_as_reference(d, &f);
		decoder_free(d);
		jpeg_file_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a27_a_thousand_tiny_scans),
		cmocka_unit_test(a28_scan_limit_from_both_sides),
		cmocka_unit_test(a29_huge_size_is_refused_by_the_header),
		cmocka_unit_test(a30_tiny_progressive_takes_no_memory),
		cmocka_unit_test(a31_largest_allowed_picture_decodes),
		cmocka_unit_test(a31_environment_does_not_override),
		cmocka_unit_test(a32_worst_case_is_threads_times_cap),
		cmocka_unit_test(a33_arithmetic_coding_is_decoded),
		cmocka_unit_test(a34_process_and_precision_are_named),
		cmocka_unit_test(a35_odd_precisions),
		cmocka_unit_test(a52_precision_is_checked_before_the_start),
		cmocka_unit_test(a62_height_zero),
		cmocka_unit_test(a63_longest_sides),
		cmocka_unit_test(a74_time_budget_of_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
