/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files against the pixels that Pillow's convert("RGB") gives, for each model and mode. */
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "goldens.h"

#define COUNT (sizeof(goldens) / sizeof(goldens[0]))

static void check_golden(struct decoder *d, const struct golden *g)
{
	struct jpeg_file f;
	struct box all = { 0, 0, g->width, g->height };
	uint64_t state = 3;

	jpeg_file_copy(&f, g->file, g->size, 0xff);
	check_box(d, &f, g->rgb, g->width, &all);
	for (int i = 0; i < 8; i++) {
		struct box b = check_random_box(&state, g->width, g->height);

		check_box(d, &f, g->rgb, g->width, &b);
	}
	jpeg_file_free(&f);
}

static void goldens_by_one_decoder(void **unused)
{
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t i = 0; i < COUNT; i++)
		check_golden(d, &goldens[i]);
	/* In the other order, so that each follows another kind of file. */
	for (size_t i = COUNT; i-- > 0;)
		check_golden(d, &goldens[i]);
	decoder_free(d);
}

static void goldens_tell_their_codec(void **unused)
{
	struct decoder *d = check_decoder();

	(void)unused;
	for (size_t i = 0; i < COUNT; i++) {
		bool png = strncmp(goldens[i].name, "png", 3) == 0;
		struct image_info info;
		struct fault fault;
		struct jpeg_file f;

		jpeg_file_copy(&f, goldens[i].file, goldens[i].size, 0);
		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_string_equal(info.codec, png ? "png" : "jpeg");
		assert_true(info.complete);
		assert_int_equal(info.progressive, strstr(goldens[i].name, "progressive") != NULL);
		assert_int_equal(info.orientation, 1);
		decoder_close(d);
		jpeg_file_free(&f);
	}
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goldens_by_one_decoder),
		cmocka_unit_test(goldens_tell_their_codec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
