/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that no daemon made, for the tests of feeder-stat. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/stat/snapshot.h"
#include "tools/stat/view.h"

#define SAMPLE_SECOND 1000000000ull

/*
 * A daemon that has run for 100 s with 2 workers on lanes that were opened 50 s ago, each with
 * 100 batches published and 97 consumed of a ring of 4 slots.
 */
void sample_new(struct snapshot *ret, unsigned int lanes);
/* A copy, ns later; counters are the caller's to raise. */
void sample_later(struct snapshot *ret, const struct snapshot *s, uint64_t ns);
/* Appends a bad sample of a lane (by index). */
void sample_add_case(struct snapshot *s, unsigned int lane, uint64_t id, int status,
	const char *path, const char *text);
/* The segment as a daemon would send it: a memfd, the caller's to close. */
int sample_segment(const struct snapshot *s);

/* Two daemons, odd names, bad samples: what printers must get right. Free with views_free. */
void sample_views(struct views *ret);

#endif
