/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX-512 with VNNI: the horizontal pass by dot products of four bytes, one for each digit of the
 * coefficients, as a Horner scheme; the vertical pass by dot products that accumulate. Sums of more
 * than four taps go the way of resize-avx512.c.
 */
#include "transform/resize-variants.h"

#include <immintrin.h>
#include <string.h>

#define BLOCK 64

static inline __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
	__m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a));

	return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)b), 1);
}

static inline __m512i four_rows(const uint8_t *src, size_t stride)
{
	__m256i ab = two_rows(src, src + stride);
	__m256i cd = two_rows(src + 2 * stride, src + 3 * stride);

	return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}

static inline __m512i all_lanes(const void *p)
{
	return _mm512_broadcast_i32x4(_mm_load_si128(p));
}

static inline void keep(int32_t *out, size_t stride, __m512i v)
{
	_mm_storeu_si128((__m128i *)out, _mm512_castsi512_si128(v));
	_mm_storeu_si128((__m128i *)(out + stride), _mm512_extracti32x4_epi32(v, 1));
	_mm_storeu_si128((__m128i *)(out + 2 * stride), _mm512_extracti32x4_epi32(v, 2));
	_mm_storeu_si128((__m128i *)(out + 3 * stride), _mm512_extracti32x4_epi32(v, 3));
}

static inline __attribute__((always_inline)) __m512i dot(
	__m512i taps, const __m512i digit[3], const bool clip)
{
	/* Rounding, and 128 less: a multiple of 2^16, so the two shifts bring it to its place. */
	const __m512i bias = _mm512_set1_epi32(
		((1 << (RESIZE_PRECISION - 1)) - (128 << RESIZE_PRECISION)) / 65536);
	const __m512i words = _mm512_broadcast_i32x4(
		_mm_setr_epi8(-1, 0, 0, 1, -1, 4, 4, 5, -1, 8, 8, 9, -1, 12, 12, 13));
	__m512i v = _mm512_dpbusd_epi32(bias, taps, digit[2]);

	v = _mm512_dpbusd_epi32(_mm512_slli_epi32(v, 8), taps, digit[1]);
	v = _mm512_dpbusd_epi32(_mm512_slli_epi32(v, 8), taps, digit[0]);
	v = _mm512_srai_epi32(v, RESIZE_PRECISION);
	if (clip) {
		v = _mm512_min_epi32(v, _mm512_set1_epi32(127));
		v = _mm512_max_epi32(v, _mm512_set1_epi32(-128));
	}
	return _mm512_shuffle_epi8(v, words);
}

static inline __attribute__((always_inline)) void horizontal_digits(
	const struct tap_table *t, const struct band *b, const bool clip)
{
	const struct tap_digits *d = t->digits;
	const uint32_t *offset = t->offset, *end = offset + t->groups;
	size_t stride = b->src_stride, out_stride = b->out_stride;
	const uint8_t *row0 = b->src;
	int32_t *out = b->out;

	for (; offset < end; offset++, out += 4, d++) {
		__m512i pick = all_lanes(d->pick);
		__m512i digit[3] = { all_lanes(d->digit[0]), all_lanes(d->digit[1]),
			all_lanes(d->digit[2]) };
		const uint8_t *src = row0 + *offset;
		__m512i low = _mm512_shuffle_epi8(four_rows(src, stride), pick);
		__m512i high = _mm512_shuffle_epi8(four_rows(src + 4 * stride, stride), pick);

		keep(out, out_stride, dot(low, digit, clip));
		keep(out + 4 * out_stride, out_stride, dot(high, digit, clip));
	}
}

static void horizontal_band(const struct tap_table *t, const struct band *b, bool clip)
{
	if (!t->digits)
		resize_variant_avx512.kernels->horizontal(t, b, clip);
	else if (clip)
		horizontal_digits(t, b, true);
	else
		horizontal_digits(t, b, false);
}

/* 64 values: sums to bytes, saturating as Pillow's clip8. */
static inline __m512i pack(__m512i a, __m512i b, __m512i c, __m512i d)
{
	const __m512i order =
		_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	__m512i ab = _mm512_packs_epi32(
		_mm512_srai_epi32(a, RESIZE_PRECISION), _mm512_srai_epi32(b, RESIZE_PRECISION));
	__m512i cd = _mm512_packs_epi32(
		_mm512_srai_epi32(c, RESIZE_PRECISION), _mm512_srai_epi32(d, RESIZE_PRECISION));

	return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
}

static inline __attribute__((always_inline)) __m512i vertical_block(
	const int32_t *const *row, const uint32_t *pair, const int taps, __m512i bias, size_t x)
{
	__m512i a = bias, b = bias, c = bias, d = bias;

	for (int t = 0; t < taps; t++) {
		const int32_t *p = row[t] + x;
		__m512i k = _mm512_set1_epi32((int)pair[t]);

		a = _mm512_dpwssd_epi32(a, _mm512_load_si512(p), k);
		b = _mm512_dpwssd_epi32(b, _mm512_load_si512(p + 16), k);
		c = _mm512_dpwssd_epi32(c, _mm512_load_si512(p + 32), k);
		d = _mm512_dpwssd_epi32(d, _mm512_load_si512(p + 48), k);
	}
	return pack(a, b, c, d);
}

static inline __attribute__((always_inline)) void vertical(const int32_t *const *row,
	const uint32_t *pair, const int taps, int32_t bias_of_row, size_t width, uint8_t *out)
{
	__m512i bias = _mm512_set1_epi32(bias_of_row);
	size_t x = 0;

	for (; x + BLOCK <= width; x += BLOCK)
		_mm512_storeu_si512(out + x, vertical_block(row, pair, taps, bias, x));
	if (x < width) {
		uint8_t last[BLOCK];

		_mm512_storeu_si512(last, vertical_block(row, pair, taps, bias, x));
		memcpy(out + x, last, width - x);
	}
}

static void vertical_row(const int32_t *const *row, const uint32_t *pair, int taps, int32_t bias,
	size_t width, uint8_t *out)
{
	switch (taps) {
	case 2:
		vertical(row, pair, 2, bias, width, out);
		break;
	case 3:
		vertical(row, pair, 3, bias, width, out);
		break;
	case 4:
		vertical(row, pair, 4, bias, width, out);
		break;
	default:
		vertical(row, pair, taps, bias, width, out);
		break;
	}
}

static bool supported_vnni(void)
{
	return resize_variant_avx512.supported() && __builtin_cpu_supports("avx512vnni");
}

static const struct band_kernels kernels_vnni = {
	.block = BLOCK,
	.digits = true,
	.horizontal = horizontal_band,
	.vertical = vertical_row,
};

const struct resize_variant resize_variant_vnni = {
	.name = "avx512-vnni",
	.supported = supported_vnni,
	.fill = axis_fill_avx2,
	.kernels = &kernels_vnni,
	.run = run_bands,
};
