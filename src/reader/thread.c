/* SPDX-License-Identifier: Apache-2.0 */
/* A reader thread: starts with its back end, or with pread where its ring is refused. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "reader/backend.h"

void reader_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void reader_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t due_ns)
{
	struct timespec ts = { (time_t)(due_ns / NS_PER_SEC), (long)(due_ns % NS_PER_SEC) };

	if (due_ns == UINT64_MAX)
		pthread_cond_wait(cond, lock);
	else
		pthread_cond_timedwait(cond, lock, &ts);
}

int reader_pthread_create(pthread_t *ret, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct start {
	struct reader_thread *thread;
	char *text;
	size_t size;
};

static void *thread_main(void *arg)
{
	const struct start *start = arg;
	struct reader_thread *t = start->thread;
	struct reader *r = t->reader;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "feeder-read-%u", t->number % 1000);
	pthread_setname_np(pthread_self(), name);
	rc = t->ops->open(t, start->text, start->size);

	pthread_mutex_lock(&r->lock);
	t->refused = rc;
	if (rc < 0 && r->config.backend == READER_AUTO) {
		t->ops = &reader_ops_pread;
		rc = 0;
	}
	t->started = true; /* start is gone from here on */
	r->running++;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);

	if (rc == 0)
		t->ops->run(t);
	pthread_mutex_lock(&r->lock);
	t->ended = true;
	t->sleeping = false;
	r->running--;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static struct reader_thread *thread_alloc(
	struct reader *r, const struct reader_ops *ops, unsigned int depth)
{
	struct reader_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->operations = calloc(depth, sizeof(*t->operations));
	if (!t->operations) {
		free(t);
		return NULL;
	}
	t->reader = r;
	t->ops = ops;
	t->depth = depth;
	t->number = r->thread_count;
	reader_cond_init(&t->wakeup);
	list_init(&t->free);
	list_init(&t->delayed);
	for (unsigned int i = 0; i < depth; i++) {
		struct operation *op = &t->operations[i];

		op->thread = t;
		op->slot = i;
		op->fd = -1;
		list_init(&op->ready);
		list_append(&t->free, &op->live);
	}
	return t;
}

int reader_thread_start(
	struct reader *r, const struct reader_ops *ops, unsigned int depth, char *text, size_t size)
{
	struct reader_thread *t = thread_alloc(r, ops, depth);
	struct start start = { t, text, size };
	int rc;

	if (!t)
		return -ENOMEM;
	rc = reader_pthread_create(&t->pthread, thread_main, &start);
	if (rc != 0) {
		pthread_cond_destroy(&t->wakeup);
		free(t->operations);
		free(t);
		return -rc;
	}
	pthread_mutex_lock(&r->lock);
	r->threads[r->thread_count++] = t;
	while (!t->started)
		reader_cond_wait(&r->changed, &r->lock, UINT64_MAX);
	rc = t->refused < 0 && r->config.backend != READER_AUTO ? t->refused : 0;
	pthread_mutex_unlock(&r->lock);
	return rc;
}
