/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX-512BW: the four rows of a band in one register, sixteen values of the vertical pass to a
 * register.
 */
#include "transform/resize-avx512.h"

/* Sums of upper and lower products → the ring's pair of words. */
static inline __attribute__((always_inline)) __m512i finish(
	__m512i high, __m512i low, const bool clip)
{
	const __m512i bias =
		_mm512_set1_epi32((1 << (RESIZE_PRECISION - 1)) - (128 << RESIZE_PRECISION));
	const __m512i words = _mm512_broadcast_i32x4(
		_mm_setr_epi8(-1, 0, 0, 1, -1, 4, 4, 5, -1, 8, 8, 9, -1, 12, 12, 13));
	__m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high, 11), _mm512_add_epi32(low, bias));
	__m512i v = _mm512_srai_epi32(sum, RESIZE_PRECISION);

	if (clip) {
		v = _mm512_min_epi32(v, _mm512_set1_epi32(127));
		v = _mm512_max_epi32(v, _mm512_set1_epi32(-128));
	}
	return _mm512_shuffle_epi8(v, words);
}

/* The upper and lower products of four rows' group. */
struct sums {
	__m512i high;
	__m512i low;
};

/* A segment's tables, once for all rows of the band. */
struct tables {
	__m512i pick;
	__m512i high;
	__m512i low;
};

static inline struct tables load_tables(const struct tap_segment *s)
{
	return (struct tables){ all_lanes(s->pick), all_lanes(s->high), all_lanes(s->low) };
}

static inline struct sums weigh(__m512i rows, const struct tables *t)
{
	__m512i taps = _mm512_shuffle_epi8(rows, t->pick);

	return (struct sums){ _mm512_madd_epi16(taps, t->high), _mm512_madd_epi16(taps, t->low) };
}

static inline struct sums plus(struct sums a, struct sums b)
{
	return (struct sums){ _mm512_add_epi32(a.high, b.high), _mm512_add_epi32(a.low, b.low) };
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

#pragma GCC unroll 2
		for (int i = 0; i < BAND / 4; i++) {
			__m512i rows = four_rows(src, stride);
			struct sums sums = weigh(rows, &one);

			if (segments == 2)
				sums = plus(sums, weigh(rows, &two));
			keep(out, out_stride, finish(sums.high, sums.low, clip));
			src += 4 * stride;
			out += 4 * out_stride;
		}
	}
}

/* Any number of segments with a load each. */
static inline __attribute__((always_inline)) void horizontal_many(
	const struct tap_table *t, const struct band *b, const bool clip)
{
	const struct tap_segment *s = t->segment;
	const uint32_t *offset = t->offset;
	size_t four = 4 * b->src_stride;
	int32_t *out = b->out;

	for (uint32_t g = 0; g < t->groups; g++, out += t->step) {
		struct sums a = { _mm512_setzero_si512(), _mm512_setzero_si512() }, c = a;

		for (uint32_t i = 0; i < t->segments; i++, s++) {
			struct tables tables = load_tables(s);
			const uint8_t *p = b->src + *offset++;

			a = plus(a, weigh(four_rows(p, b->src_stride), &tables));
			c = plus(c, weigh(four_rows(p + four, b->src_stride), &tables));
		}
		keep(out, b->out_stride, finish(a.high, a.low, clip));
		keep(out + 4 * b->out_stride, b->out_stride, finish(c.high, c.low, clip));
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

static inline __attribute__((always_inline)) __m512i vertical_block(
	const int32_t *const *row, const uint32_t *pair, const int taps, __m512i bias, size_t x)
{
	__m512i a = bias, b = bias, c = bias, d = bias;

	for (int t = 0; t < taps; t++) {
		const int32_t *p = row[t] + x;
		__m512i k = _mm512_set1_epi32((int)pair[t]);

		a = _mm512_add_epi32(a, _mm512_madd_epi16(_mm512_load_si512(p), k));
		b = _mm512_add_epi32(b, _mm512_madd_epi16(_mm512_load_si512(p + 16), k));
		c = _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_load_si512(p + 32), k));
		d = _mm512_add_epi32(d, _mm512_madd_epi16(_mm512_load_si512(p + 48), k));
	}
	return pack(a, b, c, d);
}

static void vertical_row(const int32_t *const *row, const uint32_t *pair, int taps, int32_t bias,
	size_t width, uint8_t *out)
{
	vertical_by_taps(vertical_block, row, pair, taps, bias, width, out);
}

static bool supported_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

static const struct band_kernels kernels_avx512 = {
	.block = BLOCK,
	.horizontal = horizontal_band,
	.vertical = vertical_row,
};

const struct resize_variant resize_variant_avx512 = {
	.name = "avx512",
	.supported = supported_avx512,
	.fill = axis_fill_avx2,
	.kernels = &kernels_avx512,
	.run = run_bands,
};
