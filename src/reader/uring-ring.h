/* SPDX-License-Identifier: Apache-2.0 */
/* Making a ring that is known to work, and saying why there is none. */
#ifndef READER_URING_RING_H
#define READER_URING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>

struct reader_faults;

/*
 * Makes the reader's number-th ring (from 1) with room for `entries` submissions, on the thread
 * that will use it, and reads a few bytes through it. *ret_opens: it can open files. Negative
 * errno with the probable cause in text.
 */
int uring_ring_open(struct io_uring *ring, unsigned int entries, const struct reader_faults *faults,
	unsigned int number, bool *ret_opens, char *text, size_t size);

#endif
