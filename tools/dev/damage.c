/* SPDX-License-Identifier: Apache-2.0 */
/* Broken files, each made from a good baseline JPEG. */
#include "tools/dev/damage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <spng.h>

#include "tools/dev/scene.h"

enum marker { MARKER_SOF0 = 0xc0, MARKER_DHT = 0xc4, MARKER_SOS = 0xda };

/* The offset of a marker's 0xFF in a JPEG of our own making, which always has it. */
static size_t marker_find(const struct photo *photo, enum marker marker)
{
	const uint8_t *d = photo->data;
	size_t at = 2;

	while (at + 4 <= photo->size && d[at + 1] != marker)
		at += 2 + (size_t)(d[at + 2] << 8 | d[at + 3]);
	return at;
}

static size_t scan_begin(const struct photo *photo)
{
	size_t at = marker_find(photo, MARKER_SOS);

	return at + 2 + (size_t)(photo->data[at + 2] << 8 | photo->data[at + 3]);
}

static int replace(struct photo *photo, const void *bytes, size_t size)
{
	memcpy(photo->data, bytes, size);
	photo->size = size;
	return 0;
}

static int fill(struct photo *photo, size_t from, size_t to, struct philox_stream *random)
{
	for (size_t i = from; i < to; i++)
		photo->data[i] = (uint8_t)draw_between(random, 0, 255);
	photo->size = to;
	return 0;
}

static int cut_middle(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	photo->size /= 2;
	return 0;
}

static int cut_end(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	photo->size = photo->size * 95 / 100;
	return 0;
}

static int cut_header(struct photo *photo, struct philox_stream *random)
{
	photo->size = (size_t)draw_between(random, 25, (int32_t)marker_find(photo, MARKER_SOS));
	return 0;
}

static int make_empty(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	photo->size = 0;
	return 0;
}

/* Too little to tell a format by. */
static int keep_one(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	photo->size = 1;
	return 0;
}

/* Two or three bytes: a JPEG has begun. */
static int keep_begin(struct photo *photo, struct philox_stream *random)
{
	photo->size = (size_t)draw_between(random, 2, 3);
	return 0;
}

/* A whole and valid picture, only not what its name says. */
static int make_png(struct photo *photo, struct philox_stream *random)
{
	struct spng_ihdr header = {
		.width = 64, .height = 48, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR
	};
	uint8_t pixels[64 * 48 * 3];
	spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
	int r = -EIO, error = 0;
	size_t size = 0;
	void *bytes;

	if (!png)
		return -EIO;
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i / 64 + (size_t)draw_between(random, 0, 15));
	spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
	if (!spng_set_ihdr(png, &header) && !spng_encode_image(png, pixels, sizeof(pixels),
						    SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE)) {
		bytes = spng_get_png_buffer(png, &size, &error);
		if (bytes && size <= photo->capacity)
			r = replace(photo, bytes, size);
		free(bytes);
	}
	spng_ctx_free(png);
	return r;
}

static int magic_over(struct photo *photo, const char *magic, size_t size)
{
	memcpy(photo->data, magic, size);
	return 0;
}

static int make_bmp(struct photo *photo, struct philox_stream *random)
{
	fill(photo, 0, 4096, random);
	return magic_over(photo, "BM\0\x10\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18);
}

static int make_gif(struct photo *photo, struct philox_stream *random)
{
	fill(photo, 0, 4096, random);
	return magic_over(photo, "GIF89a\x40\0\x30\0\xf7\0\0", 13);
}

static int make_webp(struct photo *photo, struct philox_stream *random)
{
	fill(photo, 0, 4096, random);
	return magic_over(photo, "RIFF\xf8\x0f\0\0WEBPVP8 \xec\x0f\0\0", 20);
}

static int giant(struct photo *photo, struct philox_stream *random)
{
	uint8_t *frame = photo->data + marker_find(photo, MARKER_SOF0);

	(void)random;
	memcpy(frame + 5, "\xf6\x12\xf6\x12", 4); /* 62994 x 62994 */
	return 0;
}

/* Eight bytes of the scan's first half; some leave a decodable stream. */
static int flip(struct photo *photo, struct philox_stream *random)
{
	size_t begin = scan_begin(photo), half = (photo->size - begin) / 2;

	for (unsigned int i = 0; i < 8; i++)
		photo->data[begin + (size_t)draw_between(random, 0, (int32_t)half)] ^=
			(uint8_t)(1 << draw_between(random, 0, 7));
	return 0;
}

/* Motion-JPEG frames come so: the standard's tables are meant. */
static int drop_tables(struct photo *photo, struct philox_stream *random)
{
	size_t at = marker_find(photo, MARKER_DHT), size;

	(void)random;
	while (photo->data[at + 1] == MARKER_DHT) {
		size = 2 + (size_t)(photo->data[at + 2] << 8 | photo->data[at + 3]);
		memmove(photo->data + at, photo->data + at + size, photo->size - at - size);
		photo->size -= size;
	}
	return 0;
}

/* As scanners write it: height 0, and a DNL segment behind the scan. */
static int height_later(struct photo *photo, struct philox_stream *random)
{
	uint8_t *frame = photo->data + marker_find(photo, MARKER_SOF0);
	uint8_t *end = photo->data + photo->size - 2;

	(void)random;
	memcpy(end, "\xff\xdc\x00\x04", 4);
	memcpy(end + 4, frame + 5, 2);
	memcpy(end + 6, "\xff\xd9", 2);
	photo->size += 6;
	memset(frame + 5, 0, 2);
	return 0;
}

static int precision_nine(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	photo->data[marker_find(photo, MARKER_SOF0) + 4] = 9;
	return 0;
}

static int make_pointer(struct photo *photo, struct philox_stream *random)
{
	static const char text[] =
		"version https://git-lfs.github.com/spec/v1\n"
		"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
		"size 98304\n";

	(void)random;
	return replace(photo, text, sizeof(text) - 1);
}

static int make_html(struct photo *photo, struct philox_stream *random)
{
	static const char text[] =
		"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head>\n"
		"<body><h1>This photo is no longer available</h1></body></html>\n";

	(void)random;
	return replace(photo, text, sizeof(text) - 1);
}

static int make_zeros(struct photo *photo, struct philox_stream *random)
{
	(void)random;
	memset(photo->data, 0, 1024);
	photo->size = 1024;
	return 0;
}

static int make_garbage(struct photo *photo, struct philox_stream *random)
{
	fill(photo, 0, 4096, random);
	return magic_over(photo, "\x13\x37", 2); /* never an image's magic by chance */
}

const struct damage damages[] = {
	{ "cut-50", "truncated", cut_middle },
	{ "cut-95", "truncated", cut_end },
	{ "cut-header", "truncated", cut_header },
	{ "empty", "empty", make_empty },
	{ "one-byte", "unknown-format", keep_one },
	{ "begin-only", "truncated", keep_begin },
	{ "png", "ok", make_png },
	{ "bmp", "other-format", make_bmp },
	{ "gif", "other-format", make_gif },
	{ "webp", "other-format", make_webp },
	{ "giant", "too-large", giant },
	{ "flips", "maybe", flip },
	{ "no-tables", "ok", drop_tables },
	{ "height-later", "height-zero", height_later },
	{ "lfs-pointer", "lfs-pointer", make_pointer },
	{ "html", "unknown-format", make_html },
	{ "precision-9", "unsupported-process", precision_nine },
	{ "zeros", "unknown-format", make_zeros },
	{ "garbage", "unknown-format", make_garbage },
	{ NULL, NULL, NULL },
};
const unsigned int damage_count = sizeof(damages) / sizeof(*damages) - 1;
