/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once warm, decoding allocates nothing of feeder's own.
 *
 * The linker sends this executable's own calls of malloc and its kin here (--wrap); what
 * libjpeg-turbo allocates inside its shared library is its own.
 */
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static unsigned int allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	allocations++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	allocations++;
	return __real_aligned_alloc(alignment, size);
}

static const struct jpeg_recipe recipes[] = {
	{ .width = 200, .height = 150, .sampling = { { 2, 2 } } },
	{ .width = 180, .height = 170, .progressive = true },
	{ .width = 120, .height = 140, .model = MODEL_GRAY },
	{ .width = 100, .height = 100, .model = MODEL_YCCK },
	{ .width = 100, .height = 100, .sampling = { { 2, 2 } }, .restart_mcus = 2 },
};

#define COUNT (sizeof(recipes) / sizeof(recipes[0]))

static void decode_all(struct decoder *d, const struct jpeg_file *files, uint64_t *state)
{
	for (size_t i = 0; i < COUNT; i++) {
		struct image_info info;
		struct region region;
		struct fault fault;
		struct box b = check_random_box(state, recipes[i].width, recipes[i].height);

		assert_int_equal(decoder_open(d, files[i].bytes, files[i].size, &info, &fault), 0);
		assert_int_equal(decoder_check_end(d, &fault), 0);
		assert_int_equal(decoder_region(d, &b, &region, &fault), 0);
		decoder_close(d);
		/* Damaged ones too. */
		if (decoder_open(d, files[i].bytes, files[i].size / 2, &info, &fault) == 0)
			decoder_region(d, &b, &region, &fault);
	}
}

static void warm_decoder_allocates_nothing(void **unused)
{
	struct decoder *d = check_decoder();
	struct jpeg_file files[COUNT];
	uint64_t state = 1;

	(void)unused;
	for (size_t i = 0; i < COUNT; i++) {
		struct region region;
		struct fault fault;

		jpeg_make(&recipes[i], &files[i]);
		assert_int_equal(check_whole(d, &files[i], &region, &fault), 0);
	}
	assert_true(allocations > 0);
	allocations = 0;
	for (int i = 0; i < 50; i++)
		decode_all(d, files, &state);
	assert_int_equal(allocations, 0);
	for (size_t i = 0; i < COUNT; i++)
		jpeg_file_free(&files[i]);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warm_decoder_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
