/* SPDX-License-Identifier: Apache-2.0 */
/* Names for sentences. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "source/escape.h"

/* Length of the well-formed UTF-8 sequence at p (no overlong forms, no surrogates), or 0. */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80) /* the terminator, too */
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

const char *escape_name(char *ret, size_t size, const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	size_t at = 0;

	while (*p) {
		size_t n = utf8_length(p);
		/* C1 controls are two bytes, C2 80 .. C2 9F */
		bool plain = n && p[0] >= 0x20 && p[0] != 0x7f && !(p[0] == 0xc2 && p[1] < 0xa0);
		size_t need = plain ? n : 4;

		if (at + need + 4 > size) {
			memcpy(ret + at, "...", 3);
			at += 3;
			break;
		}
		if (plain)
			memcpy(ret + at, p, n);
		else
			snprintf(ret + at, 5, "\\x%02X", p[0]);
		at += need;
		p += plain ? n : 1;
	}
	ret[at] = '\0';
	return ret;
}
