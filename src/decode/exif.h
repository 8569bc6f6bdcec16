/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing that is read from EXIF: the orientation. */
#ifndef DECODE_EXIF_H
#define DECODE_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* Orientation 1..8 of a TIFF block (what follows "Exif\0\0"); 1 where absent or broken. */
uint32_t exif_orientation(const uint8_t *tiff, size_t size);

#endif
