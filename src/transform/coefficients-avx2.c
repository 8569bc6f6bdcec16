/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coefficients of four outputs at a time: the double operations of coefficients.c in the same
 * order in each lane, with real divisions, so the results are the same bits.
 */
#include "transform/resize-variants.h"

#include <immintrin.h>

struct lanes {
	__m256d center;
	__m256d start;
	__m128i length;
};

static inline __m256d absolute(__m256d x)
{
	return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

static inline __m256d bilinear4(__m256d x)
{
	/* 1 - |x| is <= 0 exactly where the filter is 0. */
	return _mm256_max_pd(_mm256_sub_pd(_mm256_set1_pd(1.0), absolute(x)), _mm256_setzero_pd());
}

static inline __m256d bicubic4(__m256d x)
{
	const __m256d two = _mm256_set1_pd(2.0), one = _mm256_set1_pd(1.0);
	__m256d near, far;

	x = absolute(x);
	near = _mm256_sub_pd(_mm256_mul_pd(_mm256_set1_pd(1.5), x), _mm256_set1_pd(2.5));
	near = _mm256_add_pd(_mm256_mul_pd(_mm256_mul_pd(near, x), x), one);
	far = _mm256_add_pd(
		_mm256_mul_pd(_mm256_sub_pd(x, _mm256_set1_pd(5.0)), x), _mm256_set1_pd(8.0));
	far = _mm256_sub_pd(_mm256_mul_pd(far, x), _mm256_set1_pd(4.0));
	far = _mm256_mul_pd(far, _mm256_set1_pd(-0.5));
	far = _mm256_and_pd(far, _mm256_cmp_pd(x, two, _CMP_LT_OQ));
	return _mm256_blendv_pd(far, near, _mm256_cmp_pd(x, one, _CMP_LT_OQ));
}

/* The weight of tap t in each lane, +0 where the lane has fewer taps. */
static inline __m256d weigh(
	const struct lanes *l, const struct axis_geometry *g, int t, const bool cubic)
{
	__m256d at = _mm256_add_pd(l->start, _mm256_set1_pd(t));
	__m128i live = _mm_cmpgt_epi32(l->length, _mm_set1_epi32(t));
	__m256d w;

	at = _mm256_add_pd(_mm256_sub_pd(at, l->center), _mm256_set1_pd(0.5));
	at = _mm256_mul_pd(at, _mm256_set1_pd(g->inverse));
	w = cubic ? bicubic4(at) : bilinear4(at);
	return _mm256_and_pd(w, _mm256_castsi256_pd(_mm256_cvtepi32_epi64(live)));
}

/* (int)(±0.5 + w·2^22); -0.0 takes the other sign than in C and gives the same 0. */
static inline __m128i fixed_point4(__m256d w)
{
	__m256d half = _mm256_or_pd(_mm256_and_pd(w, _mm256_set1_pd(-0.0)), _mm256_set1_pd(0.5));

	w = _mm256_mul_pd(w, _mm256_set1_pd(1 << RESIZE_PRECISION));
	return _mm256_cvttpd_epi32(_mm256_add_pd(half, w));
}

static inline __attribute__((always_inline)) void weigh_lanes(struct resize_axis *axis,
	const struct axis_geometry *g, uint32_t x, const int taps, const bool cubic)
{
	const __m256d one = _mm256_set1_pd(1.0), zero = _mm256_setzero_pd();
	__m256d index = _mm256_add_pd(
		_mm256_set1_pd((double)axis->shape.first + x), _mm256_setr_pd(0, 1, 2, 3));
	__m128i start = _mm_loadu_si128((const __m128i *)(axis->start + x));
	struct lanes l = {
		.center = _mm256_mul_pd(
			_mm256_add_pd(index, _mm256_set1_pd(0.5)), _mm256_set1_pd(g->scale)),
		.start = _mm256_cvtepi32_pd(start),
		.length = _mm_loadu_si128((const __m128i *)(axis->length + x)),
	};
	__m256d sum = zero;

	for (int t = 0; t < taps; t++) {
		__m256d w = weigh(&l, g, t, cubic);

		_mm256_storeu_pd(axis->weights + 4 * t, w);
		sum = _mm256_add_pd(sum, w);
	}
	/* Dividing by 1 is not dividing. */
	sum = _mm256_blendv_pd(sum, one, _mm256_cmp_pd(sum, zero, _CMP_EQ_OQ));
	for (int t = 0; t < taps; t++) {
		__m256d w = _mm256_div_pd(_mm256_loadu_pd(axis->weights + 4 * t), sum);
		int32_t *k = axis->k + (size_t)t * axis->stride + x;

		_mm_storeu_si128((__m128i *)k, fixed_point4(w));
	}
}

static void bound_lanes(struct resize_axis *axis, const struct axis_geometry *g, uint32_t x)
{
	const __m256d half = _mm256_set1_pd(0.5), support = _mm256_set1_pd(g->support);
	__m256d index = _mm256_add_pd(
		_mm256_set1_pd((double)axis->shape.first + x), _mm256_setr_pd(0, 1, 2, 3));
	__m256d center = _mm256_mul_pd(_mm256_add_pd(index, half), _mm256_set1_pd(g->scale));
	__m128i first = _mm256_cvttpd_epi32(_mm256_add_pd(_mm256_sub_pd(center, support), half));
	__m128i end = _mm256_cvttpd_epi32(_mm256_add_pd(_mm256_add_pd(center, support), half));

	first = _mm_max_epi32(first, _mm_setzero_si128());
	end = _mm_min_epi32(end, _mm_set1_epi32((int)axis->shape.in));
	_mm_storeu_si128((__m128i *)(axis->start + x), first);
	_mm_storeu_si128((__m128i *)(axis->length + x), _mm_sub_epi32(end, first));
}

static uint32_t longest(const struct resize_axis *axis)
{
	__m128i most = _mm_setzero_si128();

	for (uint32_t x = 0; x < axis->stride; x += 4)
		most = _mm_max_epi32(most, _mm_loadu_si128((const __m128i *)(axis->length + x)));
	most = _mm_max_epi32(most, _mm_shuffle_epi32(most, _MM_SHUFFLE(1, 0, 3, 2)));
	most = _mm_max_epi32(most, _mm_shuffle_epi32(most, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(most);
}

void axis_fill_avx2(struct resize_axis *axis, const struct axis_geometry *g)
{
	uint32_t count = axis->shape.count;
	bool cubic = axis->shape.filter == FILTER_BICUBIC;

	for (uint32_t x = 0; x < count; x += 4)
		bound_lanes(axis, g, x);
	for (uint32_t x = count; x < axis->stride; x++) {
		axis->start[x] = axis->start[count - 1];
		axis->length[x] = 0;
	}
	axis->taps = longest(axis);
	for (uint32_t x = 0; x < axis->stride; x += 4) {
		if (cubic)
			weigh_lanes(axis, g, x, (int)axis->taps, true);
		else if (axis->taps == 2)
			weigh_lanes(axis, g, x, 2, false);
		else if (axis->taps == 3)
			weigh_lanes(axis, g, x, 3, false);
		else
			weigh_lanes(axis, g, x, (int)axis->taps, false);
	}
}
