/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reusable buffer of rows.
 *
 * Rows begin at 8 mod 64: libjpeg-turbo writes 32-byte aligned rows with non-temporal stores,
 * past the cache, and the resize that follows then reads them from memory (a few per cent of a
 * sample). Growing loses the contents.
 */
#ifndef DECODE_PIXELS_H
#define DECODE_PIXELS_H

#include <stddef.h>
#include <stdint.h>

struct pixels {
	uint8_t **rows; /* the first byte of each row of the last reserve */
	size_t stride;  /* bytes from row to row */

	uint8_t *memory;
	size_t capacity;
	size_t row_capacity;
};

/*
 * Room for `rows` rows of `row_bytes`; existing room is used again. -EFBIG when the rows take
 * more than max_bytes, -ENOMEM.
 */
int pixels_reserve(struct pixels *p, size_t row_bytes, size_t rows, uint64_t max_bytes);
/* Gives memory back if an unusually large picture took it; keeps it otherwise. */
void pixels_trim(struct pixels *p);
void pixels_deinit(struct pixels *p);

#endif
