/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprint of a dataset: XXH3-128 (seed 0) of the stream that protocol/index.md defines:
 * class names, then path, size and label of every sample, in order. Times are not in it, so that
 * copies of a dataset on several nodes agree.
 */
#ifndef SOURCE_FINGERPRINT_H
#define SOURCE_FINGERPRINT_H

#include <stdint.h>

struct image;

/* Writes the 16 bytes (canonical, most significant first); -ENOMEM. */
int fingerprint_compute(const struct image *image, uint8_t *ret);

#endif
