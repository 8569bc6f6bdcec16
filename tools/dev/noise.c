/* SPDX-License-Identifier: Apache-2.0 */
/* The noise tiles: sums of value noise in octaves. */
#include "tools/dev/noise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

/* One octave: random values on a lattice of step_x by step_y pixels, smoothly joined. */
static void octave_add(float *plane, unsigned int step_x, unsigned int step_y, float weight,
	struct philox_stream *random)
{
	unsigned int columns = NOISE_SIDE / step_x, rows = NOISE_SIDE / step_y;
	static const float unit = 1.0f / 2147483648.0f;
	float lattice[NOISE_SIDE];
	float *values = plane + NOISE_SIDE * NOISE_SIDE; /* scratch behind the plane */
	float tx, ty, top, bottom;

	for (unsigned int i = 0; i < columns * rows; i++)
		values[i] = ((float)philox_stream_next(random) * unit - 1.0f) * weight;
	for (unsigned int x = 0; x < step_x; x++) {
		tx = (float)x / (float)step_x;
		lattice[x] = tx * tx * (3.0f - 2.0f * tx);
	}
	for (unsigned int y = 0; y < NOISE_SIDE; y++) {
		const float *r0 = values + y / step_y * columns;
		const float *r1 = values + (y / step_y + 1) % rows * columns;

		ty = (float)(y % step_y) / (float)step_y;
		ty = ty * ty * (3.0f - 2.0f * ty);
		for (unsigned int x = 0; x < NOISE_SIDE; x++) {
			unsigned int c0 = x / step_x, c1 = (c0 + 1) % columns;

			tx = lattice[x % step_x];
			top = r0[c0] + (r0[c1] - r0[c0]) * tx;
			bottom = r1[c0] + (r1[c1] - r1[c0]) * tx;
			plane[y * NOISE_SIDE + x] += top + (bottom - top) * ty;
		}
	}
}

/* Root mean square 32, so that weights mean the same for every tile. */
static void tile_store(int8_t tile[NOISE_SIDE][NOISE_STRIDE], const float *plane)
{
	double sum = 0;
	float scale, v;

	for (unsigned int i = 0; i < NOISE_SIDE * NOISE_SIDE; i++)
		sum += (double)plane[i] * (double)plane[i];
	scale = (float)(32.0 / sqrt(sum / (NOISE_SIDE * NOISE_SIDE)));
	for (unsigned int y = 0; y < NOISE_SIDE; y++)
		for (unsigned int x = 0; x < NOISE_SIDE; x++) {
			v = plane[y * NOISE_SIDE + x] * scale;
			v = v < -127.0f ? -127.0f : v > 127.0f ? 127.0f : v;
			tile[y][x] = tile[y][x + NOISE_SIDE] = (int8_t)v;
		}
}

static void tile_make(struct noise *noise, enum noise_tile tile, float *plane, uint64_t seed)
{
	struct philox_stream random;

	philox_stream_init(&random, seed, tile, 0, 0, 1);
	memset(plane, 0, sizeof(*plane) * NOISE_SIDE * NOISE_SIDE);
	switch (tile) {
	case NOISE_LIGHT:
		for (unsigned int step = 64; step <= 256; step *= 2)
			octave_add(plane, step, step, (float)step, &random);
		break;
	case NOISE_TEXTURE: /* 1/f: every octave the same contrast */
		for (unsigned int step = 2; step <= 32; step *= 2)
			octave_add(plane, step, step, 1.0f, &random);
		break;
	case NOISE_STRANDS:
		octave_add(plane, 2, 32, 1.0f, &random);
		octave_add(plane, 4, 64, 1.2f, &random);
		octave_add(plane, 16, 64, 1.0f, &random);
		break;
	case NOISE_GRAIN:
	case NOISE_TILES:
		octave_add(plane, 1, 1, 1.0f, &random);
		octave_add(plane, 1, 1, 1.0f, &random);
		octave_add(plane, 2, 2, 0.8f, &random);
		break;
	}
	tile_store(noise->tile[tile], plane);
}

int noise_new(struct noise **ret, uint64_t seed)
{
	struct noise *noise = malloc(sizeof(*noise));
	float *plane = malloc(sizeof(*plane) * 2 * NOISE_SIDE * NOISE_SIDE);

	if (!noise || !plane) {
		free(noise);
		free(plane);
		return -ENOMEM;
	}
	for (enum noise_tile tile = 0; tile < NOISE_TILES; tile++)
		tile_make(noise, tile, plane, seed);
	free(plane);
	*ret = noise;
	return 0;
}

void noise_free(struct noise *noise)
{
	free(noise);
}
