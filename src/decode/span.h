/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which columns to decode so that a box comes out exactly as in a full decode.
 *
 * Shared by the decoder and by the bare limit that it is measured against, so that both do the
 * same work.
 */
#ifndef DECODE_SPAN_H
#define DECODE_SPAN_H

#include <stdio.h>

#include <jpeglib.h>

#include "decode/decode.h"

struct span {
	uint32_t x;
	uint32_t width;
};

/*
 * Whether jpeg_crop_scanline and one jpeg_skip_scanlines from row 0 are proven to give the full
 * decode's pixels for the picture whose header was read. Otherwise decode it all and crop.
 */
bool span_proven(const struct jpeg_decompress_struct *info);

/* Columns to ask of jpeg_crop_scanline (which may begin further left still). */
void span_of_box(
	const struct jpeg_decompress_struct *info, const struct box *box, struct span *ret);

#endif
