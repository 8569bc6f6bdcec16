/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the reader: the queue that all threads share, the threads, and what a back end must do.
 *
 * A request waits in `queue` until a thread with a free operation takes it up; from then on the
 * operation is in `live`. Both lists are in the order of submission, and so of deadlines. The
 * keeper thread answers what passes its deadline; in-flight operations then go on without their
 * request, and end as late completions.
 */
#ifndef READER_BACKEND_H
#define READER_BACKEND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "reader/operation.h"
#include "reader/reader.h"

#define READER_THREADS_MAX 64

struct reader_ops {
	const char *name;
	unsigned int threads; /* default */
	unsigned int threads_max;
	unsigned int depth; /* operations per thread, default */
	/* On the thread itself. Negative errno with the cause in text. */
	int (*open)(struct reader_thread *t, char *text, size_t size);
	/* Reads until thread_may_end(). */
	void (*run)(struct reader_thread *t);
	/* Ends a wait of run, or keeps the next one from beginning. Any thread. */
	void (*wake)(struct reader_thread *t);
	/* On any thread, when all that might wake it have ended. */
	void (*close)(struct reader_thread *t);
};

extern const struct reader_ops reader_ops_uring;
extern const struct reader_ops reader_ops_pread;

struct reader_thread {
	/* constant after start */
	struct reader *reader;
	unsigned int number; /* from 0; its ring is the number+1st */
	pthread_t pthread;
	struct operation *operations;
	unsigned int depth;
	const struct reader_ops *ops; /* written by the thread before `started` */
	void *backend;
	pthread_cond_t wakeup; /* pread's; with the reader's lock */

	/* guarded by the reader's lock */
	bool started;
	bool ended;
	int refused;       /* negative errno: the ring was not to be had */
	bool sleeping;     /* in a wait that only wake ends */
	bool woken;        /* wake is being called */
	bool withdrawals;  /* an operation was cancelled or answered: look for it */
	unsigned int busy; /* operations not free */
	struct list free;
	uint64_t overflow;

	/* owned by the thread */
	struct list delayed; /* operations in stage WAIT, or held back by a fault */
	unsigned int open_files;
};

struct reader {
	/* constant after start */
	struct reader_config config;
	struct reader_thread *threads[READER_THREADS_MAX];
	unsigned int thread_count;
	unsigned int rings;
	pthread_t keeper;
	bool keeper_runs;

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t keeper_wakeup;
	pthread_cond_t changed; /* a thread started or ended; pending or busy fell to 0 */
	struct list queue;      /* requests that no thread has taken up */
	struct list live;       /* operations with a request */
	struct list answers;    /* requests that the keeper hands back */
	uint64_t pending;       /* requests not yet answered */
	uint64_t busy;          /* operations not free */
	uint64_t running;       /* threads not ended */
	bool stopping;          /* nothing new is taken */
	bool abandoned;         /* the kernel keeps operations: leave them */
	bool ending;            /* the threads are gone: the keeper ends */
	bool keeper_idle;       /* waits without a time */
	struct list kept;       /* in reader.c's list of readers that were given up */
	struct reader_stats stats;
};

/* thread.c */
/*
 * Starts the next thread and waits until its back end is open. With READER_AUTO a refused ring is
 * no error: thread->refused says why, and the thread reads with pread.
 */
int reader_thread_start(struct reader *r, const struct reader_ops *ops, unsigned int depth,
	char *text, size_t size);
int reader_pthread_create(pthread_t *ret, void *(*main)(void *), void *arg); /* no signals */
void reader_cond_init(pthread_cond_t *cond); /* on CLOCK_MONOTONIC */
/* Waits until signalled or until due_ns (UINT64_MAX: for ever). */
void reader_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t due_ns);

/* queue.c: what the back ends call. */
struct operation *thread_take(struct reader_thread *t); /* lock held; NULL: none, or no room */
/* Drops the lock, then wakes a thread if requests are left in the queue. */
void reader_unlock(struct reader *r);
bool thread_may_end(const struct reader_thread *t); /* lock held */
void thread_wake(struct reader_thread *t);          /* lock held */
void reader_finish(struct operation *op);
/* Puts an operation aside until its due_ns. */
void thread_delay(struct reader_thread *t, struct operation *op);
/* One that is due, cancelled or answered, taken from the delayed; NULL: none. Lock held. */
struct operation *thread_due(struct reader_thread *t, uint64_t now);
/* When the next of them is due; UINT64_MAX: none. */
uint64_t thread_next_due(const struct reader_thread *t);

/* keeper.c: deadlines. */
void *reader_keeper_main(void *arg);
/* Puts a request among the answers with a fault. Lock held; its lists have been left. */
void reader_answer(
	struct reader *r, struct read_request *req, int status, int error, const char *text);

#endif
