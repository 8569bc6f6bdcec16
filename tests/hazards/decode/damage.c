/* SPDX-License-Identifier: Apache-2.0 */
/* Rows A09, A10, A20..A24, A26, A58, A60, A61, A69, A71: what is lost, and what is only odd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

static const struct jpeg_recipe plain = {
	.width = 90, .height = 70, .sampling = { { 2, 2 } }, .quality = 60, .seed = 2
};

/* Puts bytes before EOI: accepted, complete, identical pixels. */
static void check_before_end(const uint8_t *bytes, size_t count)
{
	struct decoder *d = check_decoder();
	const struct box all = { 0, 0, 90, 70 };
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;
	uint32_t width, height;
	uint8_t *reference;

	jpeg_make(&plain, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	jpeg_file_insert(&f, f.size - 2, bytes, count);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_true(info.complete);
	assert_int_equal(decoder_check_end(d, &fault), FEEDER_STATUS_OK);
	check_box(d, &f, reference, width, &all);
	free(reference);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a09_fill_bytes_before_markers(void **unused)
{
	const struct jpeg_recipe r = {
		.width = 90, .height = 70, .sampling = { { 2, 2 } }, .restart_rows = 1
	};
	struct decoder *d = check_decoder();
	const struct box all = { 0, 0, 90, 70 };
	struct jpeg_file f;
	uint32_t width, height;
	uint8_t *reference;

	(void)unused;
	check_before_end((const uint8_t *)"\xff\xff", 2);
	jpeg_make(&r, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	jpeg_file_insert(&f, jpeg_file_find(&f, 0xd1, 0), (const uint8_t *)"\xff\xff", 2);
	check_box(d, &f, reference, width, &all);
	free(reference);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a10_junk_byte_before_the_end(void **unused)
{
	(void)unused;
	check_before_end((const uint8_t *)"\x7f", 1);
}

static void a23_stray_bytes_before_the_end(void **unused)
{
	(void)unused;
	check_before_end((const uint8_t *)"\1\2\3\4\5", 5);
}

/* Restart markers and 600 random bytes behind the picture; nothing is printed about them. */
static void a24_surplus_scan_data(void **unused)
{
	uint8_t surplus[604] = { 0xff, 0xd2 };
	uint64_t state = 4;

	(void)unused;
	for (size_t i = 2; i < 602; i++)
		surplus[i] = (uint8_t)test_below(&state, 255);
	memcpy(surplus + 602, "\xff\xd3", 2);
	assert_int_equal(fflush(stderr), 0);
	check_before_end(surplus, sizeof(surplus));
}

/* 200 bytes less: a decode to the last row tells, and so does the verdict of the end. */
static void a20_cut_is_seen_after_the_last_row(void **unused)
{
	struct decoder *d = check_decoder();
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	f.size -= 200;
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "ends early");
	assert_int_equal(check_end(d, &f, &fault), FEEDER_STATUS_TRUNCATED);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* Half a file: truncated at its end whatever the box, though the upper rows are all there. */
static void a21_cut_is_its_own_reason(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box top = { 0, 0, 90, 8 };
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	jpeg_make(&plain, &f);
	f.size = jpeg_file_scan(&f) + (f.size - jpeg_file_scan(&f)) / 2;
	check_status(d, &f, FEEDER_STATUS_TRUNCATED, "near row");
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_false(info.complete);
	assert_int_equal(decoder_check_end(d, &fault), FEEDER_STATUS_TRUNCATED);
	assert_int_equal(decoder_region(d, &top, &region, &fault), FEEDER_STATUS_OK);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* A cut file's verdict, in words too, and that of its pixels where it has some. */
static void describe(struct decoder *d, const struct jpeg_file *f, char *text, size_t size)
{
	struct image_info info;
	struct region region = { 0 };
	struct fault fault = { .text = "" };
	int open = decoder_open(d, f->bytes, f->size, &info, &fault), end = -1, whole = -1;
	char end_text[FAULT_TEXT_MAX] = "";

	if (open == 0) {
		struct box all = { 0, 0, info.width, info.height };

		end = decoder_check_end(d, &fault);
		memcpy(end_text, fault.text, sizeof(end_text));
		fault.text[0] = '\0';
		whole = decoder_region(d, &all, &region, &fault);
	}
	snprintf(text, size, "%d %d %d %llx %s / %s", open, end, whole,
		whole == 0 ? (unsigned long long)check_digest(&region) : 0ull, end_text,
		fault.text);
	decoder_close(d);
}

static void check_cut(struct decoder *const d[2], const struct jpeg_file *f, size_t size)
{
	char text[2][2 * FAULT_TEXT_MAX + 100];
	int wanted = size == 0   ? FEEDER_STATUS_EMPTY
		     : size == 1 ? FEEDER_STATUS_UNKNOWN_FORMAT
				 : FEEDER_STATUS_TRUNCATED;

	for (int i = 0; i < 2; i++) {
		struct jpeg_file cut;

		jpeg_file_copy(&cut, f->bytes, size, i ? 0xff : 0);
		describe(d[i], &cut, text[i], sizeof(text[i]));
		jpeg_file_free(&cut);
	}
	assert_string_equal(text[0], text[1]);
	if (size >= f->size - 2) { /* only the EOI, or half of it, is missing */
		assert_int_equal(strncmp(text[0], "0 0 0 ", 6), 0);
		return;
	}
	if (atoi(text[0]) != wanted && strncmp(text[0], "0 13 13 ", 8) != 0)
		fail_msg("cut to %zu: %s", size, text[0]);
}

/* About 2 KiB, cut at every byte, baseline and others: in bounded time, and always the same. */
static void a22_cut_at_every_byte(void **unused)
{
	struct decoder *d[2] = { check_decoder(), check_decoder() };

	(void)unused;
	assert_int_equal(FEEDER_STATUS_TRUNCATED, 13);
	for (int i = 0; i < 5; i++) {
		const struct jpeg_recipe r = { .width = 70,
			.height = 60,
			.sampling = { { 2, 2 } },
			.quality = 50,
			.progressive = i == 1,
			.restart_mcus = i == 2 ? 3 : 0,
			.separate_scans = i == 3,
			.optimise = i == 4,
			.seed = 6 };
		struct jpeg_file f;

		jpeg_make(&r, &f);
		assert_true(f.size > 1500 && f.size < 4000);
		check_poison(d[0], 0);
		check_poison(d[1], 0xff);
		for (size_t size = 0; size < f.size; size++)
			check_cut(d, &f, size);
		jpeg_file_free(&f);
	}
	decoder_free(d[0]);
	decoder_free(d[1]);
}

/* Damaged at random: twice the same outcome and pixels, over buffers of zeros and of ones. */
static void a26_same_bytes_twice_over_poison(void **unused)
{
	struct decoder *d[2] = { check_decoder(), check_decoder() };
	uint64_t state = 12;
	unsigned int decoded = 0, rounds = test_long() ? 5000 : 300;

	(void)unused;
	for (unsigned int i = 0; i < rounds; i++) {
		struct jpeg_recipe r = plain;
		char text[2][2 * FAULT_TEXT_MAX + 100];
		struct jpeg_file f;

		r.progressive = i % 3 == 1;
		r.arithmetic = i % 7 == 3;
		r.restart_mcus = i % 5 == 4 ? 4 : 0;
		jpeg_make(&r, &f);
		for (unsigned int k = 0; k < 1 + i % 4; k++)
			f.bytes[2 + test_below(&state, (uint32_t)f.size - 2)] ^=
				(uint8_t)(1 + test_below(&state, 255));
		for (int k = 0; k < 2; k++) {
			if (i % 20 == 0)
				check_poison(d[k], k ? 0xff : 0);
			describe(d[k], &f, text[k], sizeof(text[k]));
		}
		assert_string_equal(text[0], text[1]);
		decoded += strncmp(text[0], "0 0 0 ", 6) == 0;
		jpeg_file_free(&f);
	}
	assert_in_range(decoded, 1, rounds - 1);
	decoder_free(d[0]);
	decoder_free(d[1]);
}

static const struct jpeg_recipe restarts = {
	.width = 90, .height = 150, .sampling = { { 2, 2 } }, .restart_rows = 1, .seed = 7
};

/* The picture is marked, but a box above the damage is exact. */
static void check_restart_damage(struct decoder *d, const struct jpeg_file *f)
{
	const struct box top = { 5, 3, 60, 40 };
	struct jpeg_file good;
	uint32_t width, height;
	uint8_t *reference;

	check_status(d, f, FEEDER_STATUS_DAMAGED, "near row");
	jpeg_make(&restarts, &good);
	reference = jpeg_reference(good.bytes, good.size, &width, &height);
	check_box(d, f, reference, width, &top);
	free(reference);
	jpeg_file_free(&good);
}

static void a58_restart_markers(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file f;
	size_t at;

	(void)unused;
	jpeg_make(&restarts, &f);
	check_as_reference(d, &f);
	jpeg_file_remove(&f, jpeg_file_find(&f, 0xd3, 0), 2);
	check_restart_damage(d, &f);
	jpeg_file_free(&f);

	jpeg_make(&restarts, &f);
	jpeg_file_insert(&f, jpeg_file_find(&f, 0xd5, 0), (const uint8_t *)"\xff\xd5", 2);
	check_restart_damage(d, &f);
	jpeg_file_free(&f);

	jpeg_make(&restarts, &f);
	at = jpeg_file_find(&f, 0xd4, 0);
	f.bytes[at + 1] = 0xd7;
	check_restart_damage(d, &f);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void strip(struct jpeg_file *f, uint8_t marker)
{
	for (size_t at = 2; f->bytes[at + 1] != 0xda;) {
		size_t length = 2 + ((size_t)f->bytes[at + 2] << 8 | f->bytes[at + 3]);

		if (f->bytes[at + 1] == marker)
			jpeg_file_remove(f, at, length);
		else
			at += length;
	}
}

/*
 * Without Huffman tables: the standard ones, and never those of the file before. Without
 * quantisation tables: an error, whatever the file before had.
 */
static void a60_tables_do_not_outlive_their_file(void **unused)
{
	struct jpeg_recipe own = plain;
	struct decoder *d = check_decoder();
	const struct box all = { 0, 0, 90, 70 };
	struct jpeg_file with_own, f;
	uint32_t width, height;
	uint8_t *reference;

	(void)unused;
	own.optimise = true;
	own.quality = 20;
	jpeg_make(&own, &with_own);
	jpeg_make(&plain, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	strip(&f, 0xc4);
	check_box(d, &f, reference, width, &all);
	check_as_reference(d, &with_own);
	check_box(d, &f, reference, width, &all);
	strip(&f, 0xdb);
	check_status(d, &f, FEEDER_STATUS_DAMAGED, "Quantization table");
	check_as_reference(d, &with_own);
	check_status(d, &f, FEEDER_STATUS_DAMAGED, "Quantization table");
	free(reference);
	jpeg_file_free(&with_own);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void a61_empty_huffman_segment(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box all = { 0, 0, 90, 70 };
	struct jpeg_file f;
	uint32_t width, height;
	uint8_t *reference;

	(void)unused;
	jpeg_make(&plain, &f);
	reference = jpeg_reference(f.bytes, f.size, &width, &height);
	jpeg_file_insert(&f, jpeg_file_find(&f, 0xda, 0), (const uint8_t *)"\xff\xc4\0\2", 4);
	check_box(d, &f, reference, width, &all);
	free(reference);
	jpeg_file_free(&f);
	decoder_free(d);
}

/* Sanitizers keep freed memory back on purpose (ASan 256 MiB); leaks they report themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK_PAGES 100000
#else
#define SLACK_PAGES 256
#endif

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
	fclose(f);
	return resident;
}

static void decode_damaged(struct decoder *d, struct jpeg_file *files, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const struct jpeg_file *f = &files[i % 4];
		const struct jpeg_file cut = { f->bytes, f->size / 4 + i * 7 % (f->size / 2) };
		struct region region;
		struct fault fault;

		assert_int_not_equal(check_whole(d, &cut, &region, &fault), 0);
	}
}

/* 10,000 damaged files, closed or not before the next: not a megabyte more. */
static void a69_damaged_files_leak_nothing(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file files[4];
	long before;

	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct jpeg_recipe r = plain;

		r.progressive = i == 1;
		r.model = i == 2 ? MODEL_YCCK : MODEL_YCC;
		r.optimise = i == 3;
		jpeg_make(&r, &files[i]);
	}
	decode_damaged(d, files, 1000);
	before = resident_pages();
	decode_damaged(d, files, 10000);
	assert_true(resident_pages() - before < SLACK_PAGES);
	for (int i = 0; i < 4; i++)
		jpeg_file_free(&files[i]);
	decoder_free(d);
}

/* An error in the middle of the rows, where locals and buffers are in use; then all is as new. */
static void a71_jump_out_of_the_rows(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file f;
	size_t scan, length;

	(void)unused;
	jpeg_make(&plain, &f);
	scan = jpeg_file_scan(&f);
	length = f.size - 2 - scan;
	for (size_t at = 1; at < 20; at++) {
		struct jpeg_file broken;
		struct region region;
		struct fault fault;

		jpeg_file_copy(&broken, f.bytes, f.size, 0);
		memcpy(broken.bytes + scan + length * at / 20, "\xff\xc0\xff\xc0", 4);
		assert_int_equal(check_whole(d, &broken, &region, &fault), FEEDER_STATUS_DAMAGED);
		jpeg_file_free(&broken);
		check_as_reference(d, &f);
	}
	jpeg_file_free(&f);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a09_fill_bytes_before_markers),
		cmocka_unit_test(a10_junk_byte_before_the_end),
		cmocka_unit_test(a20_cut_is_seen_after_the_last_row),
		cmocka_unit_test(a21_cut_is_its_own_reason),
		cmocka_unit_test(a22_cut_at_every_byte),
		cmocka_unit_test(a23_stray_bytes_before_the_end),
		cmocka_unit_test(a24_surplus_scan_data),
		cmocka_unit_test(a26_same_bytes_twice_over_poison),
		cmocka_unit_test(a58_restart_markers),
		cmocka_unit_test(a60_tables_do_not_outlive_their_file),
		cmocka_unit_test(a61_empty_huffman_segment),
		cmocka_unit_test(a69_damaged_files_leak_nothing),
		cmocka_unit_test(a71_jump_out_of_the_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
