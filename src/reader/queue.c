/* SPDX-License-Identifier: Apache-2.0 */
/* The queue that all reader threads share, and how a read ends. */
#include <errno.h>

#include "base/clock.h"
#include "reader/backend.h"

void thread_wake(struct reader_thread *t)
{
	if (!t->sleeping || t->woken)
		return;
	t->woken = true;
	t->ops->wake(t);
}

/*
 * The thread to wake for a new request: the one with the fewest reads among those that sleep and
 * have room; NULL: none. Lock held; the caller wakes it after it has dropped the lock, into which
 * the thread would run.
 */
static struct reader_thread *choose(struct reader *r)
{
	struct reader_thread *best = NULL;

	for (unsigned int i = 0; i < r->thread_count; i++) {
		struct reader_thread *t = r->threads[i];

		if (t->woken && t->ops == &reader_ops_pread)
			return NULL;
		if (!t->sleeping || t->woken || list_empty(&t->free))
			continue;
		if (!best || t->busy < best->busy)
			best = t;
	}
	if (best)
		best->woken = true;
	return best;
}

void reader_unlock(struct reader *r)
{
	struct reader_thread *wake = list_empty(&r->queue) ? NULL : choose(r);

	pthread_mutex_unlock(&r->lock);
	if (wake)
		wake->ops->wake(wake);
}

void reader_submit(struct reader *r, struct read_request *req)
{
	uint64_t now = now_ns();

	req->started_ns = 0;
	req->opened_ns = 0;
	req->done_ns = 0;
	req->deadline_ns = now + r->config.deadline_ns;
	req->operation = NULL;
	list_init(&req->link);

	pthread_mutex_lock(&r->lock);
	r->stats.submitted++;
	r->pending++;
	if (r->stopping) {
		reader_answer(r, req, FEEDER_STATUS_READ_ERROR, ECANCELED, "cancelled");
	} else {
		list_append(&r->queue, &req->link);
		if (r->keeper_idle)
			pthread_cond_signal(&r->keeper_wakeup);
	}
	reader_unlock(r);
}

void reader_cancel(struct reader *r, const struct read_tree *tree)
{
	pthread_mutex_lock(&r->lock);
	LIST_FOR_EACH_SAFE (pos, tmp, &r->queue) {
		struct read_request *req = CONTAINER_OF(pos, struct read_request, link);

		if (tree && req->tree != tree)
			continue;
		list_remove(&req->link);
		req->bytes->length = 0;
		reader_answer(r, req, FEEDER_STATUS_READ_ERROR, ECANCELED, "cancelled");
	}
	LIST_FOR_EACH (pos, &r->live) {
		struct operation *op = CONTAINER_OF(pos, struct operation, live);

		if (tree && op->tree != tree)
			continue;
		op->cancelled = true;
		op->thread->withdrawals = true;
		thread_wake(op->thread);
	}
	pthread_mutex_unlock(&r->lock);
}

struct operation *thread_take(struct reader_thread *t)
{
	struct reader *r = t->reader;
	struct read_request *req;
	struct operation *op;
	struct list *node;

	if (list_empty(&t->free) || r->abandoned)
		return NULL;
	node = list_pop(&r->queue);
	if (!node)
		return NULL;
	req = CONTAINER_OF(node, struct read_request, link);
	op = CONTAINER_OF(list_pop(&t->free), struct operation, live);
	req->operation = op;
	operation_begin(op, req, now_ns());
	list_append(&r->live, &op->live);
	t->busy++;
	r->busy++;
	return op;
}

bool thread_may_end(const struct reader_thread *t)
{
	return t->reader->abandoned || (t->reader->stopping && t->busy == 0);
}

/* Copies the outcome into the request. Lock held. */
static void fill(struct read_request *req, const struct operation *op)
{
	if (op->cancelled)
		fault_set(&req->fault, FEEDER_STATUS_READ_ERROR, ECANCELED, "cancelled");
	else
		req->fault = op->fault;
	req->started_ns = op->started_ns;
	req->opened_ns = op->opened_ns;
	req->done_ns = now_ns();
	req->bytes->length = req->fault.status == FEEDER_STATUS_OK ? op->length : 0;
	req->operation = NULL;
}

void reader_finish(struct operation *op)
{
	struct reader_thread *t = op->thread;
	struct reader *r = t->reader;
	struct bytes *late = NULL;
	struct read_request *req;

	pthread_mutex_lock(&r->lock);
	req = op->request;
	if (req) {
		fill(req, op);
		r->stats.completed++;
		r->stats.bytes += req->bytes->length;
		r->pending--;
		list_remove(&op->live);
	} else {
		r->stats.late++;
		late = op->bytes;
	}
	r->stats.short_reads += op->shortened;
	r->stats.retries += op->retries;
	/* After reader_free the pool may be gone: then the operation keeps the buffer for good. */
	if (late && r->config.give && !r->abandoned)
		bytes_give(r->config.give, late);
	op->request = NULL;
	list_prepend(&t->free, &op->live);
	t->busy--;
	r->busy--;
	if (r->stopping)
		pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (req)
		req->done(req);
}

void thread_delay(struct reader_thread *t, struct operation *op)
{
	list_append(&t->delayed, &op->ready);
}

struct operation *thread_due(struct reader_thread *t, uint64_t now)
{
	LIST_FOR_EACH (pos, &t->delayed) {
		struct operation *op = CONTAINER_OF(pos, struct operation, ready);
		bool withdrawn = !op->request || op->cancelled;

		if (!withdrawn && op->due_ns > now)
			continue;
		list_remove(&op->ready);
		if (!op->held)
			op->stage = withdrawn ? OPERATION_DONE : op->resume;
		return op;
	}
	return NULL;
}

uint64_t thread_next_due(const struct reader_thread *t)
{
	uint64_t next = UINT64_MAX;

	LIST_FOR_EACH (pos, &t->delayed) {
		const struct operation *op = CONTAINER_OF(pos, struct operation, ready);

		if (op->due_ns < next)
			next = op->due_ns;
	}
	return next;
}
