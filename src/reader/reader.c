/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending a reader, and its numbers. */
#include "reader/reader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "reader/backend.h"

#define DEADLINE_NS (30 * NS_PER_SEC)
#define DEPTH_MAX   1024u
#define RETRIES     3
#define GRACE_NS    (250 * NS_PER_MS) /* for the kernel to let go of what was answered */

/* What the kernel keeps for ever: reachable, so that leak checkers know it is on purpose. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list kept = LIST_INIT(kept); /* guarded by kept_lock */

void reader_config_init(struct reader_config *config)
{
	memset(config, 0, sizeof(*config));
	config->backend = READER_AUTO;
	config->deadline_ns = DEADLINE_NS;
	config->retries = RETRIES;
}

static unsigned int at_most(uint64_t value, uint64_t most)
{
	return (unsigned int)(value < most ? value : most);
}

/* Half of the descriptors that the process may have: the reader's own cap on open files. */
static uint64_t files_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT32_MAX;
	return limit.rlim_cur < 4 ? 1 : limit.rlim_cur / 2;
}

static int start_thread(struct reader *r, const struct reader_ops *ops, char *text, size_t size)
{
	unsigned int depth = ops->depth;
	int rc;

	if (ops == &reader_ops_uring) {
		depth = r->config.depth ? at_most(r->config.depth, DEPTH_MAX) : ops->depth;
		depth = at_most(depth, files_max());
	}
	rc = reader_thread_start(r, ops, depth, text, size);
	if (rc == 0)
		return 0;
	if (text[0] == '\0')
		snprintf(text, size, "no reader thread (%s)", strerrorname_np(-rc));
	return rc;
}

/* Starts the threads of one back end; *ret_refused is why its first ring was refused. */
static int start_threads(
	struct reader *r, const struct reader_ops *ops, int *ret_refused, char *text, size_t size)
{
	unsigned int wanted = r->config.threads ? r->config.threads : ops->threads;
	char cause[256] = "";
	int rc;

	wanted = at_most(wanted, ops->threads_max);
	wanted = at_most(wanted, files_max());
	while (r->thread_count < wanted) {
		struct reader_thread *t;

		cause[0] = '\0';
		rc = start_thread(r, ops, cause, sizeof(cause));
		if (rc < 0) {
			snprintf(text, size, "%s", cause);
			return rc;
		}
		t = r->threads[r->thread_count - 1];
		if (t->refused == 0) {
			r->rings += ops == &reader_ops_uring;
			continue;
		}
		if (r->rings == 0) {
			snprintf(text, size, "%s; reading with pread", cause);
			*ret_refused = t->refused;
			return 0;
		}
		snprintf(text, size, "ring %u of %u: %s; its thread reads with pread",
			r->thread_count, wanted, cause);
	}
	return 0;
}

static void resolve(struct reader_config *config)
{
	if (config->deadline_ns == 0)
		config->deadline_ns = DEADLINE_NS;
	/* now + deadline must not wrap */
	if (config->deadline_ns > UINT64_MAX / 4)
		config->deadline_ns = UINT64_MAX / 4;
}

static void deinit(struct reader *r)
{
	for (unsigned int i = 0; i < r->thread_count; i++) {
		pthread_cond_destroy(&r->threads[i]->wakeup);
		free(r->threads[i]->operations);
		free(r->threads[i]);
	}
	pthread_cond_destroy(&r->keeper_wakeup);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int reader_new(struct reader **ret, const struct reader_config *config, char *text, size_t size)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc, refused = 0;

	if (size > 0)
		text[0] = '\0';
	if (!r)
		return -ENOMEM;
	r->config = *config;
	resolve(&r->config);
	pthread_mutex_init(&r->lock, NULL);
	reader_cond_init(&r->keeper_wakeup);
	reader_cond_init(&r->changed);
	list_init(&r->queue);
	list_init(&r->live);
	list_init(&r->answers);

	rc = -reader_pthread_create(&r->keeper, reader_keeper_main, r);
	r->keeper_runs = rc == 0;
	if (r->keeper_runs)
		pthread_setname_np(r->keeper, "feeder-read-due");
	else
		snprintf(text, size, "no thread for deadlines (%s)", strerrorname_np(-rc));
	if (rc == 0 && config->backend != READER_PREAD)
		rc = start_threads(r, &reader_ops_uring, &refused, text, size);
	if (rc == 0 && (config->backend == READER_PREAD || refused != 0))
		rc = start_threads(r, &reader_ops_pread, &refused, text, size);
	if (rc < 0) {
		reader_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

/* Waits for *value to become 0, until due. Lock held. */
static bool wait_for_zero(struct reader *r, const uint64_t *value, uint64_t due)
{
	while (*value > 0) {
		if (now_ns() >= due)
			return false;
		reader_cond_wait(&r->changed, &r->lock, due);
	}
	return true;
}

static void wake_all(struct reader *r)
{
	for (unsigned int i = 0; i < r->thread_count; i++)
		thread_wake(r->threads[i]);
}

/* Ends the threads; false if one of them cannot be ended. */
static bool end_threads(struct reader *r)
{
	bool ended[READER_THREADS_MAX], all = true;
	uint64_t due;

	pthread_mutex_lock(&r->lock);
	if (!wait_for_zero(r, &r->busy, now_ns() + GRACE_NS)) {
		r->abandoned = true;
		all = false;
	}
	wake_all(r);
	due = r->abandoned ? now_ns() + GRACE_NS : UINT64_MAX;
	wait_for_zero(r, &r->running, due);
	for (unsigned int i = 0; i < r->thread_count; i++)
		ended[i] = r->threads[i]->ended;
	pthread_mutex_unlock(&r->lock);
	for (unsigned int i = 0; i < r->thread_count; i++) {
		if (ended[i])
			pthread_join(r->threads[i]->pthread, NULL);
		else
			pthread_detach(r->threads[i]->pthread);
	}
	for (unsigned int i = 0; i < r->thread_count; i++) {
		if (ended[i])
			r->threads[i]->ops->close(r->threads[i]);
	}
	return all;
}

void reader_free(struct reader *r)
{
	bool all;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_mutex_unlock(&r->lock);
	reader_cancel(r, NULL);

	/* The keeper answers the last of them at its deadline. */
	pthread_mutex_lock(&r->lock);
	wait_for_zero(r, &r->pending, UINT64_MAX);
	pthread_mutex_unlock(&r->lock);

	all = end_threads(r);
	if (r->keeper_runs) {
		pthread_mutex_lock(&r->lock);
		r->ending = true;
		pthread_cond_signal(&r->keeper_wakeup);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->keeper, NULL);
	}
	if (all) {
		deinit(r);
		return;
	}
	pthread_mutex_lock(&kept_lock);
	list_append(&kept, &r->kept);
	pthread_mutex_unlock(&kept_lock);
}

const char *reader_backend_name(const struct reader *r)
{
	return r->rings > 0 ? reader_ops_uring.name : reader_ops_pread.name;
}

static uint64_t cpu_ns_of(pthread_t pthread)
{
	clockid_t id;

	return pthread_getcpuclockid(pthread, &id) == 0 ? clock_read_ns(id) : 0;
}

void reader_stats(struct reader *r, struct reader_stats *ret)
{
	struct reader_stats stats;

	pthread_mutex_lock(&r->lock);
	stats = r->stats;
	stats.in_flight = r->pending;
	for (unsigned int i = 0; i < r->thread_count; i++) {
		stats.overflow += r->threads[i]->overflow;
		stats.refused_rings += r->threads[i]->refused != 0;
	}
	pthread_mutex_unlock(&r->lock);
	for (unsigned int i = 0; i < r->thread_count; i++)
		stats.cpu_ns += cpu_ns_of(r->threads[i]->pthread);
	stats.cpu_ns += cpu_ns_of(r->keeper);
	*ret = stats;
}
