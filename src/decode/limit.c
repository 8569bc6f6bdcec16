/* SPDX-License-Identifier: Apache-2.0 */
/* The limit that feeder is measured against: libjpeg-turbo alone. */
#include "decode/limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

#include "decode/pixels.h"
#include "decode/span.h"

#define RGB_BYTES 3

struct limit {
	struct jpeg_decompress_struct info;
	struct jpeg_error_mgr error;
	jmp_buf jump;
	struct pixels pixels;
	const uint8_t *first; /* the box's first pixel */
};

static void leave(j_common_ptr info)
{
	struct limit *l = info->client_data;

	longjmp(l->jump, 1);
}

static void stay_silent(j_common_ptr info, int level)
{
	(void)info;
	(void)level;
}

int limit_new(struct limit **ret)
{
	struct limit *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->info.err = jpeg_std_error(&l->error);
	l->error.error_exit = leave;
	l->error.emit_message = stay_silent;
	l->info.client_data = l;
	if (setjmp(l->jump)) {
		limit_free(l);
		return -ENOMEM;
	}
	jpeg_create_decompress(&l->info);
	*ret = l;
	return 0;
}

void limit_free(struct limit *l)
{
	if (!l)
		return;
	jpeg_destroy_decompress(&l->info);
	pixels_deinit(&l->pixels);
	free(l);
}

static int read_box(struct limit *l, const struct box *box)
{
	struct jpeg_decompress_struct *info = &l->info;
	struct span span;
	int r;

	info->out_color_space = JCS_RGB;
	info->dct_method = JDCT_ISLOW;
	info->do_fancy_upsampling = TRUE;
	jpeg_start_decompress(info);
	span_of_box(info, box, &span);
	jpeg_crop_scanline(info, &span.x, &span.width);
	r = pixels_reserve(&l->pixels, (size_t)span.width * RGB_BYTES, box->h, SIZE_MAX);
	if (r < 0)
		return r;
	if (box->y > 0)
		jpeg_skip_scanlines(info, box->y);
	for (uint32_t done = 0; done < box->h;)
		done += jpeg_read_scanlines(info, l->pixels.rows + done, box->h - done);
	l->first = l->pixels.rows[0] + (size_t)(box->x - span.x) * RGB_BYTES;
	return 0;
}

static int decode(struct limit *l, const uint8_t *bytes, size_t size, const struct box *box)
{
	int r = -EBADMSG;

	jpeg_mem_src(&l->info, bytes, size);
	jpeg_read_header(&l->info, TRUE);
	if (box->x + box->w <= l->info.image_width && box->y + box->h <= l->info.image_height)
		r = read_box(l, box);
	jpeg_abort_decompress(&l->info);
	return r;
}

int limit_region(struct limit *l, const uint8_t *bytes, size_t size, const struct box *box)
{
	if (setjmp(l->jump)) {
		jpeg_abort_decompress(&l->info);
		return -EBADMSG;
	}
	return decode(l, bytes, size, box);
}

const uint8_t *limit_pixels(const struct limit *l, size_t *ret_stride)
{
	*ret_stride = l->pixels.stride;
	return l->first;
}
