/* SPDX-License-Identifier: Apache-2.0 */
/* What libjpeg does not tell of a JPEG: coding process, precision, orientation, the end. */
#include "decode/jpeg.h"

#include <string.h>

#include "decode/exif.h"

#define MARKER_SOI  0xd8
#define MARKER_EOI  0xd9
#define MARKER_SOS  0xda
#define MARKER_APP1 0xe1
#define MARKER_TEM  0x01

static bool is_sof(uint8_t marker)
{
	/* c4, c8 and cc are DHT, JPG and DAC. */
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

static bool is_bare(uint8_t marker)
{
	return marker == MARKER_SOI || marker == MARKER_TEM || (marker >= 0xd0 && marker <= 0xd7);
}

static void read_segment(uint8_t marker, const uint8_t *data, size_t size, struct jpeg_header *ret)
{
	static const uint8_t exif[6] = "Exif\0";

	if (is_sof(marker) && ret->process == 0 && size >= 1) {
		ret->process = marker;
		ret->precision = data[0];
	}
	if (marker == MARKER_APP1 && ret->orientation == 1 && size > sizeof(exif) &&
		memcmp(data, exif, sizeof(exif)) == 0)
		ret->orientation = exif_orientation(data + sizeof(exif), size - sizeof(exif));
}

void jpeg_header_read(const uint8_t *bytes, size_t size, struct jpeg_header *ret)
{
	size_t at = 2;

	*ret = (struct jpeg_header){ .orientation = 1 };
	while (at + 1 < size) {
		uint8_t marker = bytes[at + 1];
		size_t length;

		/* Fill bytes and stray bytes between segments are passed over, as libjpeg does. */
		if (bytes[at] != 0xff || marker == 0xff || marker == 0) {
			at++;
			continue;
		}
		at += 2;
		if (is_bare(marker))
			continue;
		if (marker == MARKER_SOS || marker == MARKER_EOI || size - at < 2)
			return;
		length = (size_t)bytes[at] << 8 | bytes[at + 1];
		if (length < 2 || length > size - at)
			return;
		read_segment(marker, bytes + at + 2, length - 2, ret);
		at += length;
	}
}

const char *jpeg_process_name(uint8_t process)
{
	switch (process) {
	case 0xc3:
		return "lossless (SOF3)";
	case 0xc5:
	case 0xc6:
		return "hierarchical (SOF5, SOF6)";
	case 0xc7:
		return "hierarchical lossless (SOF7)";
	case 0xcb:
		return "arithmetic lossless (SOF11)";
	case 0xcd:
	case 0xce:
		return "arithmetic hierarchical (SOF13, SOF14)";
	case 0xcf:
		return "arithmetic hierarchical lossless (SOF15)";
	default:
		return NULL;
	}
}

bool jpeg_ends(const uint8_t *bytes, size_t size)
{
	while (size > 0 && (bytes[size - 1] == 0 || bytes[size - 1] == 0xff))
		size--;
	return size >= 4 && bytes[size - 1] == MARKER_EOI && bytes[size - 2] == 0xff;
}
