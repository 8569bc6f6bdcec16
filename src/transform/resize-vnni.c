/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVX-512 with VNNI: the horizontal pass by dot products of four bytes, one for each digit of the
 * coefficients, as a Horner scheme; the vertical pass by dot products that accumulate. Sums of more
 * than four taps go the way of resize-avx512.c.
 */
#include "transform/resize-avx512.h"

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

static void vertical_row(const int32_t *const *row, const uint32_t *pair, int taps, int32_t bias,
	size_t width, uint8_t *out)
{
	vertical_by_taps(vertical_block, row, pair, taps, bias, width, out);
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
