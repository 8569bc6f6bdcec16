/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXIF orientation: the eight ways a stored picture is turned for showing.
 *
 * "Stored" is as coded in the file, "shown" is after the orientation is applied (as Pillow's
 * ImageOps.exif_transpose).
 */
#ifndef DECODE_ORIENT_H
#define DECODE_ORIENT_H

#include "decode/decode.h"

static inline bool orient_swaps(uint32_t orientation)
{
	return orientation >= 5;
}

/* The stored box that holds a shown box; width and height are those of the stored picture. */
void orient_box(uint32_t orientation, uint32_t width, uint32_t height, const struct box *shown,
	struct box *ret_stored);

/* Writes the shown box's RGB rows from its stored pixels. */
void orient_pixels(
	uint32_t orientation, const struct region *stored, const struct box *shown, uint8_t **rows);

#endif
