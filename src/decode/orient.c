/* SPDX-License-Identifier: Apache-2.0 */
/* EXIF orientation: the eight ways a stored picture is turned for showing. */
#include "decode/orient.h"

#include <string.h>

/* Shown (x, y) comes from stored (u, v): swap first, then mirror u and v. */
struct turn {
	bool swap;
	bool mirror_u;
	bool mirror_v;
};

static const struct turn turns[9] = {
	[2] = { .mirror_u = true },
	[3] = { .mirror_u = true, .mirror_v = true },
	[4] = { .mirror_v = true },
	[5] = { .swap = true },
	[6] = { .swap = true, .mirror_v = true },
	[7] = { .swap = true, .mirror_u = true, .mirror_v = true },
	[8] = { .swap = true, .mirror_u = true },
};

void orient_box(uint32_t orientation, uint32_t width, uint32_t height, const struct box *shown,
	struct box *ret_stored)
{
	const struct turn *t = &turns[orientation];
	struct box b = *shown;

	if (t->swap)
		b = (struct box){ .x = shown->y, .y = shown->x, .w = shown->h, .h = shown->w };
	if (t->mirror_u)
		b.x = width - b.x - b.w;
	if (t->mirror_v)
		b.y = height - b.y - b.h;
	*ret_stored = b;
}

void orient_pixels(
	uint32_t orientation, const struct region *stored, const struct box *shown, uint8_t **rows)
{
	const struct turn *t = &turns[orientation];

	for (uint32_t y = 0; y < shown->h; y++) {
		for (uint32_t x = 0; x < shown->w; x++) {
			uint32_t u = t->swap ? y : x, v = t->swap ? x : y;

			if (t->mirror_u)
				u = stored->box.w - 1 - u;
			if (t->mirror_v)
				v = stored->box.h - 1 - v;
			memcpy(rows[y] + (size_t)x * 3,
				stored->data + v * stored->stride + (size_t)u * 3, 3);
		}
	}
}
