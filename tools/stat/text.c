/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping for terminals, JSON and OpenMetrics, and the words of numbers. */
#include "text.h"

#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "feeder/status.h"
#include "protocol/control.h"

const char *text_clean(char *ret, size_t size, const char *name)
{
	log_escape(ret, size, name);
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
