/* SPDX-License-Identifier: Apache-2.0 */
/* The background executor: a queue under a lock, an eventfd back to the loop. */
#include "base/background.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/thread.h"

struct background {
	/* constant after start */
	pthread_t *threads;
	unsigned int thread_count;

	/* owned by the loop's thread */
	struct watch watch;

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list queue;
	struct list finished;
	bool ending;
};

static void *run_jobs(void *arg)
{
	struct background *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		struct list *l = list_pop(&b->queue);

		if (l) {
			struct background_job *job = CONTAINER_OF(l, struct background_job, link);
			uint64_t one = 1;

			pthread_mutex_unlock(&b->lock);
			job->run(job);
			pthread_mutex_lock(&b->lock);
			list_append(&b->finished, &job->link);
			/* Cannot fail: the counter is far from full and the descriptor ours. */
			if (write(b->watch.fd, &one, sizeof(one)) < 0)
				abort();
		} else if (b->ending) {
			break;
		} else {
			pthread_cond_wait(&b->work, &b->lock);
		}
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static void finish_jobs(struct background *b)
{
	struct list finished;

	list_init(&finished);
	pthread_mutex_lock(&b->lock);
	list_splice(&finished, &b->finished);
	pthread_mutex_unlock(&b->lock);
	for (struct list *l = list_pop(&finished); l; l = list_pop(&finished)) {
		struct background_job *job = CONTAINER_OF(l, struct background_job, link);

		job->done(job);
	}
}

static void ready(struct watch *watch, uint32_t events)
{
	struct background *b = CONTAINER_OF(watch, struct background, watch);
	uint64_t count;

	(void)events;
	if (read(watch->fd, &count, sizeof(count)) > 0)
		finish_jobs(b);
}

int background_new(
	struct background **ret, struct loop *loop, const char *name, unsigned int threads)
{
	struct background *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->work, NULL);
	list_init(&b->queue);
	list_init(&b->finished);
	b->watch.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->threads = calloc(threads, sizeof(*b->threads));
	r = b->watch.fd < 0 ? -errno : !b->threads ? -ENOMEM : 0;
	if (r == 0)
		r = loop_watch(loop, &b->watch, b->watch.fd, EPOLLIN, ready);
	for (unsigned int i = 0; r == 0 && i < threads; i++) {
		char label[16];

		snprintf(label, sizeof(label), "%.11s-%u", name, i % 1000);
		r = thread_start(&b->threads[i], label, run_jobs, b);
		if (r == 0)
			b->thread_count++;
	}
	if (r < 0) {
		background_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

void background_submit(struct background *b, struct background_job *job)
{
	pthread_mutex_lock(&b->lock);
	list_append(&b->queue, &job->link);
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
}

void background_free(struct background *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->ending = true;
	pthread_cond_broadcast(&b->work);
	pthread_mutex_unlock(&b->lock);
	for (unsigned int i = 0; i < b->thread_count; i++)
		pthread_join(b->threads[i], NULL);
	finish_jobs(b);
	/* What `done` submitted came too late for the threads. */
	for (struct list *l = list_pop(&b->queue); l; l = list_pop(&b->queue)) {
		struct background_job *job = CONTAINER_OF(l, struct background_job, link);

		job->run(job);
		job->done(job);
	}
	loop_unwatch(&b->watch);
	fd_close(b->watch.fd);
	pthread_cond_destroy(&b->work);
	pthread_mutex_destroy(&b->lock);
	free(b->threads);
	free(b);
}
