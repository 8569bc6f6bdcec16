/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's log: sentences on stderr, with <N> priorities where stderr is journald's stream
 * (JOURNAL_STREAM names its device and inode), else with a timestamp. control and daemon log,
 * data rooms return. Each place in the source has its own budget, so that a fault which repeats
 * a thousand times a second costs a few lines and hides nothing else. Bytes of names that a
 * terminal would obey are escaped.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

/* As in syslog. */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6 };

/* The budget of one place in the source. */
struct log_site {
	uint64_t window_ns;    /* guarded by the log's lock */
	unsigned int written;  /* in this window; guarded by the log's lock */
	unsigned int left_out; /* guarded by the log's lock */
};

/* Finds out where stderr goes. Before threads start. */
void log_init(void);
/* Leaves out what is less urgent than level. Before threads start. */
void log_set_level(enum log_level level);

/* Any thread. The sentence has no line end. */
void log_write(struct log_site *site, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Copies text with every byte below space, DEL, and what is no UTF-8 as \xNN; cut at whole
 * characters where it does not fit.
 */
void log_escape(char *ret, size_t size, const char *text);

#define LOG_AT(level, ...)                                     \
	do {                                                   \
		static struct log_site log_site_here;          \
		log_write(&log_site_here, level, __VA_ARGS__); \
	} while (0)
#define log_error(...)   LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) LOG_AT(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
