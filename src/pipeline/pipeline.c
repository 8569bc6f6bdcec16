/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's threads and what it tells of itself. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "pipeline/lane.h"

#define MAX_FILE_DEFAULT ((uint64_t)1 << 30) /* encoded bytes of one sample */

static void order_ready(void *context)
{
	struct pipeline *p = context;

	pthread_mutex_lock(&p->lock);
	planner_kick(p);
	pthread_mutex_unlock(&p->lock);
}

static void init_locks(struct pipeline *p)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->inactive, NULL);
	pthread_cond_init(&p->drained, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->plan, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void decode_limits_of(const struct pipeline_config *config, struct decode_limits *ret)
{
	decode_limits_init(ret);
	if (config->max_pixels)
		ret->max_pixels = config->max_pixels;
	if (config->max_scans)
		ret->max_scans = config->max_scans;
	if (config->max_memory)
		ret->max_memory = config->max_memory;
	if (config->max_cpu_ns)
		ret->max_cpu_ns = config->max_cpu_ns;
}

static int start_workers(struct pipeline *p)
{
	struct decode_limits limits;

	decode_limits_of(&p->config, &limits);
	p->workers = calloc(p->config.workers, sizeof(*p->workers));
	if (!p->workers)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->config.workers; i++) {
		struct worker *w = &p->workers[i];
		char name[16];
		int r;

		w->pipeline = p;
		w->index = i;
		r = bench_init(&w->bench, &limits);
		if (r < 0)
			return r;
		snprintf(name, sizeof(name), "feeder-work-%u", i % 1000);
		r = thread_start(&w->thread, name, worker_main, w);
		if (r < 0) {
			bench_deinit(&w->bench);
			return r;
		}
		p->worker_count++;
	}
	return 0;
}

static int start_reader(struct pipeline *p, char *text, size_t size)
{
	struct reader_config config;
	int r;

	reader_config_init(&config);
	config.backend = (enum reader_backend)p->config.reader;
	config.deadline_ns = p->config.read_deadline_ns;
	config.give = p->bytes;
	r = reader_new(&p->reader, &config, p->reader_note, sizeof(p->reader_note));
	if (r < 0)
		snprintf(text, size, "%s", p->reader_note);
	return r;
}

int pipeline_new(
	struct pipeline **ret, const struct pipeline_config *config, char *text, size_t size)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	text[0] = '\0';
	p->config = *config;
	p->max_file = MAX_FILE_DEFAULT;
	p->active_workers = config->workers;
	list_init(&p->lanes);
	list_init(&p->jobs);
	init_locks(p);
	r = bytes_pool_new(&p->bytes, config->readahead_bytes);
	if (r == 0)
		r = start_reader(p, text, size);
	if (r == 0)
		r = perms_new(&p->perms, order_ready, p);
	if (r == 0)
		r = start_workers(p);
	if (r == 0) {
		r = thread_start(&p->planner, "feeder-plan", planner_main, p);
		p->planner_started = r == 0;
	}
	if (r < 0) {
		if (!text[0])
			snprintf(text, size, "starting the pipeline failed: %s", strerror(-r));
		pipeline_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->work);
	pthread_cond_broadcast(&p->inactive);
	pthread_cond_broadcast(&p->plan);
	pthread_mutex_unlock(&p->lock);
	if (p->planner_started)
		pthread_join(p->planner, NULL);
	for (unsigned int i = 0; i < p->worker_count; i++) {
		pthread_join(p->workers[i].thread, NULL);
		bench_deinit(&p->workers[i].bench);
	}
	free(p->workers);
	perms_free(p->perms);
	reader_free(p->reader);
	bytes_pool_free(p->bytes);
	pthread_cond_destroy(&p->plan);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->inactive);
	pthread_cond_destroy(&p->drained);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void pipeline_set_active_workers(struct pipeline *p, unsigned int n)
{
	pthread_mutex_lock(&p->lock);
	p->active_workers = n < 1 ? 1 : n > p->worker_count ? p->worker_count : n;
	pthread_cond_broadcast(&p->inactive);
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
}

void pipeline_facts(struct pipeline *p, struct pipeline_facts *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = (struct pipeline_facts){
		.workers = p->active_workers,
		.reader = reader_backend_name(p->reader),
		.reader_note = p->reader_note,
		.codec = decode_library_version(),
		.simd = resize_level_name(resize_best_level()),
	};
	pthread_mutex_unlock(&p->lock);
}

void pipeline_counters(struct pipeline *p, uint64_t counters[STATS_DAEMON_COUNT])
{
	struct reader_stats r;
	uint64_t cpu = 0, repinned = 0;

	reader_stats(p->reader, &r);
	pthread_mutex_lock(&p->lock);
	for (unsigned int i = 0; i < p->worker_count; i++) {
		cpu += p->workers[i].cpu_ns;
		repinned += p->workers[i].repinned;
	}
	counters[STATS_DAEMON_workers] = p->active_workers;
	counters[STATS_DAEMON_worker_idle] = p->idle_ns;
	pthread_mutex_unlock(&p->lock);
	counters[STATS_DAEMON_worker_cpu] = cpu;
	counters[STATS_DAEMON_repinned] = repinned;
	counters[STATS_DAEMON_reader_cpu] = r.cpu_ns;
	counters[STATS_DAEMON_process_cpu] = process_cpu_ns();
	counters[STATS_DAEMON_reads] = r.completed;
	counters[STATS_DAEMON_read_bytes] = r.bytes;
	counters[STATS_DAEMON_short_reads] = r.short_reads;
	counters[STATS_DAEMON_read_retries] = r.retries;
	counters[STATS_DAEMON_read_timeouts] = r.timeouts;
	counters[STATS_DAEMON_reads_in_flight] = r.in_flight;
	counters[STATS_DAEMON_readahead_bytes] = bytes_pool_out(p->bytes);
	counters[STATS_DAEMON_readahead_peak] = bytes_pool_peak(p->bytes);
	counters[STATS_DAEMON_readahead_budget] = p->config.readahead_bytes;
}

void lane_counters(struct lane *lane, uint64_t counters[STATS_LANE_COUNT], uint32_t *ret_state)
{
	struct pipeline *p = lane->pipeline;
	struct ring_telemetry t = ring_telemetry(lane->ring);
	uint64_t now = now_ns();

	pthread_mutex_lock(&p->lock);
	memcpy(counters, lane->counters, sizeof(lane->counters));
	if (lane->full_since_ns)
		counters[STATS_LANE_ring_full] += now - lane->full_since_ns;
	counters[STATS_LANE_ready] = ring_held(lane->ring);
	counters[STATS_LANE_steps_epoch] = lane->shard.n ? shard_steps(&lane->shard, 0) : 0;
	pthread_mutex_unlock(&p->lock);
	counters[STATS_LANE_consumer_wait] = t.wait_ns;
	counters[STATS_LANE_consumed] = t.consumed;
	counters[STATS_LANE_copied_bytes] = t.copied_bytes;
	counters[STATS_LANE_copy_time] = t.copy_ns;
	counters[STATS_LANE_slots] = ring_slots(lane->ring);
	counters[STATS_LANE_ring_bytes] = ring_bytes(lane->ring);
	counters[STATS_LANE_opened] = now - lane->opened_ns;
	*ret_state = ring_state(lane->ring);
}

/* The end of a path says more than its beginning. */
static void copy_tail(char *ret, size_t size, const char *path)
{
	size_t length = strlen(path);

	if (length < size)
		snprintf(ret, size, "%s", path);
	else
		snprintf(ret, size, "...%s", path + length - (size - 4));
}

uint32_t lane_cases(struct lane *lane, struct stats_case *ret, uint32_t max)
{
	struct pipeline *p = lane->pipeline;
	uint32_t n, first;

	pthread_mutex_lock(&p->lock);
	n = lane->cases.count < max ? lane->cases.count : max;
	first = lane->cases.count - n;
	for (uint32_t i = 0; i < n; i++) {
		const struct bad_case *c = &lane->cases.rows[first + i];
		char path[CONTROL_PATH_MAX];

		memset(&ret[i], 0, sizeof(ret[i]));
		ret[i].lane = lane->id;
		ret[i].id = c->id;
		ret[i].epoch = c->epoch;
		ret[i].status = (uint32_t)c->fault.status;
		ret[i].count = c->count;
		if (dataset_path(lane->dataset, c->id, path, sizeof(path)) >= 0)
			copy_tail(ret[i].path, sizeof(ret[i].path), path);
		snprintf(ret[i].text, sizeof(ret[i].text), "%s", c->fault.text);
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}
