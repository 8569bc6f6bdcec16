/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as it is judged before names of strangers are shown: strictly, and nothing is decoded. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed character at p (no overlong forms, no surrogates), else 0. */
static inline size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) /* the terminator, too */
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* The same of one that is no control character, which a terminal might act on; else 0. */
static inline size_t utf8_printable(const unsigned char *p)
{
	/* C1 controls are two bytes, C2 80 .. C2 9F */
	if (p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
		return 0;
	return utf8_length(p);
}

#endif
