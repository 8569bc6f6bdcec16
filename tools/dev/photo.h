/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One photo-like JPEG: its size, coding and content drawn from (seed, number), its bytes brought
 * near the wanted number by the strength of texture and grain.
 *
 * Of a hundred, about sixty have the usual size, twenty-two stand upright and the rest are of
 * other sizes; qualities are 90 to 97; nearly all are baseline 4:2:0, with a few gray,
 * progressive, 4:2:2, 4:4:4, optimised and restart-marked ones among them.
 */
#ifndef TOOLS_DEV_PHOTO_H
#define TOOLS_DEV_PHOTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/dev/noise.h"

struct photo_wish {
	uint64_t seed;
	uint32_t width; /* the usual size */
	uint32_t height;
	uint32_t mean_bytes; /* of all photos, about */
};

struct photo_maker;

/* One a thread. noise must live longer. -ENOMEM. */
int photo_maker_new(
	struct photo_maker **ret, const struct noise *noise, const struct photo_wish *wish);
void photo_maker_free(struct photo_maker *maker);

/* A buffer of the maker's that may be changed in place until its next call. */
struct photo {
	uint8_t *data;
	size_t size;
	size_t capacity; /* at least 64 KiB more than size */
	uint32_t width;
	uint32_t height;
};

/*
 * Photo `number`. plain: the usual coding (baseline 4:2:0 with the standard's Huffman tables),
 * whatever was drawn. -ENOMEM, or -EIO where libjpeg refuses.
 */
int photo_make(struct photo_maker *maker, uint32_t number, bool plain, struct photo *ret);

#endif
