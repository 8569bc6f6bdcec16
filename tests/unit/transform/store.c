/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored values: all 256 bytes of every channel and dtype against NumPy's float32 arithmetic
 * (golden.py); both layouts; the rounding of the half types at every value and midpoint they have.
 */
#include "transform/transform.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden-values.h"

#define WIDTH  16
#define HEIGHT 48
#define PIXELS (WIDTH * HEIGHT)
#define GUARD  16

/* Every byte value in every channel. */
static void fill(uint8_t *src)
{
	for (size_t i = 0; i < PIXELS * 3; i++)
		src[i] = (uint8_t)(i / 3 + 85 * (i % 3));
}

static uint32_t expected(const struct store_plan *p, int channel, uint8_t byte)
{
	const struct golden_value *g = &golden_values[(p->normalize * 3 + channel) * 256 + byte];

	switch (p->dtype) {
	case DTYPE_F32:
		return g->f32;
	case DTYPE_F16:
		return g->f16;
	case DTYPE_BF16:
		return g->bf16;
	}
	return byte;
}

static uint32_t element(const void *data, size_t i, size_t size)
{
	uint32_t v = 0;

	memcpy(&v, (const uint8_t *)data + i * size, size); /* little-endian */
	return v;
}

static void check_place(const struct store_plan *p, const uint8_t *src, const void *place)
{
	size_t size = dtype_size((int)p->dtype);

	for (size_t i = 0; i < PIXELS; i++)
		for (int c = 0; c < 3; c++) {
			size_t at = p->layout == LAYOUT_NHWC ? i * 3 + (size_t)c
							     : (size_t)c * PIXELS + i;

			assert_int_equal(element(place, at, size),
				expected(p, c, src ? src[i * 3 + (size_t)c] : 0));
		}
}

static void check_plan(const struct store_plan *p)
{
	size_t bytes = PIXELS * 3 * dtype_size((int)p->dtype);
	uint8_t src[PIXELS * 3], *place = malloc(bytes + GUARD);
	struct store_table *t;

	assert_non_null(place);
	fill(src);
	memset(place, 0xa7, bytes + GUARD);
	assert_int_equal(store_table_new(&t, p), 0);
	store_run(t, src, place);
	check_place(p, src, place);
	memset(place, 0xa7, bytes);
	store_blank(t, place);
	check_place(p, NULL, place);
	for (size_t i = 0; i < GUARD; i++)
		assert_int_equal(place[bytes + i], 0xa7);
	store_table_free(t);
	free(place);
}

static void values_are_numpys(void **state)
{
	struct store_plan p = { .width = WIDTH,
		.height = HEIGHT,
		.mean = { 0.485f, 0.456f, 0.406f },
		.std = { 0.229f, 0.224f, 0.225f } };

	(void)state;
	for (p.dtype = DTYPE_U8; p.dtype <= DTYPE_BF16; p.dtype++)
		for (p.layout = LAYOUT_NHWC; p.layout <= LAYOUT_NCHW; p.layout++)
			for (int normalize = 0; normalize < 2; normalize++) {
				p.normalize = normalize;
				check_plan(&p);
			}
}

static void refusals(void **state)
{
	struct store_plan p = {
		.width = 1, .height = 1, .dtype = DTYPE_I64, .layout = LAYOUT_NHWC
	};
	struct store_table *t;

	(void)state;
	assert_int_equal(store_table_new(&t, &p), -EINVAL);
	p.dtype = 0;
	assert_int_equal(store_table_new(&t, &p), -EINVAL);
	p.dtype = DTYPE_U8;
	p.layout = 3;
	assert_int_equal(store_table_new(&t, &p), -EINVAL);
	store_table_free(NULL);
}

/* What the bits of a binary16 or bfloat16 number mean, by its definition; also past the largest. */
static double meaning(uint32_t bits, int fraction, int bias)
{
	int exponent = (int)(bits >> fraction);
	uint32_t mantissa = bits & ((1u << fraction) - 1);

	if (exponent == 0)
		return ldexp(mantissa, 1 - bias - fraction);
	return ldexp(mantissa | 1u << fraction, exponent - bias - fraction);
}

static void check_rounding(uint16_t (*round)(float), int fraction, int bias, uint32_t infinity)
{
	for (uint32_t h = 0; h < infinity; h++) {
		double low = meaning(h, fraction, bias), high = meaning(h + 1, fraction, bias);
		float middle = (float)((low + high) / 2);
		uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);

		assert_true((double)middle == (low + high) / 2);
		assert_int_equal(round((float)low), h);
		assert_int_equal(round(nextafterf(middle, 0)), h);
		assert_int_equal(round(middle), even);
		assert_int_equal(round(nextafterf(middle, INFINITY)), h + 1);
		assert_int_equal(round(-middle), even | 0x8000);
	}
	assert_int_equal(round(INFINITY), infinity);
	assert_int_equal(round(-INFINITY), infinity | 0x8000);
	assert_true((round(NAN) & 0x7fff) > infinity);
}

static void half_types_round_to_nearest_even(void **state)
{
	(void)state;
	check_rounding(store_float16, 10, 15, 0x7c00);
	check_rounding(store_bfloat16, 7, 127, 0x7f80);
	assert_int_equal(store_float16(1e30f), 0x7c00);
}

static void names_and_sizes(void **state)
{
	(void)state;
	assert_string_equal(dtype_name(DTYPE_U8), "uint8");
	assert_string_equal(dtype_name(DTYPE_F32), "float32");
	assert_string_equal(dtype_name(DTYPE_F16), "float16");
	assert_string_equal(dtype_name(DTYPE_BF16), "bfloat16");
	assert_string_equal(dtype_name(DTYPE_I64), "int64");
	assert_string_equal(dtype_name(DTYPE_I32), "int32");
	assert_null(dtype_name(0));
	assert_null(dtype_name(7));
	assert_int_equal(dtype_size(DTYPE_BF16), 2);
	assert_int_equal(dtype_size(DTYPE_I64), 8);
	assert_int_equal(dtype_size(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_numpys),
		cmocka_unit_test(refusals),
		cmocka_unit_test(half_types_round_to_nearest_even),
		cmocka_unit_test(names_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
