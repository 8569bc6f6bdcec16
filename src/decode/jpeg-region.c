/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot path: a box of a JPEG, equal to the same box of a full decode.
 *
 * Columns: jpeg_crop_scanline on the box and its margin (span.h); entropy decoding still takes
 * the whole row. Rows: exactly one jpeg_skip_scanlines from row 0, where every libjpeg-turbo is
 * right (a second one, or one that starts off a row group, is not); the object is aborted behind
 * the box's last row, so what lies below is never decoded. Never used, as each has a bug with
 * crop or skip in some release: merged upsampling, buffered-image mode, DCT scaling.
 *
 * Entropy decoding is three quarters of the time. An own entropy decoder's place is the end of
 * start_scans, where cinfo->entropy->decode_mcu (jpegint.h) can be taken over; row checkpoints
 * replace the skip in place_on_box.
 */
#include "decode/jpeg.h"

#include <errno.h>

#include "decode/span.h"

#define RGB_BYTES 3
#define INK_BYTES 4
#define INK_ROWS  4 /* rows of CMYK in flight: the most that libjpeg gives in one call */

static bool is_cmyk(const struct jpeg *j)
{
	return j->info.num_components == INK_BYTES;
}

/* Whether each coefficient of a progressive picture came in full, or each component's scan. */
static bool is_whole(const struct jpeg *j)
{
	const struct jpeg_decompress_struct *info = &j->info;

	if (!info->progressive_mode)
		return j->components_seen == (1u << info->num_components) - 1;
	for (int i = 0; i < info->num_components; i++) {
		for (int k = 0; k < DCTSIZE2; k++) {
			if (info->coef_bits[i][k] != 0)
				return false;
		}
	}
	return true;
}

/* Several scans are all decoded in here. */
static void start_scans(struct jpeg *j)
{
	struct jpeg_decompress_struct *info = &j->info;

	info->out_color_space = is_cmyk(j) ? JCS_CMYK : JCS_RGB;
	info->dct_method = JDCT_ISLOW;
	info->do_fancy_upsampling = TRUE;
	jpeg_start_decompress(info);
}

/*
 * Region or all: a progressive file whose last scans were never written is smoothed across
 * blocks, which a crop would do with the wrong neighbours.
 */
static bool may_crop(const struct jpeg *j, bool whole)
{
	return whole && span_proven(&j->info) && !decode_uses_full_decode();
}

static void reserve(struct jpeg *j, struct pixels *p, size_t row_bytes, size_t rows)
{
	int r = pixels_reserve(p, row_bytes, rows, j->limits->max_memory);

	if (r == -EFBIG)
		jpeg_fail(j, FEEDER_STATUS_MEMORY_LIMIT,
			"memory cap: %zu rows of %zu bytes, the limit is %llu", rows, row_bytes,
			(unsigned long long)j->limits->max_memory);
	if (r < 0)
		jpeg_fail(j, FEEDER_STATUS_MEMORY_LIMIT, "out of memory");
}

/* Rows come as they are asked for, never more: the source does not suspend, so never none. */
static void read_rows(struct jpeg *j, uint8_t **rows, uint32_t count)
{
	for (uint32_t done = 0; done < count;) {
		uint32_t n = jpeg_read_scanlines(&j->info, rows + done, count - done);

		if (n == 0)
			jpeg_fail(j, FEEDER_STATUS_INTERNAL, "libjpeg-turbo gave no row");
		done += n;
	}
}

static void read_ink_rows(struct jpeg *j, uint32_t width, uint32_t count)
{
	for (uint32_t done = 0; done < count;) {
		uint32_t left = count - done, n = left < INK_ROWS ? left : INK_ROWS;

		read_rows(j, j->inks.rows, n);
		for (uint32_t i = 0; i < n; i++)
			jpeg_inks_to_rgb(j->inks.rows[i], j->pixels.rows[done + i], width);
		done += n;
	}
}

/* Leaves the object at the box's first row. */
static void place_on_box(struct jpeg *j, const struct box *box, bool crop)
{
	uint8_t **scratch = is_cmyk(j) ? j->inks.rows : j->pixels.rows;

	if (crop) {
		if (box->y > 0)
			jpeg_skip_scanlines(&j->info, box->y);
		return;
	}
	while (j->info.output_scanline < box->y)
		read_rows(j, scratch, 1);
}

void jpeg_decode_box(struct jpeg *j, const struct box *box, struct region *ret)
{
	struct jpeg_decompress_struct *info = &j->info;
	struct span span = { .x = 0, .width = info->image_width };
	bool whole, crop;

	start_scans(j);
	whole = !jpeg_has_multiple_scans(info) || is_whole(j);
	if (j->source_ended && !whole)
		jpeg_fail(j, FEEDER_STATUS_TRUNCATED,
			"image data ends after scan %d, more are missing", info->input_scan_number);
	crop = may_crop(j, whole);
	if (crop) {
		span_of_box(info, box, &span);
		jpeg_crop_scanline(info, &span.x, &span.width);
	}
	reserve(j, &j->pixels, (size_t)span.width * RGB_BYTES, box->h);
	if (is_cmyk(j))
		reserve(j, &j->inks, (size_t)span.width * INK_BYTES, INK_ROWS);
	place_on_box(j, box, crop);
	jpeg_check_budget(j);
	if (is_cmyk(j))
		read_ink_rows(j, span.width, box->h);
	else
		read_rows(j, j->pixels.rows, box->h);
	/* The arithmetic decoder makes up data past the end without a warning. */
	if (info->arith_code && j->source_ended)
		jpeg_fail(j, FEEDER_STATUS_TRUNCATED, "arithmetic-coded data ends early");
	*ret = (struct region){
		.data = j->pixels.rows[0] + (size_t)(box->x - span.x) * RGB_BYTES,
		.stride = j->pixels.stride,
		.box = *box,
	};
}
