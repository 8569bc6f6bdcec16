/* SPDX-License-Identifier: Apache-2.0 */
/* Photo-like pictures: the draw of a scene, and its rows. */
#include "tools/dev/scene.h"

#include <math.h>
#include <stddef.h>

int32_t draw_between(struct philox_stream *random, int32_t lowest, int32_t highest)
{
	uint32_t span = (uint32_t)(highest - lowest) + 1;

	return lowest + (int32_t)((uint64_t)philox_stream_next(random) * span >> 32);
}

static void paint_draw(
	struct paint *paint, uint32_t width, uint32_t height, struct philox_stream *random)
{
	/* most of a photo is dull in colour; one paint in five is vivid */
	int32_t vivid = draw_between(random, 0, 4) ? 24 : 80;

	paint->level[0] = 16 * draw_between(random, 30, 220);
	paint->level[1] = 16 * (128 + draw_between(random, -vivid, vivid));
	paint->level[2] = 16 * (128 + draw_between(random, -vivid, vivid));
	/* as much as 40 levels from side to side */
	paint->slope_x = draw_between(random, -40, 40) * 16 * 256 / (int32_t)width;
	paint->slope_y = draw_between(random, -40, 40) * 16 * 256 / (int32_t)height;
	paint->texture = paint->strands = 0;
	switch (draw_between(random, 0, 5)) {
	case 0: /* sky, walls, what is out of focus */
		paint->texture = draw_between(random, 0, 12);
		break;
	case 1:
		paint->strands = draw_between(random, 60, 200);
		paint->texture = draw_between(random, 0, 60);
		break;
	default:
		paint->texture = draw_between(random, 40, 220);
		break;
	}
}

static void shape_draw(
	struct shape *shape, uint32_t width, uint32_t height, struct philox_stream *random)
{
	int32_t side = (int32_t)(width < height ? width : height);

	shape->kind = (enum shape_kind)draw_between(random, 0, SHAPE_KINDS - 1);
	paint_draw(&shape->paint, width, height, random);
	shape->x = draw_between(random, 0, (int32_t)width);
	shape->y = draw_between(random, 0, (int32_t)height);
	shape->a = draw_between(random, side / 40 + 1, side / 2 + 1);
	shape->b = draw_between(random, side / 40 + 1, side / 2 + 1);
	shape->lean = draw_between(random, -200, 200);
	shape->edge = draw_between(random, 0, 2) ? 1 : draw_between(random, 2, 24);
	if (shape->kind == SHAPE_HILLS)
		shape->b = side / draw_between(random, 4, 30) + 1;
}

void scene_draw(struct scene *scene, uint32_t width, uint32_t height, struct philox_stream *random)
{
	scene->width = width;
	scene->height = height;
	paint_draw(&scene->ground, width, height, random);
	scene->shape_count = (unsigned int)draw_between(random, 2, SCENE_SHAPES);
	for (unsigned int i = 0; i < scene->shape_count; i++)
		shape_draw(&scene->shapes[i], width, height, random);
	scene->grain = draw_between(random, 24, 60);
	for (unsigned int i = 0; i < NOISE_TILES; i++) {
		scene->offset_x[i] = (uint32_t)draw_between(random, 0, NOISE_SIDE - 1);
		scene->offset_y[i] = (uint32_t)draw_between(random, 0, NOISE_SIDE - 1);
	}
	scene->strand_lean = draw_between(random, -256, 256);
}

/* NOISE_SIDE values of a tile from picture position (x, y) on. */
static const int8_t *layer_at(const struct noise *noise, const struct scene *scene,
	enum noise_tile tile, uint32_t x, uint32_t y)
{
	return noise_at(noise, tile, scene->offset_x[tile] + x, scene->offset_y[tile] + y);
}

/* A stretch of one row while it is painted; at most NOISE_SIDE columns. */
struct stretch {
	uint32_t x, y, count;
	int16_t level[3][NOISE_SIDE]; /* 1/16 levels */
	int16_t texture[NOISE_SIDE];
	int16_t strands[NOISE_SIDE];
	int16_t cover[NOISE_SIDE]; /* 0..256: how much of a pixel the shape hides */
};

static void blend(int16_t *restrict under, const int16_t *restrict cover, int32_t over,
	int32_t step, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int32_t value = over + ((int32_t)i * step >> 8);

		under[i] = (int16_t)(under[i] + ((value - under[i]) * cover[i] >> 8));
	}
}

static void paint_apply(struct stretch *s, const struct paint *paint, uint32_t from, uint32_t to)
{
	uint32_t n = to - from;
	int32_t luma = paint->level[0] + ((int32_t)(s->x + from) * paint->slope_x >> 8) +
		       ((int32_t)s->y * paint->slope_y >> 8);

	blend(s->level[0] + from, s->cover + from, luma, paint->slope_x, n);
	blend(s->level[1] + from, s->cover + from, paint->level[1], 0, n);
	blend(s->level[2] + from, s->cover + from, paint->level[2], 0, n);
	blend(s->texture + from, s->cover + from, paint->texture, 0, n);
	blend(s->strands + from, s->cover + from, paint->strands, 0, n);
}

/* distance: 1/256 pixel inside the edge; factor: 256 / edge. */
static inline int16_t covered(int32_t distance, int32_t factor)
{
	int32_t c = distance * factor >> 8;

	return (int16_t)(c < 0 ? 0 : c > 256 ? 256 : c);
}

static void hills_cover(struct stretch *s, const struct noise *noise, const struct scene *scene,
	const struct shape *shape)
{
	const int8_t *wave = layer_at(noise, scene, NOISE_LIGHT, s->x, (uint32_t)shape->a);
	const int8_t *ridge = layer_at(noise, scene, NOISE_TEXTURE, s->x, (uint32_t)shape->a);
	int32_t depth = ((int32_t)s->y - shape->y) * 256;
	int32_t factor = 256 / shape->edge;

	for (uint32_t i = 0; i < s->count; i++)
		s->cover[i] = covered(depth - (8 * wave[i] + ridge[i]) * shape->b, factor);
	paint_apply(s, &shape->paint, 0, s->count);
}

/* Half width of the shape in this row, 1/256 pixel; negative where it is not. */
static int32_t half_width(const struct shape *shape, int32_t dy)
{
	double t = (double)dy / (double)shape->b, profile = 1.0;

	if (dy < -shape->b || dy > shape->b)
		return -1;
	if (shape->kind == SHAPE_ELLIPSE)
		profile = sqrt(1.0 - t * t);
	else if (shape->kind == SHAPE_DIAMOND)
		profile = 1.0 - (t < 0 ? -t : t);
	return (int32_t)((double)shape->a * 256.0 * profile);
}

static void span_cover(struct stretch *s, const struct shape *shape)
{
	int32_t dy = (int32_t)s->y - shape->y, half = half_width(shape, dy);
	int32_t middle = (shape->x - (int32_t)s->x) * 256 + shape->lean * dy;
	int32_t left = middle - half, right = middle + half;
	int32_t from = left >> 8, to = (right >> 8) + 1;
	int32_t factor = 256 / shape->edge, inside;

	from = from < 0 ? 0 : from;
	to = to > (int32_t)s->count ? (int32_t)s->count : to;
	if (half < 0 || from >= to)
		return;
	for (int32_t i = from; i < to; i++) {
		inside = i * 256 - left < right - i * 256 ? i * 256 - left : right - i * 256;
		s->cover[i] = covered(inside, factor);
	}
	paint_apply(s, &shape->paint, (uint32_t)from, (uint32_t)to);
}

/* value * weight / 256, in 16 bits throughout so that it becomes one multiply instruction. */
static inline int16_t weighted(int8_t value, int16_t weight)
{
	return (int16_t)((int32_t)(int16_t)(value * 256) * weight >> 16);
}

static inline uint8_t level_byte(int32_t level)
{
	level >>= 4;
	return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
}

/* Texture, strands, light and grain over what was painted, and out as bytes. */
static void stretch_finish(struct stretch *s, const struct noise *noise, const struct scene *scene,
	int32_t strength, uint8_t *out)
{
	uint32_t lean = (uint32_t)(scene->strand_lean * (int32_t)s->y >> 8);
	const int8_t *light = layer_at(noise, scene, NOISE_LIGHT, s->x, s->y);
	const int8_t *tint = layer_at(noise, scene, NOISE_LIGHT, s->x + 200, s->y + 100);
	const int8_t *texture = layer_at(noise, scene, NOISE_TEXTURE, s->x, s->y);
	const int8_t *strands = layer_at(noise, scene, NOISE_STRANDS, s->x + lean, s->y);
	const int8_t *grain = layer_at(noise, scene, NOISE_GRAIN, s->x, s->y);
	const int8_t *speck = layer_at(noise, scene, NOISE_GRAIN, s->x + 100, s->y + 300);
	int16_t grain_weight = (int16_t)(scene->grain * strength >> 4);

	for (uint32_t i = 0; i < s->count; i++) {
		int16_t tw = (int16_t)(s->texture[i] * strength >> 4);
		int16_t sw = (int16_t)(s->strands[i] * strength >> 4);
		int16_t busy = (int16_t)(weighted(texture[i], tw) + weighted(strands[i], sw));

		s->level[0][i] = (int16_t)(s->level[0][i] + light[i] * 6 + busy +
					   weighted(grain[i], grain_weight));
		s->level[1][i] = (int16_t)(s->level[1][i] + tint[i] * 3 + busy / 12 +
					   weighted(speck[i], grain_weight) / 3);
		s->level[2][i] = (int16_t)(s->level[2][i] - tint[i] * 3 - busy / 12 -
					   weighted(speck[i], grain_weight) / 3);
	}
	for (uint32_t i = 0; i < s->count; i++) {
		out[3 * i] = level_byte(s->level[0][i]);
		out[3 * i + 1] = level_byte(s->level[1][i]);
		out[3 * i + 2] = level_byte(s->level[2][i]);
	}
}

void scene_row(const struct noise *noise, const struct scene *scene, uint32_t y, int32_t strength,
	uint8_t *row)
{
	struct stretch s;

	s.y = y;
	for (s.x = 0; s.x < scene->width; s.x += NOISE_SIDE) {
		s.count = scene->width - s.x < NOISE_SIDE ? scene->width - s.x : NOISE_SIDE;
		for (uint32_t i = 0; i < s.count; i++) {
			s.cover[i] = 256;
			s.level[0][i] = s.level[1][i] = s.level[2][i] = 0;
			s.texture[i] = s.strands[i] = 0;
		}
		paint_apply(&s, &scene->ground, 0, s.count);
		for (unsigned int i = 0; i < scene->shape_count; i++) {
			if (scene->shapes[i].kind == SHAPE_HILLS)
				hills_cover(&s, noise, scene, &scene->shapes[i]);
			else
				span_cover(&s, &scene->shapes[i]);
		}
		stretch_finish(&s, noise, scene, strength, row + 3 * (size_t)s.x);
	}
}
