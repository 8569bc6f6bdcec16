/* SPDX-License-Identifier: Apache-2.0 */
/* Which format the first bytes are. */
#ifndef DECODE_SNIFF_H
#define DECODE_SNIFF_H

#include "decode/codec.h"

/* 0 with the codec, or a status whose text names the real format. */
int sniff(const uint8_t *bytes, size_t size, const struct codec **ret, struct fault *fault);

#endif
