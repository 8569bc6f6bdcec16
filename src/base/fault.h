/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample's failure: a status (include/feeder/status.h) and the reason in words.
 * Data rooms return the status (0 = FEEDER_STATUS_OK, else positive) and fill a fault; the
 * pipeline adds file, sample and stage. Text has no trailing full stop and no path.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include "feeder/status.h"

#define FAULT_TEXT_MAX 160

struct fault {
	int status;                /* enum feeder_status */
	int error;                 /* errno behind it, 0 where there is none */
	char text[FAULT_TEXT_MAX]; /* "ends after 4,096 of 93,120 bytes" */
};

/* Sets status, errno and text; returns the status, so that callers can `return fault_set(…)`. */
int fault_set(struct fault *f, int status, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The short word ("truncated") and the sentence of a status; unknown numbers give "unknown". */
const char *status_word(int status);
const char *status_sentence(int status);

#endif
