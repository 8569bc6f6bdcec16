/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: Pillow's two passes as they are written there, horizontal first and rounded to
 * eight bits, then vertical. Between them only as many rows are kept as the longest output needs.
 */
#include "transform/resize-variants.h"

#include <errno.h>

static uint8_t clip8(int32_t sum)
{
	int32_t v = sum >> RESIZE_PRECISION;

	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void horizontal_row(const struct resize_job *job, const uint8_t *src, uint8_t *out)
{
	const struct resize_axis *x = job->x;
	uint32_t count = x->shape.count;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *p = src + 3 * ((size_t)x->start[i] - job->src_x);
		const int32_t *k = x->k + i;
		uint8_t *o = out + 3 * (size_t)(job->flip ? count - 1 - i : i);
		int32_t r = 1 << (RESIZE_PRECISION - 1), g = r, b = r;

		for (int32_t t = 0; t < x->length[i]; t++, p += 3, k += x->stride) {
			r += p[0] * *k;
			g += p[1] * *k;
			b += p[2] * *k;
		}
		o[0] = clip8(r);
		o[1] = clip8(g);
		o[2] = clip8(b);
	}
}

static void vertical_row(const struct resize_axis *y, uint32_t i, const uint8_t *ring, size_t width,
	int32_t *sums, uint8_t *out)
{
	for (size_t x = 0; x < width; x++)
		sums[x] = 1 << (RESIZE_PRECISION - 1);
	for (int32_t t = 0; t < y->length[i]; t++) {
		const uint8_t *row = ring + (size_t)(y->start[i] + t) % y->taps * width;
		int32_t k = y->k[(size_t)t * y->stride + i];

		for (size_t x = 0; x < width; x++)
			sums[x] += row[x] * k;
	}
	for (size_t x = 0; x < width; x++)
		out[x] = clip8(sums[x]);
}

static int run_c(struct resizer *r, const struct resize_job *job, const struct band_kernels *none)
{
	const struct resize_axis *y = job->y;
	size_t width = (size_t)job->x->shape.count * 3;
	int32_t *sums = scratch_reserve(&r->ring, width * (sizeof(*sums) + y->taps));
	uint8_t *ring = (uint8_t *)(sums + width);
	int32_t next = y->start[0]; /* the source row that the horizontal pass does next */

	(void)none;
	if (!sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < y->shape.count; i++) {
		for (; next < y->start[i] + y->length[i]; next++)
			horizontal_row(job,
				job->src + ((size_t)next - job->src_y) * job->src_stride,
				ring + (size_t)next % y->taps * width);
		vertical_row(y, i, ring, width, sums, job->dst + i * job->dst_stride);
	}
	return 0;
}

static bool supported_c(void)
{
	return true;
}

const struct resize_variant resize_variant_c = {
	.name = "c",
	.supported = supported_c,
	.fill = axis_fill_c,
	.run = run_c,
};
