/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring back end: one ring per thread for the thread's life. An operation has at most one
 * submission in the kernel, and each submission its own user_data (generation, slot), so that a
 * completion can only be taken for the submission that it belongs to.
 *
 * The rings hold every submission that can be outstanding: one per operation, one cancellation
 * per operation and the poll of the wake-up eventfd. The completion queue is twice that.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "reader/backend.h"
#include "reader/faults.h"
#include "reader/uring-ring.h"

#define SLOT_BITS   16
#define SLOT_MASK   ((1u << SLOT_BITS) - 1)
#define DATA_WAKE   ((uint64_t)SLOT_MASK)
#define DATA_CANCEL ((uint64_t)SLOT_MASK - 1)
#define ECHOES_MAX  16
#define NAP_NS      NS_PER_MS /* after a refused submission with nothing to reap */

struct uring {
	/* constant after start */
	struct reader_thread *thread;
	const struct reader_faults *faults;
	int wake_fd;
	bool opens; /* IORING_OP_OPENAT2 is there */

	/* owned by the thread */
	struct io_uring ring;
	bool rearm;    /* the wake-up poll has to be submitted */
	bool finished; /* an operation became free since the queue was looked at */
	uint64_t strays;
	uint64_t submissions; /* faults only */
	unsigned int echo_count;
	struct {
		uint64_t data;
		int result;
	} echoes[ECHOES_MAX];
};

static void uring_close(struct reader_thread *t)
{
	struct uring *u = t->backend;

	if (!u)
		return;
	t->backend = NULL;
	io_uring_queue_exit(&u->ring);
	fd_close(u->wake_fd);
	free(u);
}

static int uring_open(struct reader_thread *t, char *text, size_t size)
{
	struct uring *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	u->thread = t;
	u->faults = t->reader->config.faults;
	u->rearm = true;
	u->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->wake_fd < 0) {
		rc = -errno;
		snprintf(text, size, "no eventfd to wake a reader (%s)", strerrorname_np(-rc));
		free(u);
		return rc;
	}
	rc = uring_ring_open(
		&u->ring, 2 * t->depth + 2, u->faults, t->number + 1, &u->opens, text, size);
	if (rc < 0) {
		fd_close(u->wake_fd);
		free(u);
		return rc;
	}
	t->backend = u;
	return 0;
}

static void uring_wake(struct reader_thread *t)
{
	struct uring *u = t->backend;
	uint64_t one = 1;

	/* Fails only when the counter is full, and then the thread wakes anyway. */
	(void)!write(u->wake_fd, &one, sizeof(one));
}

static void nap(struct uring *u)
{
	io_uring_get_events(&u->ring);
	if (io_uring_cq_ready(&u->ring) == 0)
		faults_sleep(NAP_NS);
}

/* Never runs out by construction; if it did, submitting makes room. */
static struct io_uring_sqe *take_sqe(struct uring *u)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&u->ring))) {
		if (io_uring_submit(&u->ring) < 0)
			nap(u);
	}
	return sqe;
}

/* Makes the call of the stage: true and its result if that is known already. */
static bool issue(struct uring *u, struct operation *op, ssize_t *ret)
{
	struct io_uring_sqe *sqe;

	if (u->faults) {
		*ret = faults_error(u->faults, op);
		if (*ret != 0)
			return true;
		op->stuck = faults_stick(u->faults, op);
	}
	if (!op->stuck && (op->plain || (op->stage == OPERATION_OPEN && !u->opens))) {
		*ret = operation_call(op);
		return true;
	}
	sqe = take_sqe(u);
	if (op->stuck) {
		io_uring_prep_poll_add(sqe, u->faults->never_fd, POLLIN);
	} else if (op->stage == OPERATION_OPEN) {
		io_uring_prep_openat2(sqe, op->dirfd, op->path, &op->how);
	} else {
		io_uring_prep_read(sqe, op->fd, operation_target(op),
			(unsigned int)operation_want(op), op->offset + op->got);
		if (op->blocking)
			sqe->flags |= IOSQE_ASYNC;
	}
	op->generation++;
	sqe->user_data = op->generation << SLOT_BITS | op->slot;
	op->in_kernel = true;
	return false;
}

/* Goes on until the operation is in the kernel, put aside or finished. */
static void advance(struct uring *u, struct operation *op)
{
	ssize_t result;

	for (;;) {
		if (op->stage == OPERATION_DONE) {
			u->finished = true;
			operation_finish(op);
			return;
		}
		if (op->stage == OPERATION_WAIT) {
			thread_delay(u->thread, op);
			return;
		}
		if (!issue(u, op, &result))
			return;
		operation_step(op, result);
	}
}

static void settle(struct uring *u, struct operation *op, ssize_t result)
{
	/* A file system that io_uring cannot read in this way may still do it for read. */
	if ((result == -EINVAL || result == -EOPNOTSUPP) && !op->plain)
		op->plain = true;
	else
		operation_step(op, result);
	advance(u, op);
}

/* Faults: true if the completion is kept back, or was that of a call that hung. */
static bool intercept(struct uring *u, struct operation *op, uint64_t data, int result)
{
	uint64_t delay;

	if (op->stuck) {
		op->stuck = false;
		if (result == -ECANCELED)
			return false;
		faults_late_write(op);
		advance(u, op);
		return true;
	}
	if (faults_echo(u->faults, op) && u->echo_count < ECHOES_MAX) {
		u->echoes[u->echo_count].data = data;
		u->echoes[u->echo_count++].result = result;
	}
	delay = faults_delay_ns(u->faults, op);
	if (delay == 0)
		return false;
	op->held = true;
	op->held_result = result;
	op->due_ns = now_ns() + delay;
	thread_delay(u->thread, op);
	return true;
}

static void complete(struct uring *u, uint64_t data, int result)
{
	uint64_t slot = data & SLOT_MASK, woken;
	struct operation *op;

	if (data == DATA_CANCEL)
		return;
	if (data == DATA_WAKE) {
		(void)!read(u->wake_fd, &woken, sizeof(woken));
		u->rearm = true;
		return;
	}
	op = slot < u->thread->depth ? &u->thread->operations[slot] : NULL;
	if (!op || !op->in_kernel || op->generation != data >> SLOT_BITS) {
		u->strays++;
		return;
	}
	op->in_kernel = false;
	if (u->faults && intercept(u, op, data, result))
		return;
	settle(u, op, result);
}

static void reap(struct uring *u)
{
	unsigned int echoes = u->echo_count;
	struct io_uring_cqe *cqe;

	u->echo_count = 0;
	for (unsigned int i = 0; i < echoes; i++)
		complete(u, u->echoes[i].data, u->echoes[i].result);
	while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
		uint64_t data = cqe->user_data;
		int result = cqe->res;

		/* Before the operation goes on, which may submit. */
		io_uring_cqe_seen(&u->ring, cqe);
		complete(u, data, result);
	}
}

/* Asks the kernel to let go of what nobody waits for any more. Lock held. */
static void cancel_withdrawn(struct uring *u)
{
	struct reader_thread *t = u->thread;

	t->withdrawals = false;
	for (unsigned int i = 0; i < t->depth; i++) {
		struct operation *op = &t->operations[i];
		struct io_uring_sqe *sqe;

		if (!op->in_kernel || op->cancel_sent)
			continue;
		if (op->stuck && !u->faults->never_yields)
			continue;
		if (op->request && !op->cancelled)
			continue;
		sqe = io_uring_get_sqe(&u->ring);
		if (!sqe)
			return;
		io_uring_prep_cancel64(sqe, op->generation << SLOT_BITS | op->slot, 0);
		sqe->user_data = DATA_CANCEL;
		op->cancel_sent = true;
	}
}

/* Collects what can be gone on with. False: the thread may end. */
static bool gather(struct uring *u, struct list *ready)
{
	struct reader_thread *t = u->thread;
	struct reader *r = t->reader;
	struct operation *op;

	pthread_mutex_lock(&r->lock);
	while ((op = thread_due(t, now_ns())))
		list_append(ready, &op->ready);
	while ((op = thread_take(t)))
		list_append(ready, &op->ready);
	if (t->withdrawals)
		cancel_withdrawn(u);
	t->sleeping = true;
	bool more = !thread_may_end(t);
	reader_unlock(r);
	u->finished = false;
	return more;
}

static void awake(struct uring *u)
{
	struct reader_thread *t = u->thread;

	pthread_mutex_lock(&t->reader->lock);
	t->sleeping = false;
	t->woken = false;
	t->overflow = *u->ring.cq.koverflow;
	t->reader->stats.strays += u->strays;
	pthread_mutex_unlock(&t->reader->lock);
	u->strays = 0;
}

static int enter(struct uring *u, bool wait)
{
	uint64_t due = thread_next_due(u->thread), now;
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;

	if (!wait)
		return io_uring_submit_and_get_events(&u->ring);
	if (due == UINT64_MAX)
		return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, NULL, NULL);
	now = now_ns();
	due = due > now ? due - now : 0;
	ts.tv_sec = (long long)(due / NS_PER_SEC);
	ts.tv_nsec = (long long)(due % NS_PER_SEC);
	return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL);
}

/* Faults: a submission that fails, or takes only the first half. */
static bool submit_faulty(struct uring *u, int *ret)
{
	const struct reader_faults *f = u->faults;
	struct io_uring_sq *sq = &u->ring.sq;
	unsigned int tail = sq->sqe_tail, count = tail - sq->sqe_head;
	uint64_t thread = u->thread->number;

	u->submissions++;
	if (faults_draw(f, f->submit, thread, u->submissions)) {
		*ret = -f->submit_error;
		return true;
	}
	if (count < 2 || !faults_draw(f, f->submit_part, thread, ~u->submissions))
		return false;
	sq->sqe_tail = sq->sqe_head + count / 2;
	*ret = io_uring_submit_and_get_events(&u->ring);
	sq->sqe_tail = tail;
	return true;
}

/*
 * Submits and waits for a completion. What the kernel did not take (EBUSY, EAGAIN, EINTR, a part)
 * stays in the queue and is submitted with the next call, after reaping.
 */
static void submit(struct uring *u, bool wait)
{
	int rc;

	if (u->rearm) {
		struct io_uring_sqe *sqe = take_sqe(u);

		io_uring_prep_poll_add(sqe, u->wake_fd, POLLIN);
		sqe->user_data = DATA_WAKE;
		u->rearm = false;
	}
	if (!u->faults || !submit_faulty(u, &rc))
		rc = enter(u, wait);
	if (rc < 0 && rc != -ETIME && rc != -EINTR)
		nap(u);
}

static void uring_run(struct reader_thread *t)
{
	struct uring *u = t->backend;
	struct list ready = LIST_INIT(ready);
	struct list *node;

	while (gather(u, &ready)) {
		while ((node = list_pop(&ready))) {
			struct operation *op = CONTAINER_OF(node, struct operation, ready);

			if (op->held) {
				op->held = false;
				settle(u, op, op->held_result);
			} else {
				advance(u, op);
			}
		}
		submit(u, !u->finished);
		awake(u);
		reap(u);
	}
}

const struct reader_ops reader_ops_uring = {
	.name = "io_uring",
	.threads = 1,
	.threads_max = 16,
	.depth = 64,
	.open = uring_open,
	.run = uring_run,
	.wake = uring_wake,
	.close = uring_close,
};
