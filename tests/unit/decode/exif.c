/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation tag, in both byte orders, and in blocks that lie about themselves. */
#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "decode/exif.h"

static void put(uint8_t *p, int bytes, uint32_t value, bool big)
{
	for (int i = 0; i < bytes; i++)
		p[big ? bytes - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* A block with two entries, the second of which is the orientation. 38 bytes. */
static size_t make_block(uint8_t *p, bool big, uint32_t type, uint32_t value)
{
	memset(p, 0, 38);
	memcpy(p, big ? "MM\0*" : "II*\0", 4);
	put(p + 4, 4, 8, big);
	put(p + 8, 2, 2, big);
	put(p + 10, 2, 0x010f, big);
	put(p + 12, 2, 2, big);
	put(p + 14, 4, 0xffffffff, big);
	put(p + 18, 4, 0xfffffff0, big);
	put(p + 22, 2, 0x0112, big);
	put(p + 24, 2, type, big);
	put(p + 26, 4, 1, big);
	put(p + 30, 2, value, big);
	return 38;
}

static void exif_both_byte_orders(void **unused)
{
	uint8_t block[38];

	(void)unused;
	for (uint32_t value = 1; value <= 8; value++) {
		assert_int_equal(
			exif_orientation(block, make_block(block, false, 3, value)), value);
		assert_int_equal(exif_orientation(block, make_block(block, true, 3, value)), value);
	}
}

static void exif_other_values_are_none(void **unused)
{
	uint8_t block[38];

	(void)unused;
	assert_int_equal(exif_orientation(block, make_block(block, false, 3, 0)), 1);
	assert_int_equal(exif_orientation(block, make_block(block, false, 3, 9)), 1);
	assert_int_equal(exif_orientation(block, make_block(block, false, 4, 6)), 1);
	assert_int_equal(exif_orientation((const uint8_t *)"nothing of TIFF", 15), 1);
}

/* Each cut and each wrong byte: some answer, and no byte read outside (under ASan). */
static void exif_any_damage(void **unused)
{
	uint8_t block[38];
	size_t size = make_block(block, false, 3, 6);

	(void)unused;
	for (size_t cut = 0; cut <= size; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);

		memcpy(exact, block, cut);
		assert_int_equal(exif_orientation(exact, cut), cut >= 34 ? 6 : 1);
		free(exact);
	}
	for (size_t at = 0; at < size; at++) {
		for (unsigned int value = 0; value < 256; value++) {
			uint8_t *exact = malloc(size);
			uint32_t got;

			memcpy(exact, block, size);
			exact[at] = (uint8_t)value;
			got = exif_orientation(exact, size);
			assert_true(got >= 1 && got <= 8);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exif_both_byte_orders),
		cmocka_unit_test(exif_other_values_are_none),
		cmocka_unit_test(exif_any_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
