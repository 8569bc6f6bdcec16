/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Photo-like pictures from nothing: layered shapes with hard and soft edges, lit unevenly,
 * filled with 1/f texture or drawn-out strands, under sensor-like grain.
 *
 * What matters is that a JPEG decoder works on them as on photos: the same bits per pixel out of
 * the same mixture of smooth sky and busy grass. Everything costly is in the noise tiles, made
 * once a run; a picture is a few draws of a philox stream and one pass
 * over its rows, so it depends on nothing but (seed, number) and on no other thread.
 */
#ifndef TOOLS_DEV_SCENE_H
#define TOOLS_DEV_SCENE_H

#include <stdint.h>

#include "base/philox.h"
#include "tools/dev/noise.h"

#define SCENE_MAX_SIDE 8192
#define SCENE_SHAPES   8

enum shape_kind {
	SHAPE_ELLIPSE,
	SHAPE_BOX,
	SHAPE_DIAMOND,
	SHAPE_HILLS, /* all that lies below a wavy horizon */
	SHAPE_KINDS
};

/* What fills a shape. Luma and chroma in 1/16 levels, slopes in 1/16 level per 256 pixels. */
struct paint {
	int32_t level[3]; /* Y, Cb, Cr */
	int32_t slope_x;  /* of Y */
	int32_t slope_y;
	int32_t texture; /* weight of the 1/f tile, 0..255 */
	int32_t strands; /* weight of the strand tile, 0..255 */
};

struct shape {
	enum shape_kind kind;
	struct paint paint;
	int32_t x, y; /* centre, pixels */
	int32_t a, b; /* half width and half height, pixels; hills: b is the waves' height */
	int32_t lean; /* columns to the right per 256 rows down */
	int32_t edge; /* pixels over which it fades into what is under it, at least 1 */
};

struct scene {
	uint32_t width;
	uint32_t height;
	struct paint ground;
	struct shape shapes[SCENE_SHAPES];
	unsigned int shape_count;
	int32_t grain;                  /* weight of the grain, 0..255 */
	uint32_t offset_x[NOISE_TILES]; /* where in each tile the picture begins */
	uint32_t offset_y[NOISE_TILES];
	int32_t strand_lean; /* columns per 256 rows */
};

/* Draws a scene of width x height (at most SCENE_MAX_SIDE each). */
void scene_draw(struct scene *scene, uint32_t width, uint32_t height, struct philox_stream *random);

/*
 * One row as interleaved Y, Cb, Cr bytes (3 * width). strength scales texture and grain, 256 = as
 * drawn: it is what the wanted file size is reached by.
 */
void scene_row(const struct noise *noise, const struct scene *scene, uint32_t y, int32_t strength,
	uint8_t *row);

/* A draw from lowest..highest, both possible. */
int32_t draw_between(struct philox_stream *random, int32_t lowest, int32_t highest);

#endif
