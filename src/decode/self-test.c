/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in images whole and by region.
 *
 * Regions rest on libjpeg-turbo behaviour that releases have broken before, on some machines
 * only. A daemon that finds a difference decodes whole pictures instead: slower, never wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "decode/self-test-images.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int find_error(char *text, size_t size, const char *name, const struct fault *fault)
{
	snprintf(text, size, "%s: the built-in image %s does not decode: %s",
		decode_library_version(), name, fault->text);
	return -ENOTSUP;
}

static int decode_box(struct decoder *d, const struct self_test_image *image, const struct box *box,
	struct region *ret, struct fault *fault)
{
	struct image_info info;
	int r = decoder_open(d, image->bytes, image->size, &info, fault);

	return r != 0 ? r : decoder_region(d, box, ret, fault);
}

static bool rows_equal(const struct region *region, const uint8_t *whole, uint32_t width)
{
	const struct box *b = &region->box;

	for (uint32_t y = 0; y < b->h; y++) {
		if (memcmp(region->data + y * region->stride,
			    whole + ((size_t)(b->y + y) * width + b->x) * 3, (size_t)b->w * 3) != 0)
			return false;
	}
	return true;
}

static int compare_box(struct decoder *d, const struct self_test_image *image,
	const struct box *box, const uint8_t *whole, char *text, size_t size)
{
	struct region region;
	struct fault fault;

	if (decode_box(d, image, box, &region, &fault) != 0)
		return find_error(text, size, image->name, &fault);
	if (rows_equal(&region, whole, image->width))
		return 0;
	snprintf(text, size,
		"%s: box %u,%u %ux%u of the built-in image %s differs from a full decode",
		decode_library_version(), box->x, box->y, box->w, box->h, image->name);
	return -ENOTSUP;
}

/* Boxes that begin and end at, before and behind block and MCU edges, both ways at once. */
static int compare_boxes(struct decoder *d, const struct self_test_image *image,
	const uint8_t *whole, char *text, size_t size)
{
	static const uint32_t starts[] = { 0, 1, 7, 8, 15, 16, 17, 31, 32, 33 };
	static const uint32_t lengths[] = { 1, 2, 9, 64 };

	for (size_t i = 0; i < COUNT(starts) * COUNT(lengths); i++) {
		struct box box = { .x = starts[i % COUNT(starts)],
			.y = starts[i * 7 % COUNT(starts)],
			.w = lengths[i / COUNT(starts)],
			.h = lengths[i * 3 % COUNT(lengths)] };
		int r;

		if (box.w > image->width - box.x)
			box.w = image->width - box.x;
		if (box.h > image->height - box.y)
			box.h = image->height - box.y;
		r = compare_box(d, image, &box, whole, text, size);
		if (r < 0)
			return r;
	}
	return 0;
}

static int test_image(
	struct decoder *d, const struct self_test_image *image, char *text, size_t size)
{
	const struct box all = { 0, 0, image->width, image->height };
	struct region region;
	struct fault fault;
	uint8_t *whole;
	int r;

	if (decode_box(d, image, &all, &region, &fault) != 0)
		return find_error(text, size, image->name, &fault);
	whole = malloc((size_t)image->width * image->height * 3);
	if (!whole)
		return -ENOMEM;
	for (uint32_t y = 0; y < image->height; y++)
		memcpy(whole + (size_t)y * image->width * 3, region.data + y * region.stride,
			(size_t)image->width * 3);
	r = compare_boxes(d, image, whole, text, size);
	free(whole);
	return r;
}

int decode_self_test(char *text, size_t size)
{
	struct decode_limits limits;
	struct decoder *d;
	int r;

	decode_limits_init(&limits);
	r = decoder_new(&d, &limits);
	if (r == -ENOTSUP)
		snprintf(text, size, "the JPEG library is not the one feeder was built with (%s)",
			decode_library_version());
	if (r < 0)
		return r;
	for (size_t i = 0; i < COUNT(self_test_images) && r == 0; i++)
		r = test_image(d, &self_test_images[i], text, size);
	decoder_free(d);
	return r;
}
