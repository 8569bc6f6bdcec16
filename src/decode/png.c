/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG, by libspng, as Pillow 9.4's Image.open(…).convert("RGB").
 *
 * Pillow's ways: 16-bit colour keeps its high bytes; 16-bit gray is an integer image, whose
 * conversion clips at 255 instead of scaling (nearly all of it comes out white); alpha and
 * transparent colours are dropped and not blended. Always decoded whole, so that a file's verdict
 * does not depend on the box. PNGs are rare among photos: libspng's object is made anew for each.
 */
#include <errno.h>
#include <spng.h>
#include <stdlib.h>
#include <string.h>

#include "decode/budget.h"
#include "decode/codec.h"
#include "decode/exif.h"
#include "decode/pixels.h"

#define RGB_BYTES     3
#define ROWS_PER_LOOK 64

/* Texts and profiles: they are not wanted, and a compressed one may be a bomb. */
#define CHUNK_BYTES ((size_t)64 << 20)

struct png {
	const struct decode_limits *limits; /* constant after start */

	/* owned by one thread */
	spng_ctx *spng;
	struct spng_ihdr header;
	struct budget budget;
	bool decoded;
	struct pixels pixels; /* the whole image, RGB */
	struct pixels deep;   /* the whole image as 16-bit gray */
};

static int png_create(void **ret, const struct decode_limits *limits)
{
	struct png *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->limits = limits;
	*ret = p;
	return 0;
}

static void png_close(void *state)
{
	struct png *p = state;

	spng_ctx_free(p->spng);
	p->spng = NULL;
	p->decoded = false;
	pixels_trim(&p->pixels);
	pixels_trim(&p->deep);
}

static void png_destroy(void *state)
{
	struct png *p = state;

	if (!p)
		return;
	png_close(p);
	pixels_deinit(&p->pixels);
	pixels_deinit(&p->deep);
	free(p);
}

static int png_fail(struct fault *fault, int error, bool in_header)
{
	int status = in_header ? FEEDER_STATUS_BAD_HEADER : FEEDER_STATUS_DAMAGED;

	switch (error) {
	case SPNG_IO_EOF:
	case SPNG_EOF:
	case SPNG_EIDAT_TOO_SHORT:
		status = FEEDER_STATUS_TRUNCATED;
		break;
	case SPNG_EMEM:
	case SPNG_ECHUNK_LIMITS:
		status = FEEDER_STATUS_MEMORY_LIMIT;
		break;
	case SPNG_EUSER_WIDTH:
	case SPNG_EUSER_HEIGHT:
		status = FEEDER_STATUS_TOO_LARGE;
		break;
	default:
		break;
	}
	return fault_set(fault, status, 0, "PNG: %s", spng_strerror(error));
}

static bool is_deep_gray(const struct png *p)
{
	return p->header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && p->header.bit_depth == 16;
}

static int check_limits(const struct png *p, struct fault *fault)
{
	uint64_t pixels = (uint64_t)p->header.width * p->header.height;

	if (pixels > p->limits->max_pixels)
		return fault_set(fault, FEEDER_STATUS_TOO_LARGE, 0,
			"%u x %u pixels, the limit is %llu in all", p->header.width,
			p->header.height, (unsigned long long)p->limits->max_pixels);
	if (pixels * RGB_BYTES > p->limits->max_memory)
		return fault_set(fault, FEEDER_STATUS_MEMORY_LIMIT, 0,
			"memory cap: %u x %u pixels, the limit is %llu bytes", p->header.width,
			p->header.height, (unsigned long long)p->limits->max_memory);
	return 0;
}

/* Reads all chunks before the pixels; 0 or libspng's error. */
static int read_chunks(struct png *p, uint32_t *ret_orientation)
{
	struct spng_exif exif;
	int r = spng_get_exif(p->spng, &exif);

	*ret_orientation = 1;
	if (r == 0)
		*ret_orientation = exif_orientation((const uint8_t *)exif.data, exif.length);
	return r == SPNG_ECHUNKAVAIL ? 0 : r;
}

static int read_header(struct png *p, const uint8_t *bytes, size_t size, uint32_t *ret_orientation,
	struct fault *fault)
{
	int r;

	p->spng = spng_ctx_new(0);
	if (!p->spng)
		return png_fail(fault, SPNG_EMEM, true);
	spng_set_crc_action(p->spng, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
	spng_set_chunk_limits(p->spng, CHUNK_BYTES, CHUNK_BYTES);
	r = spng_set_png_buffer(p->spng, bytes, size);
	if (r == 0)
		r = spng_get_ihdr(p->spng, &p->header);
	if (r != 0)
		return png_fail(fault, r, true);
	r = check_limits(p, fault);
	if (r != 0)
		return r;
	r = read_chunks(p, ret_orientation);
	return r != 0 ? png_fail(fault, r, true) : 0;
}

static int png_open(
	void *state, const uint8_t *bytes, size_t size, struct image_info *ret, struct fault *fault)
{
	struct png *p = state;
	uint32_t orientation;
	int r;

	png_close(p);
	budget_start(&p->budget, p->limits->max_cpu_ns);
	r = read_header(p, bytes, size, &orientation, fault);
	if (r != 0) {
		png_close(p);
		return r;
	}
	*ret = (struct image_info){
		.width = p->header.width,
		.height = p->header.height,
		.orientation = orientation,
		.complete = true,
		.codec = codec_png.name,
	};
	return 0;
}

/* Every pixel of the image into rows; interlaced rows come several times, pass by pass. */
static int decode_rows(
	struct png *p, uint8_t **rows, size_t row_bytes, int format, struct fault *fault)
{
	unsigned int count = 0;
	int r = spng_decode_image(p->spng, NULL, 0, format, SPNG_DECODE_PROGRESSIVE);

	while (r == 0) {
		struct spng_row_info info;

		r = spng_get_row_info(p->spng, &info);
		if (r == 0)
			r = spng_decode_row(p->spng, rows[info.row_num], row_bytes);
		if (++count % ROWS_PER_LOOK == 1 && budget_spent(&p->budget))
			return fault_set(fault, FEEDER_STATUS_DECODE_TIMEOUT, 0,
				"more than %llu ms of CPU time",
				(unsigned long long)(p->limits->max_cpu_ns / NS_PER_MS));
	}
	return r == SPNG_EOI ? 0 : png_fail(fault, r, false);
}

/* Big-endian 16-bit gray to RGB, clipped as Pillow's "I" images are. */
static void flatten(const struct png *p)
{
	for (uint32_t y = 0; y < p->header.height; y++) {
		const uint8_t *in = p->deep.rows[y];
		uint8_t *out = p->pixels.rows[y];

		for (uint32_t x = 0; x < p->header.width; x++, in += 2, out += RGB_BYTES)
			memset(out, in[0] ? 255 : in[1], RGB_BYTES);
	}
}

static int decode(struct png *p, struct fault *fault)
{
	size_t width = p->header.width, height = p->header.height;
	uint64_t most = p->limits->max_memory;
	int r;

	if (p->decoded)
		return 0;
	r = pixels_reserve(&p->pixels, width * RGB_BYTES, height, most);
	if (r == 0 && is_deep_gray(p))
		r = pixels_reserve(&p->deep, width * 2, height, most);
	if (r < 0)
		return png_fail(fault, SPNG_EMEM, false);
	if (is_deep_gray(p))
		r = decode_rows(p, p->deep.rows, width * 2, SPNG_FMT_RAW, fault);
	else
		r = decode_rows(p, p->pixels.rows, width * RGB_BYTES, SPNG_FMT_RGB8, fault);
	if (r != 0)
		return r;
	if (is_deep_gray(p))
		flatten(p);
	p->decoded = true;
	return 0;
}

static int png_check_end(void *state, struct fault *fault)
{
	return decode(state, fault);
}

static int png_region(void *state, const struct box *box, struct region *ret, struct fault *fault)
{
	struct png *p = state;
	int r = decode(p, fault);

	if (r != 0)
		return r;
	*ret = (struct region){
		.data = p->pixels.rows[box->y] + (size_t)box->x * RGB_BYTES,
		.stride = p->pixels.stride,
		.box = *box,
	};
	return 0;
}

const struct codec codec_png = {
	.name = "png",
	.create = png_create,
	.destroy = png_destroy,
	.open = png_open,
	.check_end = png_check_end,
	.region = png_region,
	.close = png_close,
};
