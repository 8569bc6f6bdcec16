/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thing that is read from EXIF: the orientation.
 *
 * EXIF of real datasets is often broken (counts of 4 G, offsets past the end): no number in it is
 * believed beyond the block's own bytes, nothing is allocated, and a broken block is no block.
 */
#include "decode/exif.h"

#include <stdbool.h>
#include <string.h>

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT      3
#define ENTRY_BYTES     12

static uint32_t read_u16(const uint8_t *p, bool big)
{
	return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read_u32(const uint8_t *p, bool big)
{
	return big ? read_u16(p, big) << 16 | read_u16(p + 2, big)
		   : read_u16(p + 2, big) << 16 | read_u16(p, big);
}

uint32_t exif_orientation(const uint8_t *tiff, size_t size)
{
	bool big;
	size_t at, count;

	if (size < 10 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
		return 1;
	big = tiff[0] == 'M';
	at = read_u32(tiff + 4, big);
	if (at > size - 2)
		return 1;
	count = read_u16(tiff + at, big);
	at += 2;
	for (size_t i = 0; i < count && size - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
		const uint8_t *entry = tiff + at;
		uint32_t value;

		if (read_u16(entry, big) != TAG_ORIENTATION)
			continue;
		value = read_u16(entry + 8, big);
		if (read_u16(entry + 2, big) != TYPE_SHORT || value < 1 || value > 8)
			return 1;
		return value;
	}
	return 1;
}
