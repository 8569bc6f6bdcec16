/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libjpeg-turbo's SIMD code gives the pixels of its C code.
 *
 * The choice is made once a thread, from the environment: so the other run is this executable
 * again, with JSIMD_FORCENONE=1, which prints its digest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

static uint64_t digest_all(void)
{
	static const uint8_t factors[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 } };
	struct decoder *d = check_decoder();
	uint64_t digest = 0, state = 77;

	for (unsigned int i = 0; i < 60; i++) {
		struct jpeg_recipe r = { .width = 20 + test_below(&state, 150),
			.height = 20 + test_below(&state, 150),
			.sampling = { { factors[i % 5][0], factors[i % 5][1] } },
			.quality = i % 3 == 0 ? 5 : 95,
			.extreme = i % 2,
			.progressive = i % 4 == 3,
			.model = i % 11 == 10  ? MODEL_GRAY
				 : i % 11 == 9 ? MODEL_YCCK
					       : MODEL_YCC,
			.seed = i };
		struct image_info info;
		struct region region;
		struct fault fault;
		struct jpeg_file f;
		struct box b = check_random_box(&state, r.width, r.height);

		jpeg_make(&r, &f);
		assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
		assert_int_equal(decoder_region(d, &b, &region, &fault), 0);
		digest = digest * 31 + check_digest(&region);
		jpeg_file_free(&f);
	}
	decoder_free(d);
	return digest;
}

static void a57_simd_and_c_agree(void **unused)
{
	char path[500], command[600], line[64] = "", expected[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	FILE *child;

	(void)unused;
	assert_true(n > 0);
	path[n] = '\0';
	snprintf(command, sizeof(command), "JSIMD_FORCENONE=1 '%s' digest", path);
	child = popen(command, "r");
	assert_non_null(child);
	assert_non_null(fgets(line, sizeof(line), child));
	assert_int_equal(pclose(child), 0);
	snprintf(expected, sizeof(expected), "%016" PRIx64 "\n", digest_all());
	assert_string_equal(line, expected);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a57_simd_and_c_agree),
	};

	if (argc == 2 && strcmp(argv[1], "digest") == 0) {
		printf("%016" PRIx64 "\n", digest_all());
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
