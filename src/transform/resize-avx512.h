/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two AVX-512 variants share: loads of four rows, stores of ring values, the frame of
 * the vertical pass. Each compiles it with its own flags.
 */
#ifndef TRANSFORM_RESIZE_AVX512_H
#define TRANSFORM_RESIZE_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "transform/resize-variants.h"

#define BLOCK 64 /* values that the vertical pass takes at once */

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

/* BLOCK values from x on of the output row that `taps` rows make. */
typedef __m512i vertical_block_of(
	const int32_t *const *row, const uint32_t *pair, const int taps, __m512i bias, size_t x);

static inline __attribute__((always_inline)) void vertical(vertical_block_of *block,
	const int32_t *const *row, const uint32_t *pair, const int taps, int32_t bias_of_row,
	size_t width, uint8_t *out)
{
	__m512i bias = _mm512_set1_epi32(bias_of_row);
	size_t x = 0;

	for (; x + BLOCK <= width; x += BLOCK)
		_mm512_storeu_si512(out + x, block(row, pair, taps, bias, x));
	if (x < width) {
		uint8_t last[BLOCK];

		_mm512_storeu_si512(last, block(row, pair, taps, bias, x));
		memcpy(out + x, last, width - x);
	}
}

/* One output row; block is a constant of the caller, inlined for each number of taps. */
static inline __attribute__((always_inline)) void vertical_by_taps(vertical_block_of *block,
	const int32_t *const *row, const uint32_t *pair, int taps, int32_t bias, size_t width,
	uint8_t *out)
{
	switch (taps) {
	case 2:
		vertical(block, row, pair, 2, bias, width, out);
		break;
	case 3:
		vertical(block, row, pair, 3, bias, width, out);
		break;
	case 4:
		vertical(block, row, pair, 4, bias, width, out);
		break;
	default:
		vertical(block, row, pair, taps, bias, width, out);
		break;
	}
}

#endif
