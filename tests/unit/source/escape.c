/* SPDX-License-Identifier: Apache-2.0 */
/* Names for sentences, and where the cache is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "source/cache_dir.h"
#include "source/escape.h"

static void only_what_is_printable_stays(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "plain name.jpg", "plain name.jpg" },
		{ "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9" }, { "\xf1\xe2\xff", "\\xF1\\xE2\\xFF" },
		{ "a\nb\tc\x1b[31m", "a\\x0Ab\\x09c\\x1B[31m" },
		{ "\xc2\x9b", "\\xC2\\x9B" },          /* a control character of two bytes */
		{ "\xc0\xaf", "\\xC0\\xAF" },          /* overlong */
		{ "\xed\xa0\x80", "\\xED\\xA0\\x80" }, /* a surrogate */
		{ "\xe2\x82", "\\xE2\\x82" },          /* cut short */
		{ "\xf0\x9f\x90\x88", "\xf0\x9f\x90\x88" },
		{ "\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80" }, /* beyond the last code point */
	};
	char shown[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(
			escape_name(shown, sizeof(shown), cases[i].name), cases[i].shown);
}

static void long_names_are_cut_whole(void **state)
{
	char shown[12];

	(void)state;
	assert_string_equal(escape_name(shown, sizeof(shown), "12345678"), "12345678");
	assert_string_equal(escape_name(shown, sizeof(shown), "123456789"), "12345678...");
	assert_string_equal(escape_name(shown, sizeof(shown), "1234567\xc3\xa9"), "1234567...");
	assert_string_equal(escape_name(shown, sizeof(shown), "\x01\x02\x03"), "\\x01\\x02...");
}

static void cache_directory_by_environment(void **state)
{
	char path[64];

	(void)state;
	setenv("CACHE_DIRECTORY", "/var/cache/feeder:/var/cache/other", 1);
	setenv("XDG_CACHE_HOME", "/home/u/xdg", 1);
	setenv("HOME", "/home/u", 1);
	assert_int_equal(cache_dir_default(path, sizeof(path)), 0);
	assert_string_equal(path, "/var/cache/feeder");
	unsetenv("CACHE_DIRECTORY");
	assert_int_equal(cache_dir_default(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/u/xdg/feeder");
	assert_int_equal(cache_dir_default(path, 8), -ENAMETOOLONG);
	setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says its specification */
	assert_int_equal(cache_dir_default(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/u/.cache/feeder");
	unsetenv("HOME");
	assert_int_equal(cache_dir_default(path, sizeof(path)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_printable_stays),
		cmocka_unit_test(long_names_are_cut_whole),
		cmocka_unit_test(cache_directory_by_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
