/* SPDX-License-Identifier: Apache-2.0 */
/* One sample's failure. */
#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>

int fault_set(struct fault *f, int status, int error, const char *format, ...)
{
	va_list ap;

	f->status = status;
	f->error = error;
	va_start(ap, format);
	vsnprintf(f->text, sizeof(f->text), format, ap);
	va_end(ap);
	return status;
}

struct status_words {
	const char *word;
	const char *sentence;
};

static const struct status_words words[FEEDER_STATUS_COUNT] = {
#define STATUS_WORDS(name, number, w, s) [number] = { w, s },
	FEEDER_STATUS_LIST(STATUS_WORDS)
#undef STATUS_WORDS
};

const char *status_word(int status)
{
	return status >= 0 && status < FEEDER_STATUS_COUNT ? words[status].word : "unknown";
}

const char *status_sentence(int status)
{
	return status >= 0 && status < FEEDER_STATUS_COUNT ? words[status].sentence : "unknown";
}
