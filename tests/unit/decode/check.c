/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of decode ask again and again. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "check.h"

struct decoder *check_decoder_with(const struct decode_limits *limits)
{
	struct decoder *d;

	assert_int_equal(decoder_new(&d, limits), 0);
	return d;
}

struct decoder *check_decoder(void)
{
	struct decode_limits limits;

	decode_limits_init(&limits);
	return check_decoder_with(&limits);
}

int check_whole(
	struct decoder *d, const struct jpeg_file *f, struct region *ret, struct fault *fault)
{
	struct image_info info;
	struct box all = { 0 };
	int r = decoder_open(d, f->bytes, f->size, &info, fault);

	if (r != 0)
		return r;
	all.w = info.width;
	all.h = info.height;
	return decoder_region(d, &all, ret, fault);
}

void check_box(struct decoder *d, const struct jpeg_file *f, const uint8_t *reference,
	uint32_t width, const struct box *box)
{
	struct image_info info;
	struct region region;
	struct fault fault;

	if (decoder_open(d, f->bytes, f->size, &info, &fault) != 0 ||
		decoder_region(d, box, &region, &fault) != 0)
		fail_msg("%s", fault.text);
	assert_memory_equal(&region.box, box, sizeof(*box));
	for (uint32_t y = 0; y < box->h; y++) {
		if (memcmp(region.data + y * region.stride,
			    reference + ((size_t)(box->y + y) * width + box->x) * 3,
			    (size_t)box->w * 3) != 0)
			fail_msg("row %u of box %u,%u %ux%u of %ux%u", y, box->x, box->y, box->w,
				box->h, info.width, info.height);
	}
	decoder_close(d);
}

void check_as_reference(struct decoder *d, const struct jpeg_file *f)
{
	struct box all = { 0 };
	uint8_t *reference = jpeg_reference(f->bytes, f->size, &all.w, &all.h);

	check_box(d, f, reference, all.w, &all);
	free(reference);
}

void check_status(struct decoder *d, const struct jpeg_file *f, int status, const char *word)
{
	struct region region;
	struct fault fault = { 0 };
	int r = check_whole(d, f, &region, &fault);

	if (r != status)
		fail_msg("status %s (%s), not %s", status_word(r), fault.text, status_word(status));
	assert_int_equal(fault.status, status);
	if (!strstr(fault.text, word))
		fail_msg("\"%s\" does not say \"%s\"", fault.text, word);
	decoder_close(d);
}

int check_end(struct decoder *d, const struct jpeg_file *f, struct fault *fault)
{
	struct image_info info;

	if (decoder_open(d, f->bytes, f->size, &info, fault) != 0)
		fail_msg("%s", fault->text);
	return decoder_check_end(d, fault);
}

void check_usable(struct decoder *d)
{
	const struct jpeg_recipe recipe = {
		.width = 35, .height = 33, .sampling = { { 2, 2 } }, .seed = 99
	};
	struct jpeg_file f;

	jpeg_make(&recipe, &f);
	check_as_reference(d, &f);
	jpeg_file_free(&f);
}

struct box check_random_box(uint64_t *state, uint32_t width, uint32_t height)
{
	struct box b = { .x = test_below(state, width), .y = test_below(state, height) };

	b.w = 1 + test_below(state, test_below(state, 3) ? width - b.x : 1);
	b.h = 1 + test_below(state, test_below(state, 3) ? height - b.y : 1);
	return b;
}

uint64_t check_digest(const struct region *region)
{
	uint64_t h = 0xcbf29ce484222325ull ^ ((uint64_t)region->box.w << 32 | region->box.h);

	for (uint32_t y = 0; y < region->box.h; y++) {
		for (uint32_t i = 0; i < region->box.w * 3; i++)
			h = (h ^ region->data[y * region->stride + i]) * 0x100000001b3ull;
	}
	return h;
}

void check_poison(struct decoder *d, uint8_t pattern)
{
	/* A picture of pure noise first: its pixels and coefficients lie in every buffer. */
	const struct jpeg_recipe recipe = { .width = 300,
		.height = 200,
		.quality = 100,
		.extreme = true,
		.sampling = { { 2, 2 } },
		.progressive = pattern & 1,
		.seed = pattern };
	struct jpeg_file f;

	mallopt(M_PERTURB, pattern ^ 0xff);
	jpeg_make(&recipe, &f);
	check_as_reference(d, &f);
	jpeg_file_free(&f);
}
