/* SPDX-License-Identifier: Apache-2.0 */
/* EXIF blocks, and the walk over a JPEG's segments that finds them. */
#include <string.h>

#include "decode/exif.h"
#include "decode/jpeg.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_copy(data, size);
	uint32_t orientation = exif_orientation(copy, size);
	struct jpeg_header header;
	uint8_t *longer;

	REQUIRE(orientation >= 1 && orientation <= 8);
	/* Wrapped as a JPEG has it: the same, whatever comes behind. */
	if (size >= 1 && size < 60000) {
		static const uint8_t eoi[2] = { 0xff, 0xd9 };
		const uint8_t head[12] = { 0xff, 0xd8, 0xff, 0xe1, (uint8_t)((size + 8) >> 8),
			(uint8_t)(size + 8), 'E', 'x', 'i', 'f', 0, 0 };

		longer = malloc(sizeof(head) + size + sizeof(eoi));
		REQUIRE(longer);
		memcpy(longer, head, sizeof(head));
		memcpy(longer + sizeof(head), data, size);
		memcpy(longer + sizeof(head) + size, eoi, sizeof(eoi));
		jpeg_header_read(longer, sizeof(head) + size + sizeof(eoi), &header);
		REQUIRE(header.orientation == orientation);
		REQUIRE(jpeg_ends(longer, sizeof(head) + size + sizeof(eoi)));
		free(longer);
	}
	jpeg_header_read(copy, size, &header);
	REQUIRE(header.orientation >= 1 && header.orientation <= 8);
	REQUIRE(header.process == 0 || (header.process >= 0xc0 && header.process <= 0xcf));
	jpeg_process_name(header.process);
	jpeg_ends(copy, size);
	free(copy);
	return 0;
}
