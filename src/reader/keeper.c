/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: answers what passes its deadline, whatever the reader threads are stuck in, and
 * hands back what was cancelled before a thread took it up.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "reader/backend.h"

#define LOOK_AGAIN_NS (20 * NS_PER_MS) /* while an overdue read is inside open_outside */

void reader_answer(
	struct reader *r, struct read_request *req, int status, int error, const char *text)
{
	fault_set(&req->fault, status, error, "%s", text);
	req->operation = NULL;
	list_append(&r->answers, &req->link);
	pthread_cond_signal(&r->keeper_wakeup);
}

static void answer_timeout(struct reader *r, struct read_request *req, const char *where)
{
	char text[FAULT_TEXT_MAX];

	snprintf(text, sizeof(text), "%s for %llu ms", where,
		(unsigned long long)(r->config.deadline_ns / NS_PER_MS));
	req->bytes = NULL;
	r->stats.timeouts++;
	reader_answer(r, req, FEEDER_STATUS_READ_TIMEOUT, ETIMEDOUT, text);
}

/* Takes the request away from an operation that goes on without it. */
static void detach(struct reader *r, struct operation *op)
{
	struct read_request *req = op->request;

	req->started_ns = op->started_ns;
	op->request = NULL;
	list_remove(&op->live);
	op->thread->withdrawals = true;
	thread_wake(op->thread);
	answer_timeout(r, req, "not read");
}

/* Moves what is overdue to the answers; returns when to look again, UINT64_MAX: never. */
static uint64_t expire(struct reader *r, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	LIST_FOR_EACH_SAFE (pos, tmp, &r->live) {
		struct operation *op = CONTAINER_OF(pos, struct operation, live);

		if (op->deadline_ns > now) {
			next = op->deadline_ns;
			break;
		}
		if (op->outside && !r->stopping)
			next = now + LOOK_AGAIN_NS;
		else
			detach(r, op);
	}
	LIST_FOR_EACH_SAFE (pos, tmp, &r->queue) {
		struct read_request *req = CONTAINER_OF(pos, struct read_request, link);
		struct bytes *bytes = req->bytes;

		if (req->deadline_ns > now)
			return req->deadline_ns < next ? req->deadline_ns : next;
		list_remove(&req->link);
		answer_timeout(r, req, "waited");
		if (r->config.give)
			bytes_give(r->config.give, bytes);
	}
	return next;
}

/* Hands the answers back; the lock is dropped meanwhile. */
static void hand_back(struct reader *r)
{
	struct list *node;

	while ((node = list_pop(&r->answers))) {
		struct read_request *req = CONTAINER_OF(node, struct read_request, link);

		r->stats.completed++;
		req->done_ns = now_ns();
		pthread_mutex_unlock(&r->lock);
		req->done(req);
		pthread_mutex_lock(&r->lock);
		r->pending--;
		if (r->stopping)
			pthread_cond_broadcast(&r->changed);
	}
}

void *reader_keeper_main(void *arg)
{
	struct reader *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		uint64_t next = expire(r, now_ns());

		if (!list_empty(&r->answers)) {
			hand_back(r);
			continue;
		}
		if (r->ending)
			break;
		r->keeper_idle = next == UINT64_MAX;
		reader_cond_wait(&r->keeper_wakeup, &r->lock, next);
		r->keeper_idle = false;
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}
