/* SPDX-License-Identifier: Apache-2.0 */
/* The last error's sentence, one for each thread, and structs that carry their size. */
#include "client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[CONTROL_TEXT_MAX + CONTROL_PATH_MAX];

int fdr_fail(int code, const char *format, ...)
{
	char text[sizeof(sentence)];
	va_list args;

	/* arguments may point into the sentence that is being replaced */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(sentence, text, strlen(text) + 1);
	return code;
}

int fdr_fail_memory(void)
{
	return fdr_fail(-ENOMEM, "libfeeder: out of memory");
}

const char *feeder_last_error(void)
{
	return sentence;
}

const char *feeder_version(void)
{
	return FEEDER_VERSION;
}

const char *feeder_status_text(int status)
{
	switch (status) {
#define STATUS_CASE(name, number, word, text) \
	case number:                          \
		return text;
		FEEDER_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
	default:
		return "unknown";
	}
}

int fdr_struct_in(void *copy, size_t known, const void *given, const char *what)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	if (size < sizeof(size))
		return fdr_fail(-EINVAL, "struct %s: set its size, or use its initialiser", what);
	for (size_t i = known; i < size; i++) {
		if (((const uint8_t *)given)[i])
			return fdr_fail(-E2BIG,
				"struct %s has a member set that this libfeeder (" FEEDER_VERSION
				") does not know: update the library",
				what);
	}
	memcpy(copy, given, size < known ? size : known);
	memcpy(copy, &known, sizeof(known));
	return 0;
}

int fdr_struct_out(void *given, const void *full, size_t known, const char *what)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	if (size < 2 * sizeof(size))
		return fdr_fail(-EINVAL, "struct %s: set its size before the call", what);
	if (size > known)
		memset((uint8_t *)given + known, 0, size - known);
	memcpy((uint8_t *)given + sizeof(size), (const uint8_t *)full + sizeof(size),
		(size < known ? size : known) - sizeof(size));
	return 0;
}
