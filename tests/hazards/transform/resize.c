/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize and crop rows of the hazard catalogue: filters, frozen defaults, extreme sizes, streams.
 */
#include "transform/transform.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLACK 64 /* readable bytes behind a source */

static struct resizer *resizer(void)
{
	struct resizer *r;

	assert_int_equal(resizer_new(&r, RESIZE_LEVELS), 0);
	return r;
}

static struct resize_plan whole(uint32_t w, uint32_t h, uint32_t out, uint32_t filter)
{
	return (struct resize_plan){ .in_w = w,
		.in_h = h,
		.out_w = out,
		.out_h = out,
		.ww = out,
		.wh = out,
		.filter = filter };
}

/* Plain linear sampling of a checkerboard keeps black and white; an antialiased one is gray. */
static void a43_shrinking_is_antialiased(void **state)
{
	struct resize_plan plan = whole(1000, 1000, 224, FILTER_BILINEAR);
	uint8_t *src = malloc(1000 * 1000 * 3 + SLACK), *dst = malloc(224 * 224 * 3);
	struct resizer *r = resizer();

	(void)state;
	for (size_t y = 0; y < 1000; y++)
		for (size_t x = 0; x < 1000; x++)
			memset(src + (y * 1000 + x) * 3, (x + y) % 2 ? 255 : 0, 3);
	assert_int_equal(resizer_run(r, &plan, src, 3000, 0, 0, dst, 224 * 3), 0);
	for (size_t i = 0; i < 224 * 224 * 3; i++)
		assert_in_range(dst[i], 125, 130);
	resizer_free(r);
	free(src);
	free(dst);
}

/* FNV-1a of the resize of a fixed picture. */
static uint64_t digest(uint32_t filter)
{
	struct resize_plan plan = whole(333, 250, 224, filter);
	uint8_t *src = malloc(333 * 250 * 3 + SLACK), *dst = malloc(224 * 224 * 3);
	struct resizer *r = resizer();
	uint64_t h = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < 333 * 250 * 3; i++)
		src[i] = (uint8_t)(i * 2654435761u >> 23);
	assert_int_equal(resizer_run(r, &plan, src, 333 * 3, 0, 0, dst, 224 * 3), 0);
	for (size_t i = 0; i < 224 * 224 * 3; i++)
		h = (h ^ dst[i]) * 0x100000001b3u;
	resizer_free(r);
	free(src);
	free(dst);
	return h;
}

/* The filter is always named in the plan; there is no value that means "some default". */
static void a44_the_filter_is_named(void **state)
{
	struct resize_plan plan = whole(1, 1, 1, 0);
	uint8_t src[3 + SLACK] = { 0 }, dst[3];
	struct resizer *r = resizer();

	(void)state;
	assert_int_equal(resizer_run(r, &plan, src, 3, 0, 0, dst, 3), -EINVAL);
	assert_int_equal(FILTER_BILINEAR, 1);
	assert_int_equal(FILTER_BICUBIC, 2);
	assert_int_not_equal(digest(FILTER_BILINEAR), digest(FILTER_BICUBIC));
	resizer_free(r);
}

/* Digests of Pillow's Image.resize((224, 224), BILINEAR and BICUBIC) of the same picture. */
static void a45_the_output_is_frozen(void **state)
{
	(void)state;
	assert_int_equal(digest(FILTER_BILINEAR), 0x6594e38c97621271u);
	assert_int_equal(digest(FILTER_BICUBIC), 0xabae3e4ebf272b87u);
}

static void a63_extreme_sizes(void **state)
{
	static const uint32_t sizes[][2] = { { 65500, 1 }, { 1, 65500 }, { 65501, 1 }, { 1, 65501 },
		{ 65535, 1 }, { 1, 65535 }, { 65535, 2 }, { 2, 65535 }, { 1, 1 } };
	struct resizer *r = resizer();
	uint8_t *dst = malloc(224 * 224 * 3);

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t w = sizes[i][0], h = sizes[i][1], rw, rh;
		struct resize_plan plan = whole(w, h, 224, FILTER_BILINEAR);
		uint8_t *src = malloc((size_t)w * h * 3 + SLACK);

		memset(src, 200, (size_t)w * h * 3 + SLACK);
		memset(dst, 0, 224 * 224 * 3);
		assert_int_equal(resizer_run(r, &plan, src, (size_t)w * 3, 0, 0, dst, 224 * 3), 0);
		for (size_t k = 0; k < 224 * 224 * 3; k++)
			assert_int_equal(dst[k], 200);
		resize_size(w, h, 1, &rw, &rh);
		assert_true(rw >= 1 && rh >= 1);
		free(src);
	}
	resizer_free(r);
	free(dst);
}

#define SAMPLES 4000

static const float scale[2] = { 0.08f, 1 }, ratio[2] = { 3.0f / 4, 4.0f / 3 };

static struct crop_box box_of(uint64_t seed, uint64_t id, uint32_t epoch)
{
	struct philox_stream s;

	philox_stream_init(&s, seed, id, epoch, 0, OPERATION_RANDOM_RESIZED_CROP);
	return random_resized_crop(&s, 500, 375, scale, ratio);
}

struct worker {
	struct crop_box *box;
	uint64_t first;
};

static void *every_fourth(void *argument)
{
	struct worker *w = argument;

	for (uint64_t id = w->first; id < SAMPLES; id += 4)
		w->box[id] = box_of(7, id, 3);
	return NULL;
}

static void c16_crops_depend_on_the_sample_not_on_the_thread(void **state)
{
	struct crop_box *box = calloc(SAMPLES, sizeof(*box));
	struct worker worker[4];
	pthread_t thread[4];
	int same = 0;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		worker[i] = (struct worker){ box, i };
		assert_int_equal(pthread_create(&thread[i], NULL, every_fourth, &worker[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (uint64_t id = 0; id < SAMPLES; id++) {
		struct crop_box alone = box_of(7, id, 3);

		assert_memory_equal(&alone, &box[id], sizeof(alone));
		same += id && memcmp(&box[id], &box[id - 1], sizeof(alone)) == 0;
	}
	assert_in_range(same, 0, 5);
	free(box);
}

static void c17_crops_differ_between_epochs_and_agree_between_reruns(void **state)
{
	int by_epoch = 0, by_seed = 0;

	(void)state;
	for (uint64_t id = 0; id < SAMPLES; id++) {
		struct crop_box first = box_of(1, id, 0), again = box_of(1, id, 0);
		struct crop_box epoch = box_of(1, id, 1), seed = box_of(1ull << 32 | 1, id, 0);

		assert_memory_equal(&first, &again, sizeof(first));
		by_epoch += memcmp(&first, &epoch, sizeof(first)) == 0;
		by_seed += memcmp(&first, &seed, sizeof(first)) == 0;
	}
	assert_in_range(by_epoch, 0, 5);
	assert_in_range(by_seed, 0, 5);
}

/* A crop read from the whole picture and one from a decoded region are the same pixels. */
static void c21_whole_and_region_path_agree(void **state)
{
	uint8_t *picture = malloc(500 * 375 * 3 + SLACK);
	uint8_t whole_path[64 * 64 * 3], region_path[64 * 64 * 3];
	struct resizer *r = resizer();

	(void)state;
	for (uint32_t i = 0; i < 500 * 375 * 3; i++)
		picture[i] = (uint8_t)(i * 2654435761u >> 21);
	for (uint64_t id = 0; id < 30; id++) {
		struct crop_box b = box_of(11, id, 0);
		struct resize_plan plan = whole(b.w, b.h, 64, FILTER_BICUBIC);
		size_t stride = (size_t)b.w * 3 + 5;
		uint8_t *region = malloc(stride * b.h + SLACK);

		memset(region, 0xe5, stride * b.h + SLACK);
		for (size_t y = 0; y < b.h; y++)
			memcpy(region + y * stride, picture + ((y + b.y) * 500 + b.x) * 3,
				(size_t)b.w * 3);
		assert_int_equal(resizer_run(r, &plan, picture + ((size_t)b.y * 500 + b.x) * 3,
					 1500, 0, 0, whole_path, 64 * 3),
			0);
		assert_int_equal(
			resizer_run(r, &plan, region, stride, 0, 0, region_path, 64 * 3), 0);
		assert_memory_equal(whole_path, region_path, sizeof(whole_path));
		free(region);
	}
	resizer_free(r);
	free(picture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a43_shrinking_is_antialiased),
		cmocka_unit_test(a44_the_filter_is_named),
		cmocka_unit_test(a45_the_output_is_frozen),
		cmocka_unit_test(a63_extreme_sizes),
		cmocka_unit_test(c16_crops_depend_on_the_sample_not_on_the_thread),
		cmocka_unit_test(c17_crops_differ_between_epochs_and_agree_between_reruns),
		cmocka_unit_test(c21_whole_and_region_path_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
