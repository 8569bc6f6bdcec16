/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The noise that pictures are made of: a few square tiles that repeat without a seam, made once
 * a run from the seed and only read after, by any thread.
 */
#ifndef TOOLS_DEV_NOISE_H
#define TOOLS_DEV_NOISE_H

#include <stdint.h>

#define NOISE_SIDE   512
#define NOISE_STRIDE (2 * NOISE_SIDE) /* each row twice, so that NOISE_SIDE columns need no wrap */

enum noise_tile {
	NOISE_LIGHT,   /* broad, for light and colour casts */
	NOISE_TEXTURE, /* 1/f, wavelengths of 2 to 32 pixels */
	NOISE_STRANDS, /* drawn out: grass, hair, cloth */
	NOISE_GRAIN,   /* nearly white, as a sensor's */
	NOISE_TILES
};

/* Each tile's mean is about 0 and its root mean square 32. */
struct noise {
	int8_t tile[NOISE_TILES][NOISE_SIDE][NOISE_STRIDE];
};

/* -ENOMEM. */
int noise_new(struct noise **ret, uint64_t seed);
void noise_free(struct noise *noise);

/* NOISE_SIDE values from (x, y) on, in a plane tiled without end. */
static inline const int8_t *noise_at(
	const struct noise *noise, enum noise_tile tile, uint32_t x, uint32_t y)
{
	return &noise->tile[tile][y % NOISE_SIDE][x % NOISE_SIDE];
}

#endif
