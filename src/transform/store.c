/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uint8 HWC → the dtype and layout of the field. A byte has 256 values, so each channel is a table
 * of its results, computed once with the float32 operations of torchvision's ToTensor and
 * Normalize and rounded to nearest even for the half types: exact, and one load a value.
 */
#include "transform/transform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store_table {
	uint32_t dtype;
	uint32_t layout;
	size_t pixels;
	union {
		uint8_t u8[3][256];
		uint16_t u16[3][256];
		uint32_t u32[3][256];
	} value;
};

static const struct dtype_facts {
	const char *name;
	size_t size;
} dtypes[] = {
	[DTYPE_U8] = { "uint8", 1 },
	[DTYPE_F32] = { "float32", 4 },
	[DTYPE_F16] = { "float16", 2 },
	[DTYPE_BF16] = { "bfloat16", 2 },
	[DTYPE_I64] = { "int64", 8 },
	[DTYPE_I32] = { "int32", 4 },
};

static const struct dtype_facts *facts(int dtype)
{
	if (dtype < DTYPE_U8 || dtype > DTYPE_I32)
		return NULL;
	return &dtypes[dtype];
}

size_t dtype_size(int dtype)
{
	const struct dtype_facts *f = facts(dtype);

	return f ? f->size : 0;
}

const char *dtype_name(int dtype)
{
	const struct dtype_facts *f = facts(dtype);

	return f ? f->name : NULL;
}

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* value >> shift, rounded to nearest even. */
static uint32_t shift_round(uint32_t value, unsigned int shift)
{
	uint32_t half = 1u << (shift - 1), rest = value & ((1u << shift) - 1);
	uint32_t whole = value >> shift;

	return whole + (rest > half || (rest == half && (whole & 1)));
}

uint16_t store_bfloat16(float f)
{
	uint32_t bits = float_bits(f);

	if ((bits & 0x7fffffff) > 0x7f800000) /* NaN stays one */
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)shift_round(bits, 16);
}

uint16_t store_float16(float f)
{
	uint32_t bits = float_bits(f), sign = bits >> 16 & 0x8000;
	uint32_t size = bits & 0x7fffffff, exponent = size >> 23;
	uint32_t mantissa = (size & 0x7fffff) | 0x800000;

	if (size > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
	if (exponent >= 143) /* 2^16 and above */
		return (uint16_t)(sign | 0x7c00);
	/* A carry out of the mantissa rightly raises the exponent, up to infinity. */
	if (exponent >= 113)
		return (uint16_t)(sign | shift_round(size - (112u << 23), 13));
	if (exponent < 102) /* under half of the smallest subnormal, 2^-24 */
		return (uint16_t)sign;
	return (uint16_t)(sign | shift_round(mantissa, 126 - exponent));
}

static float normalized(const struct store_plan *plan, int channel, int byte)
{
	float v = (float)byte / 255.0f;

	return plan->normalize ? (v - plan->mean[channel]) / plan->std[channel] : v;
}

static void fill_channel(struct store_table *t, const struct store_plan *plan, int channel)
{
	for (int byte = 0; byte < 256; byte++) {
		float v = normalized(plan, channel, byte);

		switch (plan->dtype) {
		case DTYPE_U8:
			t->value.u8[channel][byte] = (uint8_t)byte;
			break;
		case DTYPE_F32:
			t->value.u32[channel][byte] = float_bits(v);
			break;
		case DTYPE_F16:
			t->value.u16[channel][byte] = store_float16(v);
			break;
		case DTYPE_BF16:
			t->value.u16[channel][byte] = store_bfloat16(v);
			break;
		}
	}
}

int store_table_new(struct store_table **ret, const struct store_plan *plan)
{
	struct store_table *t;

	if (plan->dtype < DTYPE_U8 || plan->dtype > DTYPE_BF16)
		return -EINVAL;
	if (plan->layout != LAYOUT_NHWC && plan->layout != LAYOUT_NCHW)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->dtype = plan->dtype;
	t->layout = plan->layout;
	t->pixels = (size_t)plan->width * plan->height;
	for (int channel = 0; channel < 3; channel++)
		fill_channel(t, plan, channel);
	*ret = t;
	return 0;
}

void store_table_free(struct store_table *t)
{
	free(t);
}

/*
 * One function per storage type: `pixel` values apart from pixel to pixel, `plane` from channel to
 * channel.
 */
#define DEFINE_STORE(type, table)                                                           \
	static void run_##table(const struct store_table *t, const uint8_t *src, type *dst, \
		size_t pixel, size_t plane)                                                 \
	{                                                                                   \
		for (size_t i = 0; i < t->pixels; i++, src += 3, dst += pixel) {            \
			dst[0] = t->value.table[0][src[0]];                                 \
			dst[plane] = t->value.table[1][src[1]];                             \
			dst[2 * plane] = t->value.table[2][src[2]];                         \
		}                                                                           \
	}                                                                                   \
	static void blank_##table(                                                          \
		const struct store_table *t, type *dst, size_t pixel, size_t plane)         \
	{                                                                                   \
		for (size_t i = 0; i < t->pixels; i++, dst += pixel)                        \
			for (size_t channel = 0; channel < 3; channel++)                    \
				dst[channel * plane] = t->value.table[channel][0];          \
	}

DEFINE_STORE(uint8_t, u8)
DEFINE_STORE(uint16_t, u16)
DEFINE_STORE(uint32_t, u32)

void store_run(const struct store_table *t, const uint8_t *src, void *dst)
{
	size_t pixel = t->layout == LAYOUT_NHWC ? 3 : 1;
	size_t plane = t->layout == LAYOUT_NHWC ? 1 : t->pixels;

	if (t->dtype == DTYPE_U8 && t->layout == LAYOUT_NHWC)
		memcpy(dst, src, t->pixels * 3);
	else if (t->dtype == DTYPE_U8)
		run_u8(t, src, dst, pixel, plane);
	else if (t->dtype == DTYPE_F32)
		run_u32(t, src, dst, pixel, plane);
	else
		run_u16(t, src, dst, pixel, plane);
}

void store_blank(const struct store_table *t, void *dst)
{
	size_t pixel = t->layout == LAYOUT_NHWC ? 3 : 1;
	size_t plane = t->layout == LAYOUT_NHWC ? 1 : t->pixels;

	if (t->dtype == DTYPE_U8)
		blank_u8(t, dst, pixel, plane);
	else if (t->dtype == DTYPE_F32)
		blank_u32(t, dst, pixel, plane);
	else
		blank_u16(t, dst, pixel, plane);
}
