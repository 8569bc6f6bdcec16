/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform: a decoded region → one place of a slot.
 *
 * geometry.c: torchvision's parameter arithmetic (which box, flipped or not).
 * resize*.c: Pillow's antialiased resize, bit for bit: a C reference and SIMD variants chosen at
 * run time, all giving the same bytes.
 * store.c: uint8 HWC → the dtype and layout of the field.
 * Objects belong to one worker thread; nothing allocates once warm.
 */
#ifndef TRANSFORM_TRANSFORM_H
#define TRANSFORM_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/philox.h"

/* Values are ABI (open-lane message). */
enum transform_filter { FILTER_BILINEAR = 1, FILTER_BICUBIC = 2 };

/* Operation codes of the pipeline and of the Philox counter; values are ABI. */
enum transform_operation {
	OPERATION_RANDOM_RESIZED_CROP = 1,
	OPERATION_RESIZE = 2,
	OPERATION_CENTER_CROP = 3,
	OPERATION_HORIZONTAL_FLIP = 4,
	OPERATION_NORMALIZE = 5,
	OPERATION_DECODE = 6, /* parameters: EXIF orientation on or off */
};

/* ---- geometry.c: sizes in pixels, torchvision's rounding (half to even) ---- */

struct crop_box {
	uint32_t x;
	uint32_t y;
	uint32_t w;
	uint32_t h;
};

/* RandomResizedCrop.get_params for a W×H image, random words from s (float32 arithmetic). */
struct crop_box random_resized_crop(struct philox_stream *s, uint32_t width, uint32_t height,
	const float scale[2], const float ratio[2]);
/* RandomHorizontalFlip: uniform < p, one word. */
bool random_flip(struct philox_stream *s, float p);
/* Resize(int): the short side becomes size, the long one int(size·long/short). */
void resize_size(
	uint32_t width, uint32_t height, uint32_t size, uint32_t *ret_width, uint32_t *ret_height);
/*
 * CenterCrop(size) of a W×H image: the offset of the crop in the image, negative where the image
 * is smaller and the crop is padded with zeros (torchvision pads (size-W)//2 left, the rest right).
 */
void center_crop(uint32_t width, uint32_t height, uint32_t crop_w, uint32_t crop_h, int32_t *ret_x,
	int32_t *ret_y);

/* ---- resize.c ---- */

/* Instruction sets, in rising order; a level that the CPU lacks is not chosen. */
enum resize_level { RESIZE_C, RESIZE_AVX2, RESIZE_AVX512, RESIZE_AVX512_VNNI, RESIZE_LEVELS };

enum resize_level resize_best_level(void);
const char *resize_level_name(enum resize_level level);

/*
 * The window (wx, wy, ww, wh) of the resize of an in_w×in_h image to out_w×out_h, as Pillow's
 * Image.resize((out_w, out_h), filter) would give it (no box: filter taps are clamped at the
 * image's edges). Only some source columns and rows are read: resize_span tells which.
 */
struct resize_plan {
	uint32_t in_w, in_h;
	uint32_t out_w, out_h;
	uint32_t wx, wy, ww, wh;
	uint32_t filter; /* enum transform_filter */
	bool flip;       /* mirror the window left-right */
};

/*
 * The first source index and count that output indexes [first, first + count) read on an axis of
 * `in` resized to `out`.
 */
void resize_span(uint32_t in, uint32_t out, uint32_t first, uint32_t count, uint32_t filter,
	uint32_t *ret_first, uint32_t *ret_count);

struct resizer;

/* level: RESIZE_LEVELS for the best that this CPU has. -ENOMEM, -ENOTSUP (level not here). */
int resizer_new(struct resizer **ret, enum resize_level level);
void resizer_free(struct resizer *r);

/*
 * src: RGB rows, src_stride bytes apart, of the source region whose top-left pixel is
 * (src_x, src_y) of the in_w×in_h image and which covers at least resize_span of both axes.
 * dst: ww·3 bytes a row, dst_stride apart. Readable slack: 64 bytes behind the last source row's
 * last pixel may be read, never used. Never writes outside the window's bytes. -ENOMEM.
 */
int resizer_run(struct resizer *r, const struct resize_plan *plan, const uint8_t *src,
	size_t src_stride, uint32_t src_x, uint32_t src_y, uint8_t *dst, size_t dst_stride);

/* ---- store.c ---- */

/* Values are ABI (field dtype). */
enum dtype {
	DTYPE_U8 = 1,
	DTYPE_F32 = 2,
	DTYPE_F16 = 3,
	DTYPE_BF16 = 4,
	DTYPE_I64 = 5,
	DTYPE_I32 = 6,
};

enum layout { LAYOUT_NHWC = 1, LAYOUT_NCHW = 2 };

size_t dtype_size(int dtype);
const char *dtype_name(int dtype); /* "uint8", "float32", … ; NULL if unknown */

struct store_plan {
	uint32_t width, height;
	uint32_t dtype;  /* U8, F32, F16, BF16 */
	uint32_t layout; /* enum layout */
	float mean[3];   /* in units of [0, 1], as torchvision's Normalize */
	float std[3];
	bool normalize; /* (x/255 - mean)/std; else x/255 for float dtypes; ignored for U8 */
};

/*
 * src: packed RGB uint8, height·width·3 bytes. dst: the place. float32 values are computed as
 * torchvision does: float32(x) / 255, then (v - mean) / std, each in float32; half types round
 * that float32 to nearest even. 256-entry tables per channel make it exact and cheap.
 */
struct store_table;
int store_table_new(struct store_table **ret, const struct store_plan *plan);
void store_table_free(struct store_table *t);
void store_run(const struct store_table *t, const uint8_t *src, void *dst);
/* float32 → the half types' bits, to nearest even. */
uint16_t store_float16(float f);
uint16_t store_bfloat16(float f);
/* What a masked or invalid place holds: the value of pixels that are 0 before normalisation. */
void store_blank(const struct store_table *t, void *dst);

#endif
