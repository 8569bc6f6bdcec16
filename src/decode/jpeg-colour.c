/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CMYK and YCCK to RGB, as Pillow's Image.open(…).convert("RGB").
 *
 *	no APP14                 CMYK   ┐
 *	APP14, transform 0       CMYK   ├ the four inks are taken as inverted (Adobe's habit),
 *	APP14, transform 2       YCCK   │ whatever the file says
 *	APP14, other transform   YCCK   ┘
 *	3 components             never comes here, APP14 or not
 *
 * libjpeg-turbo makes CMYK of YCCK; no profile is applied.
 */
#include "decode/jpeg.h"

/* a·b/255, rounded, as Pillow's MULDIV255. */
static inline uint32_t scale_255(uint32_t a, uint32_t b)
{
	uint32_t t = a * b + 128;

	return ((t >> 8) + t) >> 8;
}

void jpeg_inks_to_rgb(const uint8_t *inks, uint8_t *rgb, size_t count)
{
	for (size_t i = 0; i < count; i++, inks += 4, rgb += 3) {
		uint32_t light = inks[3]; /* 255 − black */

		rgb[0] = (uint8_t)(light - scale_255(255u - inks[0], light));
		rgb[1] = (uint8_t)(light - scale_255(255u - inks[1], light));
		rgb[2] = (uint8_t)(light - scale_255(255u - inks[2], light));
	}
}
