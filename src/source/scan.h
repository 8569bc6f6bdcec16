/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scan of a dataset: what it works on, how it reports and how it spreads over threads.
 *
 * Tasks (a class, a part of a list) are claimed in order by a few threads; each fills something
 * of its own, and the results are put together in task order, so they do not depend on the
 * threads. Of several errors the one of the lowest task is reported: all tasks below it were
 * claimed before it and have ended.
 */
#ifndef SOURCE_SCAN_H
#define SOURCE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "source/source.h"

#define SCAN_THREADS  8
#define SENTENCE_MAX  1024
#define SCAN_MARGIN_S 2 /* coarsest time stamps and clock differences that are believed */

struct crew;

struct scan {
	/* constant after start */
	int root;            /* O_PATH: sample paths are relative to it */
	int file;            /* O_PATH of a list file, or -1 */
	const char *display; /* of the dataset */
	const char *format;
	const struct dataset_options *options;
	int64_t recent_ns; /* CLOCK_REALTIME from which a time stamp is recent */

	/* the calling thread's */
	char *text; /* the sentence of an error */
	size_t size;
	char warning[SENTENCE_MAX]; /* kept in the index; "" = none */

	/* guarded by the crew's lock while one works, else the calling thread's */
	struct crew *crew;
	uint64_t files;
	uint64_t directories;
};

/* Sets the sentence and returns error, so that callers can `return sentence_set(…)`. */
int sentence_set(int error, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

void scan_init(struct scan *s);

/*
 * One task: 0, or what crew_run shall return (a negative errno with a sentence in text, or a
 * positive case of the caller).
 */
typedef int (*crew_task)(void *context, size_t task, char *text, size_t size);

/* Runs tasks 0..count-1; calls options->progress on the calling thread meanwhile. */
int crew_run(struct scan *s, size_t count, crew_task task, void *context);

/*
 * Counts from inside a task, in batches; true when the task shall end with -ECANCELED.
 */
bool scan_count(struct scan *s, uint64_t files, uint64_t directories);

/* Calls options->progress on the calling thread; true = end with -ECANCELED. */
bool scan_canceled(struct scan *s);
int scan_set_canceled(struct scan *s); /* sets the sentence, returns -ECANCELED */

static inline int64_t statx_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000 + t->tv_nsec;
}

#endif
