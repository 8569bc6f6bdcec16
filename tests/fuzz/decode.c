/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: open, the verdict of the end, a box. What must hold of every file:
 *
 *	- status, words and pixels do not depend on what was in memory before;
 *	- what decodes whole has every box of it, equal to the whole's;
 *	- the verdict of the end is that of the whole.
 *
 * The box comes from a hash of the file, so that a corpus file is an image and nothing else.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "decode/codec.h"
#include "fuzz.h"
#include "make-jpeg.h"

#define NOISES 3
#define WHOLE  (-1)
#define BOXES  5

/* All that can be seen of one file's decoding. */
struct shot {
	struct image_info info;
	struct box box;
	int open, end, region;
	char text[3][FAULT_TEXT_MAX];
	uint8_t *pixels; /* of the box, packed; NULL where there are none */
};

static struct jpeg_file noises[NOISES];

static void make_noises(void)
{
	static const struct jpeg_recipe recipes[NOISES] = {
		{ .width = 50,
			.height = 41,
			.quality = 100,
			.extreme = true,
			.seed = 1,
			.optimise = true,
			.sampling = { { 2, 2 } } },
		{ .width = 49,
			.height = 40,
			.quality = 100,
			.extreme = true,
			.seed = 2,
			.sampling = { { 2, 1 } },
			.progressive = true },
		{ .width = 33,
			.height = 34,
			.quality = 100,
			.extreme = true,
			.seed = 3,
			.optimise = true,
			.model = MODEL_CMYK },
	};

	for (int i = 0; i < NOISES; i++)
		jpeg_make(&recipes[i], &noises[i]);
}

/* A decoder in fresh memory of this pattern, which has decoded something else before. */
static struct decoder *make_decoder(uint8_t pattern, bool orientation, uint64_t hash)
{
	const struct jpeg_file *noise = &noises[(hash + (pattern & 1)) % NOISES];
	struct decode_limits limits;
	struct image_info info;
	struct region region;
	struct fault fault;
	struct decoder *d;
	struct box all = { 0 };

	decode_limits_init(&limits);
	limits.max_pixels = 1 << 18;
	limits.max_scans = 40;
	limits.max_memory = 16 << 20;
	limits.max_cpu_ns = 1000 * NS_PER_SEC; /* a clock would make two runs differ */
	limits.apply_orientation = orientation;
	fuzz_poison(pattern);
	REQUIRE(decoder_new(&d, &limits) == 0);
	REQUIRE(decoder_open(d, noise->bytes, noise->size, &info, &fault) == 0);
	all.w = info.width;
	all.h = info.height;
	REQUIRE(decoder_region(d, &all, &region, &fault) == 0);
	return d;
}

/* Box number n; every other one is a few pixels only. */
static struct box choose_box(uint64_t hash, int n, const struct image_info *info)
{
	uint32_t most = n % 2 ? 5 : UINT32_MAX;

	hash = (hash + (uint64_t)n) * 0x9e3779b97f4a7c15ull;
	struct box b = { .x = (uint32_t)(hash >> 8) % info->width,
		.y = (uint32_t)(hash >> 24) % info->height };

	b.w = 1 + (uint32_t)(hash >> 16) % (info->width - b.x) % most;
	b.h = 1 + (uint32_t)(hash >> 32) % (info->height - b.y) % most;
	return b;
}

static uint8_t *take_pixels(const struct region *region, const struct box *box)
{
	size_t row = (size_t)box->w * 3;
	uint8_t *pixels = malloc(row * box->h);

	REQUIRE(pixels);
	REQUIRE(memcmp(&region->box, box, sizeof(*box)) == 0);
	for (uint32_t y = 0; y < box->h; y++)
		memcpy(pixels + y * row, region->data + y * region->stride, row);
	return pixels;
}

static int take_fault(char ret[FAULT_TEXT_MAX], int r, const struct fault *fault)
{
	REQUIRE(r >= 0 && r < FEEDER_STATUS_COUNT);
	if (r != 0) {
		REQUIRE(fault->status == r);
		REQUIRE(fault->text[0] && memchr(fault->text, 0, sizeof(fault->text)));
		memcpy(ret, fault->text, FAULT_TEXT_MAX);
		ret[strlen(ret)] = '\0';
	}
	return r;
}

/* box: its number; WHOLE for all of it. The verdict of the end is asked with box 0. */
static void shoot(struct shot *ret, struct decoder *d, const uint8_t *data, size_t size, int box,
	uint8_t tail)
{
	uint8_t *bytes = malloc(size + BYTES_TAIL);
	struct region region;
	struct fault fault;

	REQUIRE(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	memset(bytes + size, tail, BYTES_TAIL);
	memset(ret, 0, sizeof(*ret));
	ret->open =
		take_fault(ret->text[0], decoder_open(d, bytes, size, &ret->info, &fault), &fault);
	if (ret->open == 0) {
		REQUIRE(ret->info.width > 0 && ret->info.height > 0);
		REQUIRE((uint64_t)ret->info.width * ret->info.height <= 1 << 18);
		ret->box = (struct box){ .w = ret->info.width, .h = ret->info.height };
		if (box >= 0)
			ret->box = choose_box(fuzz_hash(data, size), box, &ret->info);
		if (box == 0)
			ret->end = take_fault(ret->text[1], decoder_check_end(d, &fault), &fault);
		ret->region = take_fault(
			ret->text[2], decoder_region(d, &ret->box, &region, &fault), &fault);
		if (ret->region == 0)
			ret->pixels = take_pixels(&region, &ret->box);
	}
	decoder_close(d);
	free(bytes);
}

static void must_equal(const struct shot *a, const struct shot *b)
{
	REQUIRE(a->open == b->open);
	REQUIRE(a->end == b->end);
	REQUIRE(a->region == b->region);
	REQUIRE(memcmp(&a->box, &b->box, sizeof(a->box)) == 0);
	for (int i = 0; i < 3; i++)
		REQUIRE(strcmp(a->text[i], b->text[i]) == 0);
	if (a->open == 0) {
		REQUIRE(a->info.width == b->info.width && a->info.height == b->info.height);
		REQUIRE(a->info.orientation == b->info.orientation);
		REQUIRE(a->info.complete == b->info.complete);
		REQUIRE(a->info.progressive == b->info.progressive);
	}
	if (a->pixels)
		REQUIRE(memcmp(a->pixels, b->pixels, (size_t)a->box.w * a->box.h * 3) == 0);
}

/* A part against all of it, decoded with neither crop nor skip. */
static void must_be_part(const struct shot *part, const struct shot *whole)
{
	REQUIRE(part->open == whole->open);
	if (part->open != 0)
		return;
	if (!whole->pixels)
		return;
	REQUIRE(part->pixels);
	for (uint32_t y = 0; y < part->box.h; y++) {
		size_t at = (size_t)(part->box.y + y) * whole->box.w + part->box.x;
		size_t row = (size_t)part->box.w * 3;

		REQUIRE(memcmp(part->pixels + y * row, whole->pixels + at * 3, row) == 0);
	}
}

/* Boxes by crop and skip, in a decoder that has just decoded the whole with neither. */
static void try_boxes(struct decoder *d, const uint8_t *data, size_t size, const struct shot *first)
{
	struct shot whole, part;

	decode_use_full_decode(true);
	shoot(&whole, d, data, size, WHOLE, 0);
	decode_use_full_decode(false);
	must_be_part(first, &whole);
	REQUIRE(whole.open != 0 || (first->end == 0) == (whole.region == 0));
	for (int n = 1; n < BOXES && whole.open == 0; n++) {
		shoot(&part, d, data, size, n, 0);
		must_be_part(&part, &whole);
		free(part.pixels);
	}
	free(whole.pixels);
}

static void try_orientation(const uint8_t *data, size_t size, bool orientation)
{
	static const uint8_t patterns[2] = { 0x00, 0xff };
	uint64_t hash = fuzz_hash(data, size);
	struct shot shots[2];
	struct decoder *d;

	for (int i = 0; i < 2; i++) {
		d = make_decoder(patterns[i], orientation, hash);
		shoot(&shots[i], d, data, size, 0, patterns[i]);
		decoder_free(d);
	}
	must_equal(&shots[0], &shots[1]);
	d = make_decoder(0x5a, orientation, hash);
	try_boxes(d, data, size, &shots[0]);
	decoder_free(d);
	fuzz_poison_end();
	free(shots[0].pixels);
	free(shots[1].pixels);
}

static uint32_t png_crc(const uint8_t *p, size_t size)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* Chunks with the check sums that they should have: without, no change gets behind them. */
static void mend_png(uint8_t *png, size_t size)
{
	for (size_t at = 8; at + 12 <= size;) {
		size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 |
				(size_t)png[at + 2] << 8 | png[at + 3];
		uint32_t crc;

		if (length > size - at - 12)
			return;
		crc = png_crc(png + at + 4, 4 + length);
		at += 8 + length;
		for (int i = 0; i < 4; i++)
			png[at++] = (uint8_t)(crc >> (24 - 8 * i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_copy(data, size);

	if (!noises[0].bytes)
		make_noises();
	if (size > 8 && data[0] == 0x89)
		mend_png(copy, size);
	try_orientation(copy, size, false);
	try_orientation(copy, size, true);
	free(copy);
	return 0;
}
