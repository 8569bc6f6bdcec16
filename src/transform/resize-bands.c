/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of the SIMD variants. Bands of four source rows go through the horizontal pass into a
 * small ring that stays in cache; the vertical pass takes an output row as soon as its last source
 * row is there.
 *
 * A row in the ring holds a value v as the two words (v - 128)·256 and v - 128. With the vertical
 * coefficient as the words k >> 8 and k & 255, one multiply-add gives (v - 128)·k exactly.
 */
#include "transform/resize-variants.h"

#include <errno.h>
#include <string.h>

#define RING_MOST (64 << 20) /* bytes; longer sums than that allows are left to the reference */

static int row_taps_prepare(struct row_taps *t, const struct resize_axis *y)
{
	size_t count = y->shape.count;
	uint32_t *memory;

	if (t->generation == y->generation)
		return 0;
	t->generation = 0;
	memory = scratch_reserve(&t->memory, count * (y->taps + (size_t)1) * sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	t->pair = memory;
	t->bias = (int32_t *)(memory + count * y->taps);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *pair = t->pair + (size_t)i * y->taps;
		int32_t sum = 0;

		for (uint32_t tap = 0; tap < y->taps; tap++) {
			int32_t k = y->k[(size_t)tap * y->stride + i];

			sum += k;
			pair[tap] = ((uint32_t)(k >> 8) & 0xffff) | (uint32_t)(k & 255) << 16;
		}
		t->bias[i] = (1 << (RESIZE_PRECISION - 1)) + 128 * sum;
	}
	t->generation = y->generation;
	return 0;
}

/* The ring, then the pointers to the rows of one output. */
struct ring {
	int32_t *data;
	size_t stride; /* values */
	uint32_t rows; /* a power of two, at least taps + BAND */
	const int32_t **row;
};

static int ring_reserve(
	struct ring *ring, struct scratch *s, const struct resize_job *job, size_t block)
{
	size_t width = (size_t)job->x->shape.count * 3;
	uint32_t taps = job->y->taps;
	size_t bytes;
	char *memory;

	ring->stride = (width + 4 + block - 1) / block * block;
	ring->rows = 2 * BAND;
	while (ring->rows < taps + BAND)
		ring->rows *= 2;
	bytes = ring->stride * ring->rows * sizeof(int32_t);
	if (bytes > RING_MOST)
		return 1;
	memory = scratch_reserve(s, bytes + taps * sizeof(*ring->row));
	if (!memory)
		return -ENOMEM;
	ring->data = (int32_t *)memory;
	ring->row = (const int32_t **)(memory + bytes);
	return 0;
}

/*
 * The band of source rows from `first` on. A last band that is not full is completed from a copy,
 * since there may be no memory behind the last row; what comes of its other rows is never read.
 */
static int run_band(struct resizer *r, const struct resize_job *job, const struct band_kernels *k,
	const struct ring *ring, uint32_t first, uint32_t rows)
{
	uint32_t done = first - (uint32_t)job->y->start[0];
	struct band band = {
		.src = job->src + ((size_t)first - job->src_y) * job->src_stride,
		.src_stride = job->src_stride,
		.out = ring->data + (done & (ring->rows - 1)) * ring->stride,
		.out_stride = ring->stride,
	};

	if (rows < BAND) {
		const struct resize_axis *x = job->x;
		uint32_t last = x->shape.count - 1;
		size_t bytes = 3 * ((size_t)(x->start[last] + x->length[last]) - job->src_x);
		size_t stride = (bytes + 64 + 63) / 64 * 64;
		uint8_t *copy = scratch_reserve(&r->last, stride * BAND);

		if (!copy)
			return -ENOMEM;
		for (uint32_t i = 0; i < rows; i++)
			memcpy(copy + i * stride, band.src + i * band.src_stride, bytes);
		band.src = copy;
		band.src_stride = stride;
	}
	k->horizontal(&r->table, &band, job->clip);
	return 0;
}

int run_bands(struct resizer *r, const struct resize_job *job, const struct band_kernels *kernels)
{
	const struct resize_axis *y = job->y;
	uint32_t count = y->shape.count, first = (uint32_t)y->start[0];
	uint32_t end = (uint32_t)(y->start[count - 1] + y->length[count - 1]);
	uint32_t next = first; /* of the next band */
	struct ring ring;
	int rc = ring_reserve(&ring, &r->ring, job, kernels->block);

	if (rc > 0)
		return resize_variant_c.run(r, job, NULL);
	if (rc == 0)
		rc = tap_table_prepare(&r->table, job, kernels->digits);
	if (rc == 0)
		rc = row_taps_prepare(&r->rows, y);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		uint32_t start = (uint32_t)y->start[i], length = (uint32_t)y->length[i];

		for (; next < start + length && rc == 0; next += BAND)
			rc = run_band(r, job, kernels, &ring, next, end - next);
		for (uint32_t t = 0; t < length; t++)
			ring.row[t] =
				ring.data + ((start + t - first) & (ring.rows - 1)) * ring.stride;
		kernels->vertical(ring.row, r->rows.pair + (size_t)i * y->taps, (int)length,
			r->rows.bias[i], (size_t)job->x->shape.count * 3,
			job->dst + i * job->dst_stride);
	}
	return rc;
}
