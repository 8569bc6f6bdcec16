/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which format the first bytes are.
 *
 * Web crawls save anything as .jpg: the name is never asked, and what is not decoded is called by
 * its own name, so that a count of bad samples tells what is in a dataset.
 */
#include "decode/sniff.h"

#include <ctype.h>
#include <string.h>

struct magic {
	const char *bytes;
	uint8_t length;
	uint8_t offset;
	uint8_t status;
	const char *text;
};

#define OTHER   FEEDER_STATUS_OTHER_FORMAT
#define UNKNOWN FEEDER_STATUS_UNKNOWN_FORMAT
#define MAGIC(literal, offset, status, text)                       \
	{                                                          \
		literal, sizeof(literal) - 1, offset, status, text \
	}

/* The first that fits counts. */
static const struct magic magics[] = {
	MAGIC("GIF8", 0, OTHER, "a GIF image"),
	MAGIC("WEBP", 8, OTHER, "a WebP image"),
	MAGIC("RIFF", 0, UNKNOWN, "a RIFF file that is not WebP"),
	MAGIC("BM", 0, OTHER, "a BMP image"),
	MAGIC("II*\0", 0, OTHER, "a TIFF image"),
	MAGIC("MM\0*", 0, OTHER, "a TIFF image"),
	MAGIC("II+\0", 0, OTHER, "a BigTIFF image"),
	MAGIC("MM\0+", 0, OTHER, "a BigTIFF image"),
	MAGIC("ftypavi", 4, OTHER, "an AVIF image"),
	MAGIC("ftyphe", 4, OTHER, "a HEIC image"),
	MAGIC("ftypmif1", 4, OTHER, "a HEIF image"),
	MAGIC("ftypmsf1", 4, OTHER, "a HEIF image"),
	MAGIC("ftyp", 4, UNKNOWN, "an MP4 or QuickTime file"),
	MAGIC("8BPS", 0, OTHER, "a Photoshop (PSD) image"),
	MAGIC("\0\0\0\x0cjP  ", 0, OTHER, "a JPEG 2000 image"),
	MAGIC("\xff\x4f\xff\x51", 0, OTHER, "a JPEG 2000 codestream"),
	MAGIC("\0\0\0\x0cJXL ", 0, OTHER, "a JPEG XL image"),
	MAGIC("\xff\x0a", 0, OTHER, "a JPEG XL codestream"),
	MAGIC("\x8aMNG", 0, OTHER, "an MNG image"),
	MAGIC("version https://git-lfs", 0, FEEDER_STATUS_LFS_POINTER,
		"a Git LFS pointer, the file itself was not fetched"),
	MAGIC("PK\3\4", 0, UNKNOWN, "a ZIP archive"),
	MAGIC("\x1f\x8b", 0, UNKNOWN, "a gzip file"),
	MAGIC("%PDF", 0, UNKNOWN, "a PDF file"),
};

static const uint8_t png_magic[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };

static bool has_magic(const struct magic *m, const uint8_t *bytes, size_t size)
{
	return size >= (size_t)m->offset + m->length &&
	       memcmp(bytes + m->offset, m->bytes, m->length) == 0;
}

static bool is_netpbm(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
	       isspace(bytes[2]);
}

/* Markup, after a byte order mark and white space, in any case. NULL if it is none. */
static const char *markup_name(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *tag, *name;
	} tags[] = {
		{ "<!doctype html", "an HTML page" },
		{ "<html", "an HTML page" },
		{ "<head", "an HTML page" },
		{ "<svg", "an SVG image" },
		{ "<?xml", "an XML document" },
	};
	size_t at = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < size && isspace(bytes[at]))
		at++;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t length = strlen(tags[i].tag);

		if (size - at >= length &&
			strncasecmp((const char *)bytes + at, tags[i].tag, length) == 0)
			return tags[i].name;
	}
	return NULL;
}

static bool is_all_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static int name_unknown(const uint8_t *bytes, size_t size, struct fault *fault)
{
	const char *markup = markup_name(bytes, size);

	if (markup)
		return fault_set(fault, UNKNOWN, 0, "%s", markup);
	if (is_netpbm(bytes, size))
		return fault_set(fault, OTHER, 0, "a PPM, PGM or PBM image");
	if (is_all_zero(bytes, size))
		return fault_set(fault, UNKNOWN, 0, "all %zu bytes are zero", size);
	if (size < 4)
		return fault_set(fault, UNKNOWN, 0, "only %zu bytes", size);
	return fault_set(fault, UNKNOWN, 0,
		"no known image format: starts with %02x %02x %02x %02x", bytes[0], bytes[1],
		bytes[2], bytes[3]);
}

int sniff(const uint8_t *bytes, size_t size, const struct codec **ret, struct fault *fault)
{
	if (size == 0)
		return fault_set(fault, FEEDER_STATUS_EMPTY, 0, "the file is empty");
	if (size >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8) {
		*ret = &codec_jpeg;
		return 0;
	}
	if (size >= sizeof(png_magic) && memcmp(bytes, png_magic, sizeof(png_magic)) == 0) {
		*ret = &codec_png;
		return 0;
	}
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		if (has_magic(&magics[i], bytes, size))
			return fault_set(fault, magics[i].status, 0, "%s", magics[i].text);
	}
	return name_unknown(bytes, size, fault);
}
