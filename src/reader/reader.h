/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: extents → bytes.
 *
 * Two back ends behind one ops table with the same results: io_uring (one long-lived ring per
 * reader thread) and pread threads. A read opens the file beneath its tree's directory
 * (openat2 RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, O_NONBLOCK), checks that it is a regular file
 * and still the one that was indexed, reads the extent whole (short reads go on, EINTR and EAGAIN
 * are tried again), zeroes the BYTES_TAIL and calls done.
 *
 * A read past its deadline is answered FEEDER_STATUS_READ_TIMEOUT at once; its buffer stays with
 * the reader until the kernel gives it back. Files are never mapped.
 */
#ifndef READER_READER_H
#define READER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/fault.h"
#include "base/list.h"

/*
 * Where paths are opened. open_outside is asked when a path meets a link that leaves the
 * directory (EXDEV): it returns an open descriptor for reading, or -EXDEV when the link ends
 * outside every root that the requester may read, or another negative errno. It may be NULL
 * (links that leave are refused). Called on reader threads, concurrently, with the reader's own
 * copy of the path. While it runs the request is not answered, also past its deadline, so a tree
 * may be freed as soon as no request of it is unanswered (but see reader_free).
 */
struct read_tree {
	int dirfd; /* O_PATH or O_RDONLY directory */
	int (*open_outside)(const struct read_tree *tree, const char *path);
	void *context;
};

struct read_request {
	/* set by the submitter, constant until done */
	const struct read_tree *tree;
	const char *path; /* relative, bytes, no limit but PATH_MAX; "" = the tree's dirfd itself */
	uint64_t offset;
	uint64_t length;     /* > 0 */
	uint64_t file_size;  /* expected; with mtime_ns checked after open: FEEDER_STATUS_CHANGED */
	int64_t mtime_ns;    /* expected; INT64_MIN = neither is checked */
	struct bytes *bytes; /* capacity ≥ length; the reader owns it until done */
	void (*done)(struct read_request *req); /* on a reader thread; must not block; may submit */
	void *context;

	/* set by the reader before done */
	struct fault fault;  /* .status 0: bytes hold the extent */
	uint64_t started_ns; /* taken up by a reader thread */
	uint64_t opened_ns;
	uint64_t done_ns;
	/* when status is READ_TIMEOUT, bytes is NULL: the reader gives it to `give` later */

	/* the reader's */
	uint64_t deadline_ns;
	struct list link;
	void *operation;
};

enum reader_backend { READER_AUTO, READER_URING, READER_PREAD };

struct reader_config {
	enum reader_backend backend;
	unsigned int threads; /* 0: 1 for io_uring (at most 16), 8 for pread (at most 64) */
	unsigned int depth;   /* reads in flight per io_uring thread; 0: 64; at most 1024 */
	uint64_t deadline_ns; /* from submission; 0: 30 s */
	unsigned int
		retries; /* of EIO, ESTALE, ENFILE, EMFILE, ETIMEDOUT; with a delay; default 3 */
	struct bytes_pool *give;            /* where late buffers go back; NULL: they are lost */
	const struct reader_faults *faults; /* tests only: see reader/faults.h; NULL */
};

struct reader_stats {
	uint64_t submitted;
	uint64_t completed;
	uint64_t bytes;
	uint64_t short_reads; /* completions that had to be continued */
	uint64_t retries;
	uint64_t timeouts;
	uint64_t late;          /* completions after their deadline */
	uint64_t overflow;      /* completions lost by the kernel: stays 0 */
	uint64_t strays;        /* completions that matched no read: ignored */
	uint64_t refused_rings; /* threads that read with pread because their ring was refused */
	uint64_t cpu_ns;        /* of the reader threads, without the kernel's io-wq workers */
	uint64_t in_flight;     /* submitted and not yet answered */
};

struct reader;

void reader_config_init(struct reader_config *config);
/*
 * Starts the threads. With READER_AUTO io_uring is probed by really reading through it; what
 * refuses (EPERM, ENOSYS, ENOMEM, a missing opcode) leads to pread, with the cause in text
 * (empty if none): the whole reader if its first ring is refused, else the threads whose ring is.
 * With READER_URING a refusal is an error, with the cause in text.
 */
int reader_new(struct reader **ret, const struct reader_config *config, char *text, size_t size);
/* Takes the request over; never blocks on I/O. Any thread. Every request is done exactly once. */
void reader_submit(struct reader *r, struct read_request *req);
/*
 * Cancels what is queued or in flight for tree (NULL: all): answered with error ECANCELED and
 * status READ_ERROR, on reader threads, soon; what the kernel does not let go is answered
 * READ_TIMEOUT at its deadline as ever.
 */
void reader_cancel(struct reader *r, const struct read_tree *tree);
/*
 * Cancels all, drains (bounded by the deadline for what the kernel keeps), ends the threads. Every
 * request has been answered when it returns. What the kernel still keeps then is given up with
 * its buffer: neither is ever freed, and bytes_pool_out stays above 0. NULL is allowed; not on a
 * reader thread.
 */
void reader_free(struct reader *r);
const char *reader_backend_name(const struct reader *r); /* "io_uring" or "pread" */
void reader_stats(struct reader *r, struct reader_stats *ret);

#endif
