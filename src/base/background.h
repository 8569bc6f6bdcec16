/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may take long (opening a dataset, reserving a ring) off the control thread: a few
 * threads run jobs, their completion comes back through the loop. A job is embedded in its
 * owner and belongs to the executor from background_submit until done is called.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include "base/list.h"
#include "base/loop.h"

struct background;

struct background_job {
	struct list link;
	void (*run)(struct background_job *job);  /* on an executor's thread */
	void (*done)(struct background_job *job); /* on the loop's thread; may free the job */
};

/* threads named name-0, name-1, …; 0, -ENOMEM, -EAGAIN, -EMFILE. */
int background_new(
	struct background **ret, struct loop *loop, const char *name, unsigned int threads);
/* First submitted, first started. */
void background_submit(struct background *b, struct background_job *job);
/*
 * Ends the threads when they have run all jobs submitted, and calls what `done` is outstanding,
 * on the calling (loop's) thread. Jobs end early by their owners' own flags.
 */
void background_free(struct background *b);

#endif
