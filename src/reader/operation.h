/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One read on its way: open, check, read on until whole, close. The steps are the same for both
 * back ends, which only differ in who makes the two calls that may wait (openat2 and read):
 * operation_step() takes the result of the call that the stage names and moves to the next stage.
 *
 * An operation holds copies of all that the kernel may look at, so its request can be answered
 * and freed while the kernel still works for it; the operation and its buffer then stay.
 */
#ifndef READER_OPERATION_H
#define READER_OPERATION_H

#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/reader.h"

struct reader_thread;

enum operation_stage {
	OPERATION_OPEN, /* call openat2 */
	OPERATION_READ, /* call read */
	OPERATION_WAIT, /* until due_ns, then go on with `resume` */
	OPERATION_DONE, /* operation_finish */
};

struct operation {
	/* constant after start */
	struct reader_thread *thread;
	unsigned int slot; /* its index in the thread's operations */

	/* guarded by the reader's lock */
	struct list live; /* reader->live while a request is attached, else thread->free */
	struct read_request *request; /* NULL: free, or answered already */
	bool cancelled;
	bool outside; /* open_outside runs: the request must not be answered */

	/* set when a request is taken up, constant until it is finished */
	uint64_t deadline_ns;
	uint64_t started_ns;
	const struct read_tree *tree; /* not to be followed once the request is answered */
	struct bytes *bytes;
	uint64_t offset;
	uint64_t length;
	uint64_t file_size;
	int64_t mtime_ns;
	uint64_t fault_key; /* faults only */
	int dirfd;
	bool self; /* the path was "": dirfd is the file */
	struct open_how how;

	/* owned by the thread */
	enum operation_stage stage;
	enum operation_stage resume;
	struct list ready; /* in the thread's delayed list, or in the back end's hands */
	uint64_t due_ns;
	uint64_t opened_ns;
	int fd;
	uint64_t got;           /* bytes read so far */
	unsigned int steps;     /* calls made */
	unsigned int spins;     /* calls repeated at once since the last delay */
	unsigned int retries;   /* calls repeated after a delay */
	unsigned int reopens;   /* of these, after ESTALE */
	unsigned int shortened; /* reads that had to be continued */
	struct fault fault;

	/* owned by the thread: the io_uring back end's */
	uint64_t generation; /* of the submission; counts on for the life of the ring */
	bool in_kernel;
	bool cancel_sent;
	bool blocking; /* read refused to wait (EAGAIN): let an io-wq worker do it */
	bool plain;    /* the ring refused the operation: make the calls ourselves */

	/* owned by the thread: faults only */
	bool stuck; /* its call never completes until faults->never_fd is readable */
	bool was_stuck;
	bool held; /* a result is kept back until due_ns */
	ssize_t held_result;

	char path[PATH_MAX];
};

/* Takes the request up: copies it. The reader's lock is held. */
void operation_begin(struct operation *op, struct read_request *req, uint64_t now);

/* How many bytes the next read asks for, and where it puts them. */
size_t operation_want(const struct operation *op);
void *operation_target(const struct operation *op);

/* Makes the call of the stage (openat2 or read) on this thread: its result or -errno. */
ssize_t operation_call(struct operation *op);

/* The call of the stage has ended with result: sets the next stage. */
void operation_step(struct operation *op, ssize_t result);

/* Stage DONE: closes the file and hands the request back. op is free afterwards. */
void operation_finish(struct operation *op);

#endif
