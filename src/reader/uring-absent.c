/* SPDX-License-Identifier: Apache-2.0 */
/* The io_uring back end of a build without liburing: it refuses, and pread takes over. */
#include <errno.h>
#include <stdio.h>

#include "reader/backend.h"

static int absent_open(struct reader_thread *t, char *text, size_t size)
{
	(void)t;
	snprintf(text, size, "this feeder was built without liburing");
	return -ENOSYS;
}

static void absent_nothing(struct reader_thread *t)
{
	(void)t;
}

const struct reader_ops reader_ops_uring = {
	.name = "io_uring",
	.threads = 1,
	.threads_max = 16,
	.depth = 64,
	.open = absent_open,
	.run = absent_nothing,
	.wake = absent_nothing,
	.close = absent_nothing,
};
