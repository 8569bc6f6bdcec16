/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coefficients of one axis, operation for operation those of Pillow's precompute_coeffs and
 * normalize_coeffs_8bpc (src/libImaging/Resample.c) for a box that is the whole image: double
 * arithmetic in the same order, no contraction, then fixed point with 22 fractional bits.
 */
#include "transform/resize-variants.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void *scratch_reserve(struct scratch *s, size_t size)
{
	size_t wanted = (size + size / 4 + 4095) & ~(size_t)4095;
	void *data;

	if (size <= s->size && s->data)
		return s->data;
	data = aligned_alloc(64, wanted);
	if (!data)
		return NULL;
	memset(data, 0, wanted);
	free(s->data);
	s->data = data;
	s->size = wanted;
	return data;
}

void scratch_release(struct scratch *s)
{
	free(s->data);
	*s = (struct scratch){ 0 };
}

struct axis_geometry axis_geometry(const struct axis_shape *shape)
{
	double scale = (double)shape->in / shape->out;
	double filter_scale = scale < 1.0 ? 1.0 : scale;
	double support = shape->filter == FILTER_BICUBIC ? 2.0 : 1.0;

	return (struct axis_geometry){
		.scale = scale,
		.support = support * filter_scale,
		.inverse = 1.0 / filter_scale,
	};
}

/* The source pixels [*ret_first, *ret_end) of output xx. */
static void axis_bounds(const struct axis_shape *shape, const struct axis_geometry *g, uint32_t xx,
	int32_t *ret_first, int32_t *ret_end)
{
	double center = (xx + 0.5) * g->scale;
	int32_t first = (int32_t)(center - g->support + 0.5);
	int32_t end = (int32_t)(center + g->support + 0.5);

	*ret_first = first < 0 ? 0 : first;
	*ret_end = end > (int32_t)shape->in ? (int32_t)shape->in : end;
}

void resize_span(uint32_t in, uint32_t out, uint32_t first, uint32_t count, uint32_t filter,
	uint32_t *ret_first, uint32_t *ret_count)
{
	struct axis_shape shape = { .in = in, .out = out, .filter = filter };
	struct axis_geometry g = axis_geometry(&shape);
	int32_t begin, end, unused;

	/* Both bounds rise with the output. */
	axis_bounds(&shape, &g, first, &begin, &unused);
	axis_bounds(&shape, &g, first + count - 1, &unused, &end);
	*ret_first = (uint32_t)begin;
	*ret_count = (uint32_t)(end - begin);
}

static double bilinear(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' cubic with a = -0.5, in Pillow's order of operations. */
static double bicubic(double x)
{
	x = fabs(x);
	if (x < 1.0)
		return (1.5 * x - 2.5) * x * x + 1;
	if (x < 2.0)
		return (((x - 5) * x + 8) * x - 4) * -0.5;
	return 0.0;
}

static int32_t fixed_point(double w)
{
	return (int32_t)((w < 0 ? -0.5 : 0.5) + w * (1 << RESIZE_PRECISION));
}

static void axis_weigh(struct resize_axis *axis, const struct axis_geometry *g, uint32_t x)
{
	bool cubic = axis->shape.filter == FILTER_BICUBIC;
	double center = (axis->shape.first + x + 0.5) * g->scale;
	double sum = 0.0;

	for (int32_t t = 0; t < axis->length[x]; t++) {
		double at = (t + axis->start[x] - center + 0.5) * g->inverse;
		double w = cubic ? bicubic(at) : bilinear(at);

		axis->weights[t] = w;
		sum += w;
	}
	for (int32_t t = 0; t < (int32_t)axis->taps; t++) {
		double w = t < axis->length[x] ? axis->weights[t] : 0.0;

		axis->k[(size_t)t * axis->stride + x] = fixed_point(sum != 0.0 ? w / sum : w);
	}
}

void axis_fill_c(struct resize_axis *axis, const struct axis_geometry *g)
{
	uint32_t count = axis->shape.count;

	axis->taps = 0;
	for (uint32_t x = 0; x < count; x++) {
		int32_t first, end;

		axis_bounds(&axis->shape, g, axis->shape.first + x, &first, &end);
		axis->start[x] = first;
		axis->length[x] = end - first;
		if ((uint32_t)(end - first) > axis->taps)
			axis->taps = (uint32_t)(end - first);
	}
	for (uint32_t x = 0; x < count; x++)
		axis_weigh(axis, g, x);
	for (uint32_t x = count; x < axis->stride; x++) {
		axis->start[x] = axis->start[count - 1];
		axis->length[x] = 0;
		for (uint32_t t = 0; t < axis->taps; t++)
			axis->k[(size_t)t * axis->stride + x] = 0;
	}
}

int axis_prepare(struct resize_axis *axis, const struct axis_shape *shape, axis_fill *fill)
{
	struct axis_geometry g = axis_geometry(shape);
	size_t most = (size_t)ceil(g.support) * 2 + 1; /* Pillow's ksize */
	size_t stride = ((size_t)shape->count + 15) & ~(size_t)7;
	char *memory;

	if (axis->generation && memcmp(&axis->shape, shape, sizeof(*shape)) == 0)
		return 0;
	memory = scratch_reserve(
		&axis->memory, most * 4 * sizeof(double) + (most + 2) * stride * sizeof(int32_t));
	if (!memory)
		return -ENOMEM;
	axis->weights = (double *)memory;
	axis->start = (int32_t *)(memory + most * 4 * sizeof(double));
	axis->length = axis->start + stride;
	axis->k = axis->length + stride;
	axis->stride = (uint32_t)stride;
	axis->shape = *shape;
	axis->generation++;
	fill(axis, &g);
	return 0;
}

void axis_deinit(struct resize_axis *axis)
{
	scratch_release(&axis->memory);
}
