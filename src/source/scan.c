/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a scan. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "source/scan.h"

#define PROGRESS_NS (100 * NS_PER_MS)

struct crew {
	/* constant after start */
	struct scan *scan;
	crew_task task;
	void *context;
	size_t count;

	pthread_mutex_t lock;
	/* guarded by lock */
	pthread_cond_t ended; /* working fell to 0 */
	size_t next;
	unsigned int working;
	bool canceled;
	int result; /* of the lowest task that did not return 0 */
	size_t result_task;
	char text[SENTENCE_MAX];
};

int sentence_set(int error, char *text, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, size, format, args);
	va_end(args);
	return error;
}

void scan_init(struct scan *s)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	s->recent_ns = (int64_t)(now - SCAN_MARGIN_S * NS_PER_SEC);
	s->files = 0;
	s->directories = 0;
	s->warning[0] = '\0';
	s->crew = NULL;
}

bool scan_canceled(struct scan *s)
{
	return s->options->progress &&
	       s->options->progress(s->options->context, s->files, s->directories);
}

int scan_set_canceled(struct scan *s)
{
	return sentence_set(-ECANCELED, s->text, s->size,
		"%s: the scan was ended before it was done", s->display);
}

bool scan_count(struct scan *s, uint64_t files, uint64_t directories)
{
	struct crew *c = s->crew;
	bool canceled = false;

	if (c)
		pthread_mutex_lock(&c->lock);
	s->files += files;
	s->directories += directories;
	if (c) {
		canceled = c->canceled;
		pthread_mutex_unlock(&c->lock);
	}
	return canceled;
}

/* Tasks until none is left, one failed, or all is canceled. Called and returns unlocked. */
static void crew_work(struct crew *c)
{
	char text[SENTENCE_MAX];

	pthread_mutex_lock(&c->lock);
	while (c->next < c->count && !c->result && !c->canceled) {
		size_t task = c->next++;
		int r;

		pthread_mutex_unlock(&c->lock);
		text[0] = '\0';
		r = c->task(c->context, task, text, sizeof(text));
		pthread_mutex_lock(&c->lock);
		if (r != 0 && (!c->result || task < c->result_task)) {
			c->result = r;
			c->result_task = task;
			snprintf(c->text, sizeof(c->text), "%s", text);
		}
	}
	if (--c->working == 0)
		pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
}

static void *crew_thread(void *context)
{
	crew_work(context);
	return NULL;
}

static void deadline_after(struct timespec *ret, uint64_t ns)
{
	uint64_t at = now_ns() + ns;

	ret->tv_sec = (time_t)(at / NS_PER_SEC);
	ret->tv_nsec = (long)(at % NS_PER_SEC);
}

/* Waits for the threads; progress is called unlocked, with the counts of that moment. */
static void crew_wait(struct crew *c)
{
	const struct dataset_options *o = c->scan->options;
	struct timespec until;

	pthread_mutex_lock(&c->lock);
	deadline_after(&until, PROGRESS_NS);
	while (c->working) {
		uint64_t files, directories;

		if (pthread_cond_timedwait(&c->ended, &c->lock, &until) != ETIMEDOUT)
			continue;
		deadline_after(&until, PROGRESS_NS);
		if (!o->progress || c->canceled)
			continue;
		files = c->scan->files;
		directories = c->scan->directories;
		pthread_mutex_unlock(&c->lock);
		bool end = o->progress(o->context, files, directories);
		pthread_mutex_lock(&c->lock);
		c->canceled = end;
	}
	pthread_mutex_unlock(&c->lock);
}

/* The threads start with every signal blocked: those are the daemon's control thread's. */
static unsigned int crew_start(struct crew *c, pthread_t *threads, unsigned int wanted)
{
	unsigned int started = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < wanted) {
		pthread_mutex_lock(&c->lock);
		c->working++;
		pthread_mutex_unlock(&c->lock);
		if (pthread_create(&threads[started], NULL, crew_thread, c) != 0) {
			pthread_mutex_lock(&c->lock);
			c->working--;
			pthread_mutex_unlock(&c->lock);
			break;
		}
		started++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

int crew_run(struct scan *s, size_t count, crew_task task, void *context)
{
	struct crew crew = { .scan = s, .task = task, .context = context, .count = count };
	pthread_t threads[SCAN_THREADS];
	pthread_condattr_t monotonic;
	unsigned int started;

	pthread_mutex_init(&crew.lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&crew.ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	s->crew = &crew;
	started = crew_start(
		&crew, threads, count < SCAN_THREADS ? (unsigned int)count : SCAN_THREADS);
	if (started == 0 && count) { /* no thread to be had: here, without progress */
		crew.working = 1;
		crew_work(&crew);
	}
	crew_wait(&crew);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	s->crew = NULL;
	pthread_cond_destroy(&crew.ended);
	pthread_mutex_destroy(&crew.lock);
	if (crew.canceled)
		return scan_set_canceled(s);
	if (crew.result < 0)
		snprintf(s->text, s->size, "%s", crew.text);
	return crew.result;
}
