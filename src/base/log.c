/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one write(2) a line, so that lines of several threads never mix. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

#define WINDOW_NS    (10 * NS_PER_SEC)
#define WINDOW_LINES 20
#define TEXT_MAX     2048

static bool journald;                         /* constant after log_init */
static enum log_level least = LOG_LEVEL_INFO; /* constant after log_set_level */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	journald = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		   fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum log_level level)
{
	least = level;
}

void log_escape(char *ret, size_t size, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0;

	if (size == 0)
		return;
	while (*p) {
		size_t length = utf8_printable(p);

		if (used + (length ? length : 4) >= size)
			break;
		if (length) {
			memcpy(ret + used, p, length);
			used += length;
			p += length;
		} else {
			snprintf(ret + used, 5, "\\x%02x", *p++);
			used += 4;
		}
	}
	ret[used] = '\0';
}

/* Whether the site may write now; sets the number of lines it left out before. */
static bool admit(struct log_site *site, unsigned int *ret_left_out)
{
	uint64_t now = now_ns();
	bool admitted = true;

	*ret_left_out = 0;
	pthread_mutex_lock(&lock);
	if (site->window_ns == 0 || now - site->window_ns >= WINDOW_NS) {
		*ret_left_out = site->left_out;
		*site = (struct log_site){ .window_ns = now };
	}
	if (site->written < WINDOW_LINES) {
		site->written++;
	} else {
		site->left_out++;
		admitted = false;
	}
	pthread_mutex_unlock(&lock);
	return admitted;
}

static void put_line(enum log_level level, const char *text)
{
	char line[TEXT_MAX + 64];
	int n;

	if (journald) {
		n = snprintf(line, sizeof(line), "<%d>%s\n", (int)level, text);
	} else {
		const char *word = level == LOG_LEVEL_ERROR     ? "error: "
				   : level == LOG_LEVEL_WARNING ? "warning: "
								: "";
		struct timespec ts;
		struct tm tm;
		char stamp[32];

		clock_gettime(CLOCK_REALTIME, &ts);
		localtime_r(&ts.tv_sec, &tm);
		strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
		n = snprintf(line, sizeof(line), "%s.%03ld feederd: %s%s\n", stamp,
			ts.tv_nsec / 1000000, word, text);
	}
	if (n > (int)sizeof(line) - 1) {
		n = (int)sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* A full or closed stderr must not hold the daemon up: the line is lost. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
{
	char raw[TEXT_MAX], text[TEXT_MAX];
	unsigned int left_out;
	va_list ap;

	if (level > least || !admit(site, &left_out))
		return;
	if (left_out > 0) {
		snprintf(text, sizeof(text), "(%u lines like the next were left out)", left_out);
		put_line(level, text);
	}
	va_start(ap, format);
	vsnprintf(raw, sizeof(raw), format, ap);
	va_end(ap);
	log_escape(text, sizeof(text), raw);
	put_line(level, text);
}
