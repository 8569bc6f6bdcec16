/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A11..A14, A25, A65, A66, A68, A70: files that are something else, or hardly anything. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "goldens.h"

static const struct jpeg_recipe plain = { .width = 40, .height = 30, .sampling = { { 2, 2 } } };

/* The decoder never sees a name: a PNG called .JPEG is a PNG. */
static void a11_png_by_its_bytes(void **unused)
{
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		const struct box all = { 0, 0, goldens[i].width, goldens[i].height };

		if (strcmp(goldens[i].name, "png_rgb_8") != 0)
			continue;
		jpeg_file_copy(&f, goldens[i].file, goldens[i].size, 0);
		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_string_equal(info.codec, "png");
		check_box(d, &f, goldens[i].rgb, goldens[i].width, &all);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

static void a12_other_formats_are_named(void **unused)
{
	static const struct {
		const char *magic;
		size_t length;
		const char *word;
	} cases[] = {
		{ "RIFF\x40\0\0\0WEBP", 12, "WebP" },
		{ "BM", 2, "BMP" },
		{ "GIF89a", 6, "GIF" },
		{ "II*\0", 4, "TIFF" },
	};
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[64] = { 0 };
		struct jpeg_file f;

		memcpy(bytes, cases[i].magic, cases[i].length);
		jpeg_file_copy(&f, bytes, sizeof(bytes), 0);
		check_status(d, &f, FEEDER_STATUS_OTHER_FORMAT, cases[i].word);
		jpeg_file_free(&f);
	}
	check_usable(d);
	decoder_free(d);
}

static void a13_zeros_and_two_bytes(void **unused)
{
	struct decoder *d = check_decoder();
	uint8_t zeros[1024] = { 0 };
	struct jpeg_file f;

	(void)unused;
	jpeg_file_copy(&f, zeros, sizeof(zeros), 0);
	check_status(d, &f, FEEDER_STATUS_UNKNOWN_FORMAT, "zero");
	jpeg_file_free(&f);
	jpeg_file_copy(&f, (const uint8_t *)"\xff\xd8", 2, 0);
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "2 bytes");
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

/* Two pictures of different size in one file, as cameras write them: the first. */
static void a14_first_picture_of_mpo(void **unused)
{
	const struct jpeg_recipe second = { .width = 16, .height = 8, .seed = 5 };
	uint8_t index[40] = { 0xff, 0xe2, 0, 38, 'M', 'P', 'F', 0, 'I', 'I', '*', 0 };
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f, g;
	const struct box all = { 0, 0, 40, 30 };
	uint32_t width, height;
	uint8_t *reference;

	(void)unused;
	jpeg_make(&plain, &f);
	jpeg_make(&second, &g);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	jpeg_file_insert(&f, 2, index, sizeof(index));
	jpeg_file_insert(&f, f.size, g.bytes, g.size);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(info.width, 40);
	assert_true(info.complete);
	check_box(d, &f, reference, width, &all);
	free(reference);
	jpeg_file_free(&f);
	jpeg_file_free(&g);
	decoder_free(d);
}

/* Behind SOI: a bad header, as for Pillow. Between later segments libjpeg passes over them. */
static void a25_bytes_between_segments(void **unused)
{
	struct decoder *d = check_decoder();
	uint8_t junk[64];
	struct jpeg_file f;
	uint32_t width, height;
	const struct box all = { 0, 0, 40, 30 };
	uint8_t *reference;

	(void)unused;
	memset(junk, 0x20, sizeof(junk));
	jpeg_make(&plain, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	jpeg_file_insert(&f, jpeg_file_find(&f, 0xdb, 0), junk, sizeof(junk));
	check_box(d, &f, reference, width, &all);
	jpeg_file_insert(&f, 2, junk, sizeof(junk));
	check_status(d, &f, FEEDER_STATUS_BAD_HEADER, "20 and no marker");
	/* Nothing but junk to the end. */
	f.size = 2 + sizeof(junk);
	check_status(d, &f, FEEDER_STATUS_BAD_HEADER, "no marker");
	free(reference);
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

static void a65_hardly_any_bytes(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	f.size = 0;
	check_status(d, &f, FEEDER_STATUS_EMPTY, "empty");
	f.size = 1;
	check_status(d, &f, FEEDER_STATUS_UNKNOWN_FORMAT, "1 bytes");
	f.size = 2;
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "2 bytes");
	f.size = 3;
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "3 bytes");
	jpeg_file_free(&f);
	decoder_free(d);
}

/* A bad file of each kind between good ones: each good one is exact. */
static void a66_good_files_after_bad_ones(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file good;
	uint64_t state = 9;

	(void)unused;
	jpeg_make(&plain, &good);
	for (int i = 0; i < 200; i++) {
		struct jpeg_file bad;
		struct region region;
		struct fault fault;

		jpeg_file_copy(&bad, good.bytes, good.size, 0);
		for (int k = 0; k < 8; k++)
			bad.bytes[2 + test_below(&state, (uint32_t)bad.size - 2)] =
				(uint8_t)test_random(&state);
		check_whole(d, &bad, &region, &fault);
		jpeg_file_free(&bad);
		check_as_reference(d, &good);
	}
	jpeg_file_free(&good);
	decoder_free(d);
}

/* At start: the version that was compiled in, and a decode of built-in pictures. */
static void a68_library_is_checked_at_start(void **unused)
{
	char text[200];

	(void)unused;
	assert_int_equal(decode_self_test(text, sizeof(text)), 0);
	assert_non_null(strstr(decode_library_version(), "libjpeg-turbo"));
}

/* Bytes of a BMP behind a JPEG's first three: an error of libjpeg's, and the process lives. */
static void a70_no_error_exits(void **unused)
{
	struct decoder *d = check_decoder();
	uint8_t bytes[200] = { 0xff, 0xd8, 0xff, 0xc0, 0, 40 };
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	memcpy(bytes + 6, "BM", 2);
	jpeg_file_copy(&f, bytes, sizeof(bytes), 0);
	for (unsigned int marker = 0; marker < 256; marker++) {
		f.bytes[3] = (uint8_t)marker;
		assert_int_not_equal(check_whole(d, &f, &region, &fault), 0);
	}
	jpeg_file_free(&f);
	check_usable(d);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a11_png_by_its_bytes),
		cmocka_unit_test(a12_other_formats_are_named),
		cmocka_unit_test(a13_zeros_and_two_bytes),
		cmocka_unit_test(a14_first_picture_of_mpo),
		cmocka_unit_test(a25_bytes_between_segments),
		cmocka_unit_test(a65_hardly_any_bytes),
		cmocka_unit_test(a66_good_files_after_bad_ones),
		cmocka_unit_test(a68_library_is_checked_at_start),
		cmocka_unit_test(a70_no_error_exits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
