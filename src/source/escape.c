/* SPDX-License-Identifier: Apache-2.0 */
/* Names for sentences. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "source/escape.h"

const char *escape_name(char *ret, size_t size, const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	size_t at = 0;

	while (*p) {
		size_t n = utf8_printable(p);
		size_t need = n ? n : 4;

		if (at + need + 4 > size) {
			memcpy(ret + at, "...", 3);
			at += 3;
			break;
		}
		if (n)
			memcpy(ret + at, p, n);
		else
			snprintf(ret + at, 5, "\\x%02X", p[0]);
		at += need;
		p += n ? n : 1;
	}
	ret[at] = '\0';
	return ret;
}
