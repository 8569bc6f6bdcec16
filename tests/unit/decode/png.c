/* SPDX-License-Identifier: Apache-2.0 */
/* PNGs that are damaged, too large or tagged; the pixels of good ones are in goldens.c. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "goldens.h"

static void load(const char *name, struct jpeg_file *ret)
{
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		if (strcmp(goldens[i].name, name) == 0) {
			jpeg_file_copy(ret, goldens[i].file, goldens[i].size, 0);
			return;
		}
	}
	fail_msg("no golden %s", name);
}

/* Cut at every byte: never decoded, never a crash; up to its IEND it is whole all the same. */
static void png_cut_at_every_byte(void **unused)
{
	static const char *const names[] = { "png_rgb_8", "png_gray_16", "png_rgba_8_interlaced" };
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		struct jpeg_file f;

		load(names[i], &f);
		for (size_t size = 8; size < f.size - 16; size++) {
			struct jpeg_file cut;
			struct region region;
			struct fault fault;
			int r;

			jpeg_file_copy(&cut, f.bytes, size, 0xff);
			r = check_whole(d, &cut, &region, &fault);
			if (r != FEEDER_STATUS_TRUNCATED)
				fail_msg("%s cut to %zu: %s", names[i], size, status_word(r));
			jpeg_file_free(&cut);
		}
		f.size -= 12; /* IEND */
		check_status(d, &f, FEEDER_STATUS_OK, "");
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

/* The verdict does not depend on the box: a box of the first rows sees damage in the last. */
static void png_verdict_is_the_files(void **unused)
{
	struct decoder *d = check_decoder();
	const struct box top = { 0, 0, 1, 1 };
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	load("png_rgb_8", &f);
	f.bytes[f.size - 20] ^= 0x55; /* in IDAT's check sums */
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(decoder_region(d, &top, &region, &fault), FEEDER_STATUS_DAMAGED);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(decoder_check_end(d, &fault), FEEDER_STATUS_DAMAGED);
	decoder_close(d);
	jpeg_file_free(&f);
	decoder_free(d);
}

static void put_u32(uint8_t *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The chunk's check sum: over its type and data. */
static uint32_t chunk_crc(const uint8_t *p, size_t size)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void set_size(struct jpeg_file *f, uint32_t width, uint32_t height)
{
	put_u32(f->bytes + 16, width);
	put_u32(f->bytes + 20, height);
	put_u32(f->bytes + 29, chunk_crc(f->bytes + 12, 17));
}

static void png_limits_before_allocation(void **unused)
{
	struct decode_limits limits;
	struct decoder *d;
	struct jpeg_file f;

	(void)unused;
	decode_limits_init(&limits);
	limits.max_memory = 1 << 20;
	d = check_decoder_with(&limits);
	load("png_rgb_8", &f);
	set_size(&f, 60000, 60000);
	check_status(d, &f, FEEDER_STATUS_TOO_LARGE, "60000 x 60000");
	set_size(&f, 1000, 1000);
	check_status(d, &f, FEEDER_STATUS_MEMORY_LIMIT, "memory cap");
	jpeg_file_free(&f);
	decoder_free(d);
}

static void png_time_budget(void **unused)
{
	struct decode_limits limits;
	struct decoder *d;
	struct jpeg_file f;

	(void)unused;
	decode_limits_init(&limits);
	limits.max_cpu_ns = 1;
	d = check_decoder_with(&limits);
	load("png_rgb_8", &f);
	check_status(d, &f, FEEDER_STATUS_DECODE_TIMEOUT, "CPU time");
	jpeg_file_free(&f);
	decoder_free(d);
}

static void png_orientation(void **unused)
{
	static const uint8_t exif[] = { 'e', 'X', 'I', 'f', 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01,
		0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0 };
	struct decode_limits limits;
	struct decoder *d;
	uint8_t chunk[sizeof(exif) + 8];
	struct image_info info;
	struct fault fault;
	struct jpeg_file f;

	(void)unused;
	decode_limits_init(&limits);
	limits.apply_orientation = true;
	d = check_decoder_with(&limits);
	load("png_rgb_8", &f);
	put_u32(chunk, sizeof(exif) - 4);
	memcpy(chunk + 4, exif, sizeof(exif));
	put_u32(chunk + 4 + sizeof(exif), chunk_crc(exif, sizeof(exif)));
	jpeg_file_insert(&f, 33, chunk, sizeof(chunk));
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(info.orientation, 6);
	assert_int_equal(info.width, 9);
	assert_int_equal(info.height, 11);
	jpeg_file_free(&f);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(png_cut_at_every_byte),
		cmocka_unit_test(png_verdict_is_the_files),
		cmocka_unit_test(png_limits_before_allocation),
		cmocka_unit_test(png_time_budget),
		cmocka_unit_test(png_orientation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
