/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names on their way out. Names of files, jobs and lanes are bytes, and may hold what a terminal
 * would obey, what JSON forbids, or what is no UTF-8.
 */
#ifndef STAT_TEXT_H
#define STAT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* A name of this many bytes fits, escaped, into TEXT_MAX(n). */
#define TEXT_MAX(n) ((n)*4 + 1)

/* Printable UTF-8 on one line: control bytes and what is no UTF-8 become \xNN. Returns ret. */
const char *text_clean(char *ret, size_t size, const char *name);
/* The same, in at most `columns` (≥ 4) columns of a terminal: the front gives way to "...". */
const char *text_fit(char *ret, size_t size, const char *name, unsigned int columns);
/* Columns of clean text, one a character. */
unsigned int text_columns(const char *text);

/* A JSON string with its quotes; a byte NN that is no part of UTF-8 becomes \u00NN. */
void text_json(FILE *out, const char *name);
/* A label value of OpenMetrics with its quotes, of the cleaned name. */
void text_label(FILE *out, const char *name);

/* The word of enum feeder_status ("truncated"), of enum control_bad ("mask"). */
const char *text_status(unsigned int status);
const char *text_bad(unsigned int policy);

#endif
