/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder's life: one object for many files, its states, its settings. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

static const struct jpeg_recipe plain = {
	.width = 60, .height = 44, .sampling = { { 2, 2 } }, .seed = 1
};

static void decoder_defaults(void **unused)
{
	struct decode_limits limits;

	(void)unused;
	memset(&limits, 0xff, sizeof(limits));
	decode_limits_init(&limits);
	assert_int_equal(limits.max_pixels, 178956970);
	assert_int_equal(limits.max_scans, 500);
	assert_int_equal(limits.max_memory, 1ull << 30);
	assert_int_equal(limits.max_cpu_ns, 10000000000ull);
	assert_false(limits.apply_orientation);
}

static void decoder_info(void **unused)
{
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(info.width, 60);
	assert_int_equal(info.height, 44);
	assert_int_equal(info.orientation, 1);
	assert_true(info.complete);
	assert_false(info.progressive);
	assert_string_equal(info.codec, "jpeg");
	jpeg_file_free(&f);
	decoder_free(d);
}

/* EOI, then zero and 0xFF padding: complete. Anything else behind it, or none: not. */
static void decoder_complete(void **unused)
{
	static const struct {
		uint8_t tail[4];
		size_t length;
		bool complete;
	} cases[] = {
		{ { 0 }, 1, true },
		{ { 0xff, 0xff, 0, 0xff }, 4, true },
		{ { 1 }, 1, false },
		{ { 0xd9 }, 1, false },
		{ { 0xff, 0xd9 }, 2, true },
		{ { 0, 0, 'x', 0 }, 4, false },
	};
	struct decoder *d = check_decoder();
	struct image_info info;
	struct fault fault;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jpeg_file f;

		jpeg_make(&plain, &f);
		jpeg_file_insert(&f, f.size, cases[i].tail, cases[i].length);
		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_int_equal(info.complete, cases[i].complete);
		assert_int_equal(decoder_check_end(d, &fault), 0);
		check_as_reference(d, &f);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

static void decoder_region_follows_check_end(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box box = { 20, 20, 30, 20 };
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;
	uint64_t digest;

	(void)unused;
	jpeg_make(&plain, &f);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(decoder_region(d, &box, &region, &fault), 0);
	digest = check_digest(&region);
	f.size -= 2; /* the EOI */
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_false(info.complete);
	assert_int_equal(decoder_check_end(d, &fault), FEEDER_STATUS_OK);
	assert_int_equal(decoder_region(d, &box, &region, &fault), 0);
	assert_int_equal(check_digest(&region), digest);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void decoder_refuses_other_boxes(void **unused)
{
	static const struct box boxes[] = {
		{ 0, 0, 0, 1 },
		{ 0, 0, 1, 0 },
		{ 60, 0, 1, 1 },
		{ 0, 44, 1, 1 },
		{ 1, 0, 60, 1 },
		{ 0, 1, 1, 44 },
		{ 0xffffffff, 0, 2, 1 },
		{ 2, 2, 0xffffffff, 1 },
		{ 2, 2, 1, 0xffffffff },
	};
	struct decoder *d = check_decoder();
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_int_equal(
			decoder_region(d, &boxes[i], &region, &fault), FEEDER_STATUS_INTERNAL);
		decoder_close(d);
	}
	check_usable(d);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void decoder_closed_is_a_case(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box box = { 0, 0, 1, 1 };
	struct region region;
	struct fault fault;

	(void)unused;
	decoder_close(d);
	decoder_close(d);
	assert_int_equal(decoder_region(d, &box, &region, &fault), FEEDER_STATUS_INTERNAL);
	assert_int_equal(decoder_check_end(d, &fault), FEEDER_STATUS_INTERNAL);
	check_usable(d);
	decoder_free(d);
	decoder_free(NULL);
}

/* From every state: opened only, checked, failed, in the middle of a region's life. */
static void decoder_opens_again_from_any_state(void **unused)
{
	struct decoder *d = check_decoder();
	const struct jpeg_recipe progressive = {
		.width = 30, .height = 30, .progressive = true, .sampling = { { 2, 1 } }
	};
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&progressive, &f);
	for (int state = 0; state < 6; state++) {
		size_t size = state == 3 ? f.size / 2 : state == 4 ? 30 : f.size;

		if (state < 5)
			decoder_open(d, f.bytes, size, &info, &fault);
		if (state == 1)
			decoder_check_end(d, &fault);
		if (state == 2 || state == 3)
			decoder_region(d, &(struct box){ 0, 0, 3, 3 }, &region, &fault);
		if (state == 5)
			decoder_open(d, (const uint8_t *)"GIF89a", 6, &info, &fault);
		check_usable(d);
	}
	jpeg_file_free(&f);
	decoder_free(d);
}

/* A fault's text stands without the file: no path in it, no full stop behind it. */
static void decoder_texts(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	for (size_t size = 0; size < f.size; size += 7) {
		const struct jpeg_file cut = { f.bytes, size };
		struct region region;
		struct fault fault = { 0 };
		int r = check_whole(d, &cut, &region, &fault);

		assert_int_not_equal(r, 0);
		assert_int_equal(fault.status, r);
		assert_true(strlen(fault.text) > 3);
		assert_true(fault.text[strlen(fault.text) - 1] != '.');
		assert_null(strchr(fault.text, '\n'));
	}
	jpeg_file_free(&f);
	decoder_free(d);
}

static void decoder_version(void **unused)
{
	(void)unused;
	assert_int_equal(strncmp(decode_library_version(), "libjpeg-turbo ", 14), 0);
	assert_true(decode_library_version()[14] >= '2');
}

static void decoder_self_test(void **unused)
{
	char text[200] = "";

	(void)unused;
	if (decode_self_test(text, sizeof(text)) != 0)
		fail_msg("%s", text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoder_defaults),
		cmocka_unit_test(decoder_info),
		cmocka_unit_test(decoder_complete),
		cmocka_unit_test(decoder_region_follows_check_end),
		cmocka_unit_test(decoder_refuses_other_boxes),
		cmocka_unit_test(decoder_closed_is_a_case),
		cmocka_unit_test(decoder_opens_again_from_any_state),
		cmocka_unit_test(decoder_texts),
		cmocka_unit_test(decoder_version),
		cmocka_unit_test(decoder_self_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
