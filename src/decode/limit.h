/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that feeder is measured against: libjpeg-turbo alone.
 *
 * Encoded bytes in memory, one reused decompress object, libjpeg-turbo's own entropy decoder, the
 * exact box (grown by what upsampling reads), one skip from row 0, abort, RGB rows into one hot
 * buffer; no limits, no verdicts, no clock. It must stay as fast as that can be: a test counts
 * every call that it makes into libjpeg-turbo. One object belongs to one thread.
 */
#ifndef DECODE_LIMIT_H
#define DECODE_LIMIT_H

#include "decode/decode.h"

struct limit;

/* -ENOMEM. */
int limit_new(struct limit **ret);
void limit_free(struct limit *l);

/*
 * Decodes a box (inside the picture, not empty) of a JPEG with 1 or 3 components. 0, or -EBADMSG
 * for what libjpeg-turbo cannot decode to RGB, -ENOMEM.
 */
int limit_region(struct limit *l, const uint8_t *bytes, size_t size, const struct box *box);

/* The box's pixels of the last call; valid until the next. */
const uint8_t *limit_pixels(const struct limit *l, size_t *ret_stride);

#endif
