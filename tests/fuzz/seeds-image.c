/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of the harnesses decode and exif: small images of every kind. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "unit/decode/make-jpeg.h"
#include "seeds.h"
#include "unit/decode/goldens.h"

static const struct {
	const char *name;
	struct jpeg_recipe recipe;
} jpegs[] = {
	{ "gray", { .model = MODEL_GRAY } },
	{ "444", { .sampling = { { 1, 1 } } } },
	{ "422", { .sampling = { { 2, 1 } } } },
	{ "420", { .sampling = { { 2, 2 } } } },
	{ "440", { .sampling = { { 1, 2 } } } },
	{ "411", { .sampling = { { 4, 1 } } } },
	{ "410", { .sampling = { { 4, 2 } } } },
	{ "uneven", { .sampling = { { 2, 2 }, { 2, 1 }, { 1, 2 } } } },
	{ "3x1", { .sampling = { { 3, 1 } } } },
	{ "1x3", { .sampling = { { 1, 3 } } } },
	{ "chroma-2x2", { .sampling = { { 1, 1 }, { 2, 2 }, { 2, 2 } } } },
	{ "green-2x1", { .sampling = { { 1, 1 }, { 2, 1 }, { 1, 1 } }, .model = MODEL_RGB } },
	{ "gray-2x2", { .model = MODEL_GRAY, .sampling = { { 2, 2 } } } },
	{ "rgb", { .model = MODEL_RGB } },
	{ "cmyk", { .model = MODEL_CMYK } },
	{ "ycck-420",
		{ .model = MODEL_YCCK, .sampling = { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } } },
	{ "progressive-420", { .sampling = { { 2, 2 } }, .progressive = true } },
	{ "progressive-444", { .progressive = true } },
	{ "progressive-cmyk", { .model = MODEL_CMYK, .progressive = true } },
	{ "progressive-restart",
		{ .sampling = { { 2, 1 } }, .progressive = true, .restart_mcus = 2 } },
	{ "restart-mcus", { .sampling = { { 2, 2 } }, .restart_mcus = 1 } },
	{ "restart-rows", { .sampling = { { 2, 1 } }, .restart_rows = 1 } },
	{ "separate", { .sampling = { { 2, 2 } }, .separate_scans = true } },
	{ "optimised", { .sampling = { { 2, 2 } }, .optimise = true } },
	{ "arithmetic", { .sampling = { { 2, 2 } }, .arithmetic = true } },
	{ "arithmetic-progressive",
		{ .sampling = { { 2, 2 } }, .arithmetic = true, .progressive = true } },
	{ "scans-41", { .model = MODEL_GRAY, .progressive = true, .scans = 41 } },
	{ "one-pixel", { .width = 1, .height = 1, .sampling = { { 2, 2 } } } },
	{ "one-row", { .width = 60, .height = 1, .sampling = { { 2, 2 } } } },
	{ "one-column", { .width = 1, .height = 60, .sampling = { { 2, 2 } } } },
};

static void put_u16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put_file(const char *name, struct jpeg_file *f)
{
	seed_put("decode", name, f->bytes, f->size);
	jpeg_file_free(f);
}

static void make(struct jpeg_file *ret)
{
	const struct jpeg_recipe plain = {
		.width = 37, .height = 19, .sampling = { { 2, 2 } }, .flat = true
	};

	jpeg_make(&plain, ret);
}

/* Only the first scans of a progressive file, well ended: the rest is smoothed over. */
static void few_scans(unsigned int scans)
{
	const struct jpeg_recipe recipe = { .width = 40,
		.height = 30,
		.sampling = { { 2, 2 } },
		.progressive = true,
		.quality = 50 };
	struct jpeg_file f;
	char name[32];

	jpeg_make(&recipe, &f);
	f.size = jpeg_file_find(&f, 0xda, scans);
	f.bytes[f.size++] = 0xff;
	f.bytes[f.size++] = 0xd9;
	snprintf(name, sizeof(name), "scans-%u", scans);
	put_file(name, &f);
}

/* An orientation as EXIF has it: 26 bytes of TIFF. */
static void make_tiff(uint8_t ret[26], bool big, unsigned int orientation)
{
	static const uint8_t little[26] = { 'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0,
		0, 0 };
	static const uint8_t other[26] = { 'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0,
		0, 1 };

	memcpy(ret, big ? other : little, 26);
	ret[big ? 19 : 18] = (uint8_t)orientation;
}

static void add_app(struct jpeg_file *f, uint8_t marker, const void *data, size_t size)
{
	uint8_t segment[256] = { 0xff, marker };

	put_u16(segment + 2, (unsigned int)size + 2);
	memcpy(segment + 4, data, size);
	jpeg_file_insert(f, 2, segment, size + 4);
}

static void exif_jpegs(void)
{
	for (unsigned int i = 0; i <= 9; i++) {
		uint8_t data[32] = "Exif\0";
		struct jpeg_file f;
		char name[32];

		make(&f);
		make_tiff(data + 6, i % 2, i);
		add_app(&f, 0xe1, data, sizeof(data));
		snprintf(name, sizeof(name), "exif-%u", i);
		put_file(name, &f);
		seed_put("exif", name, data + 6, 26);
	}
}

static void broken_jpegs(void)
{
	static const uint8_t junk[6] = { 1, 2, 0x7f, 0xff, 0xff, 3 };
	struct jpeg_file f;

	make(&f);
	f.size -= 2;
	put_file("no-eoi", &f);
	make(&f);
	f.size = f.size * 3 / 4;
	put_file("cut", &f);
	make(&f);
	jpeg_file_insert(&f, f.size - 2, junk, sizeof(junk));
	put_file("junk-before-eoi", &f);
	make(&f);
	jpeg_file_insert(&f, f.size, junk, sizeof(junk));
	put_file("junk-behind", &f);
	make(&f);
	put_u16(f.bytes + jpeg_file_find(&f, 0xc0, 0) + 5, 0);
	put_file("height-0", &f);
	make(&f);
	put_u16(f.bytes + jpeg_file_find(&f, 0xc0, 0) + 5, 65000);
	put_u16(f.bytes + jpeg_file_find(&f, 0xc0, 0) + 7, 65000);
	put_file("huge", &f);
	make(&f);
	f.bytes[jpeg_file_find(&f, 0xc0, 0) + 4] = 12;
	put_file("12-bit", &f);
	make(&f);
	f.bytes[jpeg_file_find(&f, 0xc0, 0) + 1] = 0xc3;
	put_file("lossless", &f);
	make(&f);
	for (int i = 0; i < 4; i++) {
		size_t at = jpeg_file_find(&f, 0xc4, 0);

		jpeg_file_remove(&f, at, 2u + ((size_t)f.bytes[at + 2] << 8 | f.bytes[at + 3]));
	}
	put_file("no-huffman-tables", &f);
	make(&f);
	for (int i = 0; i < 2; i++)
		jpeg_file_remove(&f, jpeg_file_find(&f, 0xdb, 0), 2 + 67);
	put_file("no-quantisation-tables", &f);
	make(&f);
	add_app(&f, 0xee, "Adobe\0d\0\0\0\0", 12);
	put_file("adobe-rgb", &f);
}

static void other_formats(void)
{
	static const char lfs[] =
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
	static const struct {
		const char *name, *magic;
		size_t size;
	} others[] = { { "gif", "GIF89a\1\0\1\0\0\0\0;", 14 },
		{ "bmp", "BM\x3a\0\0\0\0\0\0\0", 10 }, { "webp", "RIFF\x24\0\0\0WEBPVP8 ", 16 },
		{ "tiff", "II*\0\x08\0\0\0", 8 },
		{ "heic",
			"\0\0\0\x18"
			"ftypheic",
			12 },
		{ "ppm", "P6\n1 1\n255\nabc", 14 }, { "html", " \n<!DOCTYPE html><html>", 23 },
		{ "svg", "\xef\xbb\xbf<svg>", 8 }, { "zip", "PK\3\4\0\0", 6 },
		{ "zeros", "\0\0\0\0\0\0\0\0\0\0", 10 }, { "short", "\xff\xd8", 2 },
		{ "empty", "", 0 } };

	seed_put("decode", "lfs", lfs, sizeof(lfs) - 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		seed_put("decode", others[i].name, others[i].magic, others[i].size);
}

void seeds_image(void)
{
	for (size_t i = 0; i < sizeof(jpegs) / sizeof(jpegs[0]); i++) {
		struct jpeg_recipe recipe = jpegs[i].recipe;
		struct jpeg_file f;
		char name[64];

		recipe.width = recipe.width ? recipe.width : 37;
		recipe.height = recipe.height ? recipe.height : 19;
		recipe.quality = 40;
		recipe.seed = i;
		jpeg_make(&recipe, &f);
		snprintf(name, sizeof(name), "jpeg-%s", jpegs[i].name);
		put_file(name, &f);
	}
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		if (goldens[i].size < 2048)
			seed_put("decode", goldens[i].name, goldens[i].file, goldens[i].size);
	}
	exif_jpegs();
	few_scans(1);
	few_scans(3);
	broken_jpegs();
	other_formats();
	seed_put("exif", "counts", "MM\0*\0\0\0\x08\xff\xff\x01\x12\0\x04\xff\xff\xff\xff\0\6\0\0",
		22);
	seed_put("exif", "offset", "II*\0\xff\xff\xff\xff\0\0", 10);
}
