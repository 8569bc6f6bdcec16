/* SPDX-License-Identifier: Apache-2.0 */
/* What first bytes are called; images that are decoded are in goldens.c. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "decode/sniff.h"

#define BYTES(literal) literal, sizeof(literal) - 1

struct sample {
	const char *bytes;
	size_t size;
	int status;
	const char *word;
};

static const struct sample samples[] = {
	{ BYTES("GIF89a"), FEEDER_STATUS_OTHER_FORMAT, "GIF" },
	{ BYTES("RIFF\1\2\3\4WEBPVP8 "), FEEDER_STATUS_OTHER_FORMAT, "WebP" },
	{ BYTES("RIFF\1\2\3\4WAVEfmt "), FEEDER_STATUS_UNKNOWN_FORMAT, "RIFF" },
	{ BYTES("BM\x36\0\0\0"), FEEDER_STATUS_OTHER_FORMAT, "BMP" },
	{ BYTES("II*\0\x8\0\0\0"), FEEDER_STATUS_OTHER_FORMAT, "TIFF" },
	{ BYTES("MM\0*\0\0\0\x8"), FEEDER_STATUS_OTHER_FORMAT, "TIFF" },
	{ BYTES("\0\0\0\x1c"
		"ftypavif\0\0\0\0"),
		FEEDER_STATUS_OTHER_FORMAT, "AVIF" },
	{ BYTES("\0\0\0\x18"
		"ftypheic\0\0\0\0"),
		FEEDER_STATUS_OTHER_FORMAT, "HEIC" },
	{ BYTES("\0\0\0\x18"
		"ftypmif1\0\0\0\0"),
		FEEDER_STATUS_OTHER_FORMAT, "HEIF" },
	{ BYTES("\0\0\0\x18"
		"ftypisom\0\0\0\0"),
		FEEDER_STATUS_UNKNOWN_FORMAT, "MP4" },
	{ BYTES("8BPS\0\1"), FEEDER_STATUS_OTHER_FORMAT, "PSD" },
	{ BYTES("\0\0\0\x0cjP  \r\n\x87\n"), FEEDER_STATUS_OTHER_FORMAT, "JPEG 2000" },
	{ BYTES("\0\0\0\x0cJXL \r\n\x87\n"), FEEDER_STATUS_OTHER_FORMAT, "JPEG XL" },
	{ BYTES("\xff\x0a\1\2\3"), FEEDER_STATUS_OTHER_FORMAT, "JPEG XL" },
	{ BYTES("P6\n3 3 255\n"), FEEDER_STATUS_OTHER_FORMAT, "PPM" },
	{ BYTES("P5 3 3 255 "), FEEDER_STATUS_OTHER_FORMAT, "PGM" },
	{ BYTES("<!DOCTYPE HTML>"), FEEDER_STATUS_UNKNOWN_FORMAT, "HTML" },
	{ BYTES("\xef\xbb\xbf \n<html lang=\"en\">"), FEEDER_STATUS_UNKNOWN_FORMAT, "HTML" },
	{ BYTES("<?xml version"), FEEDER_STATUS_UNKNOWN_FORMAT, "XML" },
	{ BYTES("version https://git-lfs.github.com/spec/v1\noid"), FEEDER_STATUS_LFS_POINTER,
		"LFS" },
	{ BYTES("PK\3\4abcd"), FEEDER_STATUS_UNKNOWN_FORMAT, "ZIP" },
	{ BYTES("\0\0\0\0\0\0\0\0\0"), FEEDER_STATUS_UNKNOWN_FORMAT, "zero" },
	{ BYTES("hello, world"), FEEDER_STATUS_UNKNOWN_FORMAT, "68 65 6c 6c" },
	{ BYTES(""), FEEDER_STATUS_EMPTY, "empty" },
	{ BYTES("\xff"), FEEDER_STATUS_UNKNOWN_FORMAT, "1 bytes" },
	{ BYTES("P6"), FEEDER_STATUS_UNKNOWN_FORMAT, "2 bytes" },
};

static void sniff_names_each(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct sample *s = &samples[i];
		const struct codec *codec = NULL;
		struct fault fault;

		assert_int_equal(
			sniff((const uint8_t *)s->bytes, s->size, &codec, &fault), s->status);
		assert_int_equal(fault.status, s->status);
		if (!strstr(fault.text, s->word))
			fail_msg("\"%s\" does not say %s", fault.text, s->word);
		assert_null(codec);
	}
}

static void sniff_finds_codecs(void **unused)
{
	const struct codec *codec;
	struct fault fault;

	(void)unused;
	assert_int_equal(sniff((const uint8_t *)"\xff\xd8", 2, &codec, &fault), 0);
	assert_ptr_equal(codec, &codec_jpeg);
	assert_int_equal(sniff((const uint8_t *)"\x89PNG\r\n\x1a\n", 8, &codec, &fault), 0);
	assert_ptr_equal(codec, &codec_png);
}

/* Every beginning of every sample, in a block of exactly its size: no byte behind it is read. */
static void sniff_stays_inside(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		for (size_t size = 0; size <= samples[i].size; size++) {
			uint8_t *exact = malloc(size ? size : 1);
			const struct codec *codec;
			struct fault fault;

			memcpy(exact, samples[i].bytes, size);
			assert_int_not_equal(sniff(exact, size, &codec, &fault), 0);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sniff_names_each),
		cmocka_unit_test(sniff_finds_codecs),
		cmocka_unit_test(sniff_stays_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
