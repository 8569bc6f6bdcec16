/* SPDX-License-Identifier: Apache-2.0 */
/* Names are bytes; only what people read is escaped. */
#ifndef SOURCE_ESCAPE_H
#define SOURCE_ESCAPE_H

#include <stddef.h>

#define ESCAPED_MAX 512

/*
 * Writes name into ret (size ≥ 8), so that it is printable UTF-8 on one line: control bytes and
 * bytes that are not UTF-8 become \xNN. What does not fit is cut and ends in "...". Returns ret.
 */
const char *escape_name(char *ret, size_t size, const char *name);

#endif
