/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which columns to decode so that a box comes out exactly as in a full decode.
 *
 * Fancy upsampling makes pixel x of a component that is halved horizontally from its samples
 * (x−1)/2 and (x+1)/2, and treats the first and last column of what it is given as the picture's
 * edge: one more pixel a side is what it needs. It also takes another method altogether (chosen
 * at the picture's full width) for fewer than 3 samples: so at least 3 of the coarsest component.
 * Rows need nothing: jpeg_skip_scanlines from row 0 decodes the rows of context itself.
 */
#include "decode/span.h"

#define MARGIN      1 /* pixels */
#define MIN_SAMPLES 3

/* jpeg_skip_scanlines and libjpeg's row groups know whole factors only; so does its upsampling. */
static bool factor_proven(int largest, int factor)
{
	return factor >= 1 && largest <= 4 && largest % factor == 0;
}

bool span_proven(const struct jpeg_decompress_struct *info)
{
	if (info->num_components != 1 && info->num_components != 3 && info->num_components != 4)
		return false;
	for (int i = 0; i < info->num_components; i++) {
		const jpeg_component_info *c = &info->comp_info[i];

		if (!factor_proven(info->max_h_samp_factor, c->h_samp_factor) ||
			!factor_proven(info->max_v_samp_factor, c->v_samp_factor))
			return false;
	}
	return true;
}

void span_of_box(const struct jpeg_decompress_struct *info, const struct box *box, struct span *ret)
{
	uint32_t factor = (uint32_t)info->max_h_samp_factor;
	uint32_t margin = info->num_components > 1 && factor > 1 ? MARGIN : 0;
	uint32_t least = MIN_SAMPLES * factor;
	uint32_t width = info->image_width;
	uint32_t left = box->x > margin ? box->x - margin : 0;
	uint32_t right = box->x + box->w;

	right = width - right > margin ? right + margin : width;
	if (right - left < least)
		right = width - left > least ? left + least : width;
	if (right - left < least)
		left = right > least ? right - least : 0;
	ret->x = left;
	ret->width = right - left;
}
