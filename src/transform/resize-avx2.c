/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX2: two rows of a band to a register, so that the tables are read once for four rows; eight
 * values of the vertical pass to a register.
 */
#include "transform/resize-variants.h"

#include <immintrin.h>
#include <string.h>

#define BLOCK 32

static inline __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
	__m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a));

	return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)b), 1);
}

static inline __m256i both_lanes(const void *p)
{
	return _mm256_broadcastsi128_si256(_mm_load_si128(p));
}

/* Sums of upper and lower products → the ring's pair of words. */
static inline __attribute__((always_inline)) __m256i finish(
	__m256i high, __m256i low, const bool clip)
{
	/* Rounding, and 128 less, so that what is left of the shift is v - 128. */
	const __m256i bias =
		_mm256_set1_epi32((1 << (RESIZE_PRECISION - 1)) - (128 << RESIZE_PRECISION));
	const __m256i words = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(-1, 0, 0, 1, -1, 4, 4, 5, -1, 8, 8, 9, -1, 12, 12, 13));
	__m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, 11), _mm256_add_epi32(low, bias));
	__m256i v = _mm256_srai_epi32(sum, RESIZE_PRECISION);

	if (clip) {
		v = _mm256_min_epi32(v, _mm256_set1_epi32(127));
		v = _mm256_max_epi32(v, _mm256_set1_epi32(-128));
	}
	return _mm256_shuffle_epi8(v, words);
}

/* The upper and lower products of two rows' group. */
struct sums {
	__m256i high;
	__m256i low;
};

/* A segment's tables, once for all rows of the band. */
struct tables {
	__m256i pick;
	__m256i high;
	__m256i low;
};

static inline struct tables load_tables(const struct tap_segment *s)
{
	return (struct tables){ both_lanes(s->pick), both_lanes(s->high), both_lanes(s->low) };
}

static inline struct sums weigh(__m256i rows, const struct tables *t)
{
	__m256i taps = _mm256_shuffle_epi8(rows, t->pick);

	return (struct sums){ _mm256_madd_epi16(taps, t->high), _mm256_madd_epi16(taps, t->low) };
}

static inline struct sums plus(struct sums a, struct sums b)
{
	return (struct sums){ _mm256_add_epi32(a.high, b.high), _mm256_add_epi32(a.low, b.low) };
}

static inline void keep(int32_t *out, size_t stride, __m256i v)
{
	_mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(v));
	_mm_storeu_si128((__m128i *)(out + stride), _mm256_extracti128_si256(v, 1));
}

/* One or two segments from one load: sizes up to twice the output's, and all enlargements. */
static inline __attribute__((always_inline)) void horizontal_shared(
	const struct tap_table *t, const struct band *b, const int segments, const bool clip)
{
	const struct tap_segment *s = t->segment;
	const uint32_t *offset = t->offset, *end = offset + t->groups;
	size_t stride = b->src_stride, out_stride = b->out_stride;
	const uint8_t *row0 = b->src;
	int32_t *out0 = b->out;

	for (; offset < end; offset++, out0 += 4, s += segments) {
		struct tables one = load_tables(s), two = load_tables(s + segments - 1);
		const uint8_t *src = row0 + *offset;
		int32_t *out = out0;

#pragma GCC unroll 4
		for (int i = 0; i < BAND / 2; i++) {
			__m256i rows = two_rows(src, src + stride);
			struct sums sums = weigh(rows, &one);

			if (segments == 2)
				sums = plus(sums, weigh(rows, &two));
			keep(out, out_stride, finish(sums.high, sums.low, clip));
			src += 2 * stride;
			out += 2 * out_stride;
		}
	}
}

/* Any number of segments with a load each; two rows at a time. */
static inline __attribute__((always_inline)) void horizontal_many(
	const struct tap_table *t, const struct band *b, const bool clip)
{
	for (size_t row = 0; row < BAND; row += 4) {
		const uint8_t *src = b->src + row * b->src_stride;
		int32_t *out = b->out + row * b->out_stride;
		const struct tap_segment *s = t->segment;
		const uint32_t *offset = t->offset;
		size_t two = 2 * b->src_stride;

		for (uint32_t g = 0; g < t->groups; g++, out += t->step) {
			struct sums a = { _mm256_setzero_si256(), _mm256_setzero_si256() }, c = a;

			for (uint32_t i = 0; i < t->segments; i++, s++) {
				struct tables tables = load_tables(s);
				const uint8_t *p = src + *offset++;

				a = plus(a, weigh(two_rows(p, p + b->src_stride), &tables));
				p += two;
				c = plus(c, weigh(two_rows(p, p + b->src_stride), &tables));
			}
			keep(out, b->out_stride, finish(a.high, a.low, clip));
			keep(out + 2 * b->out_stride, b->out_stride, finish(c.high, c.low, clip));
		}
	}
}

static void horizontal_band(const struct tap_table *t, const struct band *b, bool clip)
{
	if (!t->shared && clip)
		horizontal_many(t, b, true);
	else if (!t->shared)
		horizontal_many(t, b, false);
	else if (clip)
		t->segments == 2 ? horizontal_shared(t, b, 2, true)
				 : horizontal_shared(t, b, 1, true);
	else
		t->segments == 2 ? horizontal_shared(t, b, 2, false)
				 : horizontal_shared(t, b, 1, false);
}

/* 32 values: sums to bytes, saturating as Pillow's clip8. */
static inline __m256i pack(__m256i a, __m256i b, __m256i c, __m256i d)
{
	__m256i ab = _mm256_packs_epi32(
		_mm256_srai_epi32(a, RESIZE_PRECISION), _mm256_srai_epi32(b, RESIZE_PRECISION));
	__m256i cd = _mm256_packs_epi32(
		_mm256_srai_epi32(c, RESIZE_PRECISION), _mm256_srai_epi32(d, RESIZE_PRECISION));

	return _mm256_permutevar8x32_epi32(
		_mm256_packus_epi16(ab, cd), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __attribute__((always_inline)) __m256i vertical_block(
	const int32_t *const *row, const uint32_t *pair, const int taps, __m256i bias, size_t x)
{
	__m256i a = bias, b = bias, c = bias, d = bias;

	for (int t = 0; t < taps; t++) {
		const __m256i *p = (const __m256i *)(row[t] + x);
		__m256i k = _mm256_set1_epi32((int)pair[t]);

		a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_load_si256(p), k));
		b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_load_si256(p + 1), k));
		c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_load_si256(p + 2), k));
		d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_load_si256(p + 3), k));
	}
	return pack(a, b, c, d);
}

static inline __attribute__((always_inline)) void vertical(const int32_t *const *row,
	const uint32_t *pair, const int taps, int32_t bias_of_row, size_t width, uint8_t *out)
{
	__m256i bias = _mm256_set1_epi32(bias_of_row);
	size_t x = 0;

	for (; x + BLOCK <= width; x += BLOCK)
		_mm256_storeu_si256((__m256i *)(out + x), vertical_block(row, pair, taps, bias, x));
	if (x < width) {
		uint8_t last[BLOCK];

		_mm256_storeu_si256((__m256i *)last, vertical_block(row, pair, taps, bias, x));
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

static bool supported_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static const struct band_kernels kernels_avx2 = {
	.block = BLOCK,
	.horizontal = horizontal_band,
	.vertical = vertical_row,
};

const struct resize_variant resize_variant_avx2 = {
	.name = "avx2",
	.supported = supported_avx2,
	.fill = axis_fill_avx2,
	.kernels = &kernels_avx2,
	.run = run_bands,
};
