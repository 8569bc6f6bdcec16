/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping for terminals, JSON and OpenMetrics, and the words of numbers. */
#include "text.h"

#include <stdbool.h>
#include <string.h>

#include "feeder/status.h"
#include "protocol/control.h"
#include "protocol/ring.h"

/* Bytes of the well-formed UTF-8 character at p (no overlong forms, no surrogates), or 0. */
static size_t utf8_length(const unsigned char *p)
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

const char *text_clean(char *ret, size_t size, const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	size_t at = 0;

	while (*p) {
		size_t n = utf8_length(p);
		/* C1 controls are two bytes, C2 80 .. C2 9F */
		bool plain = n && p[0] >= 0x20 && p[0] != 0x7f && !(p[0] == 0xc2 && p[1] < 0xa0);

		if (at + (plain ? n : 4) >= size)
			break;
		if (plain)
			memcpy(ret + at, p, n);
		else
			snprintf(ret + at, 5, "\\x%02x", p[0]);
		at += plain ? n : 4;
		p += plain ? n : 1;
	}
	ret[at] = '\0';
	return ret;
}

unsigned int text_columns(const char *text)
{
	unsigned int columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

const char *text_fit(char *ret, size_t size, const char *name, unsigned int columns)
{
	unsigned int have;
	char *from = ret;

	text_clean(ret, size, name);
	have = text_columns(ret);
	if (have <= columns)
		return ret;
	for (unsigned int drop = have - columns + 3; drop > 0; drop--) {
		do
			from++;
		while (((unsigned char)*from & 0xc0) == 0x80);
	}
	/* at least four characters went, so the three dots fit before what is kept */
	memmove(ret + 3, from, strlen(from) + 1);
	memcpy(ret, "...", 3);
	return ret;
}

void text_json(FILE *out, const char *name)
{
	const unsigned char *p = (const unsigned char *)name;

	fputc('"', out);
	while (*p) {
		size_t n = utf8_length(p);

		if (n == 0 || *p < 0x20 || *p == 0x7f) {
			fprintf(out, "\\u%04x", *p++);
			continue;
		}
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		fwrite(p, 1, n, out);
		p += n;
	}
	fputc('"', out);
}

void text_label(FILE *out, const char *name)
{
	char clean[TEXT_MAX(1024)];

	fputc('"', out);
	for (const char *p = text_clean(clean, sizeof(clean), name); *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		fputc(*p, out);
	}
	fputc('"', out);
}

const char *text_status(unsigned int status)
{
	switch (status) {
#define STATUS_CASE(name, number, word, sentence) \
	case number:                              \
		return word;
		FEEDER_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
	default:
		return "unknown";
	}
}

const char *text_state(unsigned int state)
{
	switch (state) {
	case RING_RUNNING:
		return "running";
	case RING_DRAINING:
		return "draining";
	case RING_FAILED:
		return "failed";
	case RING_CLOSED:
		return "closed";
	default:
		return "unknown";
	}
}

const char *text_bad(unsigned int policy)
{
	switch (policy) {
	case CONTROL_BAD_FAIL:
		return "fail";
	case CONTROL_BAD_MASK:
		return "mask";
	case CONTROL_BAD_SUBSTITUTE:
		return "substitute";
	default:
		return "unknown";
	}
}
