/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs for tests, and a reference decoder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "make-jpeg.h"

uint64_t test_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t test_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(test_random(state) % n);
}

bool test_long(void)
{
	const char *text = getenv("FEEDER_LONG");

	return text && text[0] == '1';
}

void jpeg_file_copy(struct jpeg_file *ret, const uint8_t *bytes, size_t size, uint8_t tail)
{
	ret->bytes = malloc(size + BYTES_TAIL);
	assert_non_null(ret->bytes);
	if (size > 0)
		memcpy(ret->bytes, bytes, size);
	memset(ret->bytes + size, tail, BYTES_TAIL);
	ret->size = size;
}

void jpeg_file_free(struct jpeg_file *f)
{
	free(f->bytes);
	f->bytes = NULL;
	f->size = 0;
}

void jpeg_file_insert(struct jpeg_file *f, size_t at, const uint8_t *bytes, size_t count)
{
	uint8_t *grown = malloc(f->size + count + BYTES_TAIL);

	assert_non_null(grown);
	assert_true(at <= f->size);
	memcpy(grown, f->bytes, at);
	memcpy(grown + at, bytes, count);
	memcpy(grown + at + count, f->bytes + at, f->size - at);
	memset(grown + f->size + count, 0, BYTES_TAIL);
	free(f->bytes);
	f->bytes = grown;
	f->size += count;
}

void jpeg_file_remove(struct jpeg_file *f, size_t at, size_t count)
{
	assert_true(at + count <= f->size);
	memmove(f->bytes + at, f->bytes + at + count, f->size - at - count);
	f->size -= count;
	memset(f->bytes + f->size, 0, BYTES_TAIL);
}

size_t jpeg_file_find(const struct jpeg_file *f, uint8_t marker, unsigned int nth)
{
	for (size_t i = 0; i + 1 < f->size; i++) {
		if (f->bytes[i] == 0xff && f->bytes[i + 1] == marker && nth-- == 0)
			return i;
	}
	fail_msg("no marker %02x", marker);
	return 0;
}

size_t jpeg_file_scan(const struct jpeg_file *f)
{
	size_t sos = jpeg_file_find(f, 0xda, 0);

	return sos + 2 + ((size_t)f->bytes[sos + 2] << 8 | f->bytes[sos + 3]);
}

/* A picture with edges, gradients and noise, so that neighbouring pixels and blocks differ. */
static void make_row(
	const struct jpeg_recipe *r, uint64_t *state, uint32_t y, int channels, uint8_t *row)
{
	for (uint32_t x = 0; x < r->width; x++) {
		for (int c = 0; c < channels; c++) {
			uint32_t base = (x * (unsigned)(3 + c) + y * (unsigned)(7 - c)) / 2;

			if (r->extreme)
				row[x * (unsigned)channels + (unsigned)c] =
					test_below(state, 2) ? 255 : 0;
			else if (r->flat)
				row[x * (unsigned)channels + (unsigned)c] = (uint8_t)(base / 4);
			else
				row[x * (unsigned)channels + (unsigned)c] =
					(uint8_t)(base + test_below(state, 120));
		}
	}
}

static void set_model(struct jpeg_compress_struct *c, const struct jpeg_recipe *r)
{
	static const struct {
		int channels;
		J_COLOR_SPACE in, coded;
	} models[] = {
		[MODEL_YCC] = { 3, JCS_RGB, JCS_YCbCr },
		[MODEL_GRAY] = { 1, JCS_GRAYSCALE, JCS_GRAYSCALE },
		[MODEL_RGB] = { 3, JCS_RGB, JCS_RGB },
		[MODEL_CMYK] = { 4, JCS_CMYK, JCS_CMYK },
		[MODEL_YCCK] = { 4, JCS_CMYK, JCS_YCCK },
	};

	c->input_components = models[r->model].channels;
	c->in_color_space = models[r->model].in;
	jpeg_set_defaults(c);
	jpeg_set_colorspace(c, models[r->model].coded);
	for (int i = 0; i < c->num_components; i++) {
		c->comp_info[i].h_samp_factor = r->sampling[i][0] ? r->sampling[i][0] : 1;
		c->comp_info[i].v_samp_factor = r->sampling[i][1] ? r->sampling[i][1] : 1;
	}
}

/* The DC scan, then one scan a coefficient, from its highest bit down; cut off at `want`. */
static unsigned int split_scans(jpeg_scan_info *s, unsigned int want, int components)
{
	const int top = 10; /* the highest bit that the compressor allows */
	unsigned int n = 0;

	s[n].comps_in_scan = components;
	for (int i = 0; i < components; i++)
		s[n].component_index[i] = i;
	n++;
	for (int al = top; al >= 0; al--) {
		for (int i = 0; i < components * 63 && n < want; i++) {
			int k = 1 + i % 63;

			s[n++] =
				(jpeg_scan_info){ 1, { i / 63 }, k, k, al == top ? 0 : al + 1, al };
		}
	}
	return n;
}

static unsigned int separate_scans(jpeg_scan_info *s, int components)
{
	for (int i = 0; i < components; i++)
		s[i] = (jpeg_scan_info){ 1, { i }, 0, 63, 0, 0 };
	return (unsigned int)components;
}

void jpeg_make(const struct jpeg_recipe *r, struct jpeg_file *ret)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr err;
	jpeg_scan_info *scans = calloc(1024, sizeof(*scans));
	uint64_t state = r->seed * 7919 + 1;
	unsigned long size = 0;
	unsigned char *out = NULL;
	uint8_t *row;

	assert_non_null(scans);
	c.err = jpeg_std_error(&err);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &out, &size);
	c.image_width = r->width;
	c.image_height = r->height;
	set_model(&c, r);
	jpeg_set_quality(&c, r->quality ? r->quality : 90, TRUE);
	c.arith_code = r->arithmetic;
	c.optimize_coding = r->optimise;
	c.restart_interval = r->restart_mcus;
	c.restart_in_rows = (int)r->restart_rows;
	if (r->progressive)
		jpeg_simple_progression(&c);
	if (r->separate_scans || r->scans) {
		c.num_scans = (int)(r->scans ? split_scans(scans, r->scans, c.num_components)
					     : separate_scans(scans, c.num_components));
		c.scan_info = scans;
	}
	row = malloc((size_t)r->width * 4);
	assert_non_null(row);
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < c.image_height) {
		make_row(r, &state, c.next_scanline, c.input_components, row);
		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	jpeg_file_copy(ret, out, size, 0);
	free(row);
	free(out);
	free(scans);
}

static void stay_silent(j_common_ptr c, int level)
{
	(void)c;
	(void)level;
}

uint8_t *jpeg_reference(
	const uint8_t *bytes, size_t size, uint32_t *ret_width, uint32_t *ret_height)
{
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	uint8_t *pixels;

	c.err = jpeg_std_error(&err);
	err.emit_message = stay_silent;
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, bytes, size);
	jpeg_read_header(&c, TRUE);
	c.out_color_space = JCS_RGB;
	c.dct_method = JDCT_ISLOW;
	c.do_fancy_upsampling = TRUE;
	jpeg_start_decompress(&c);
	pixels = malloc((size_t)c.output_width * c.output_height * 3);
	assert_non_null(pixels);
	while (c.output_scanline < c.output_height) {
		uint8_t *row = pixels + (size_t)c.output_scanline * c.output_width * 3;

		jpeg_read_scanlines(&c, &row, 1);
	}
	*ret_width = c.output_width;
	*ret_height = c.output_height;
	jpeg_destroy_decompress(&c);
	return pixels;
}
