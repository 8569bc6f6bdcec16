/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: lanes, tickets, scheduler, workers. The only room that sees the data rooms together;
 * this header is all that `control` sees of it.
 *
 * Calls are made by the control thread, but for pipeline_lane_new and pipeline_lane_free, which
 * may take long and may be made by any one thread. Lane and pipeline calls return 0 or
 * a negative errno with a sentence in text (size bytes).
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "protocol/stats.h"

struct pipeline;
struct lane;
struct dataset;

struct pipeline_config {
	unsigned int workers;     /* ≥ 1 */
	int reader;               /* enum reader_backend */
	uint64_t readahead_bytes; /* budget of encoded bytes in flight */
	unsigned int slots;       /* default of a ring */
	uint64_t read_deadline_ns;
	uint64_t max_pixels; /* 0: decode's default */
	uint32_t max_scans;
	uint64_t max_memory;
	uint64_t max_cpu_ns;
	/*
	 * Events for the control thread, called from any thread with no lock held; must not block.
	 * A lane failed (its error is in lane_error), or has finished draining.
	 */
	void (*lane_event)(void *context, uint64_t lane_id);
	void *context;
	/*
	 * Judges a link that leaves a dataset's directory: an open descriptor (flags as open)
	 * beneath a
	 * root that uid may read, or -EXDEV. Called on reader and opener threads.
	 */
	int (*open_outside)(void *context, uint32_t uid, int dirfd, const char *path, int flags);
};

int pipeline_new(
	struct pipeline **ret, const struct pipeline_config *config, char *text, size_t size);
/* Ends all threads; every lane must be freed. */
void pipeline_free(struct pipeline *p);

/* Lets the first n workers work (at least 1, at most config.workers); the others sleep. */
void pipeline_set_active_workers(struct pipeline *p, unsigned int n);

/* What does not change: names for hello and statistics. */
struct pipeline_facts {
	unsigned int workers;
	const char *reader;
	const char *reader_note;
	const char *codec;
	const char *simd;
};
void pipeline_facts(struct pipeline *p, struct pipeline_facts *ret);
/* Fills the counters that are the pipeline's (worker_cpu, reads, …); leaves the others. */
void pipeline_counters(struct pipeline *p, uint64_t counters[STATS_DAEMON_COUNT]);

/* Everything that opening needs, checked and settled by pipeline_lane_new. */
struct lane_request {
	const struct control_open_lane *open; /* handles in it are not looked at */
	struct dataset *dataset;              /* a reference is taken */
	uint32_t uid;
	uint64_t job_key; /* equal for lanes of one (uid, job): the scheduler's unit of fairness */
	/*
	 * Percent of the active workers that all lanes of this uid together may hold while another
	 * uid's lane has work; 100 = no cap. At least one worker.
	 */
	uint32_t worker_share;
};

/*
 * Bytes of ring memory that the request would take (for quotas), after checking every parameter;
 * -EINVAL, -ENOSYS with a sentence that names the operation, option or number.
 */
int pipeline_lane_size(struct pipeline *p, const struct lane_request *request, uint64_t *ret_bytes,
	char *text, size_t size);
/*
 * Makes the lane and its ring (memory reserved: -ENOMEM, -ENOSPC with needed and available) and
 * starts planning. The reply is filled but for `lane`; fds are payload, control, doorbell: the
 * lane keeps its own, these are the caller's to send and close. May take long (large rings):
 * called on the opener thread.
 */
int pipeline_lane_new(struct lane **ret, struct pipeline *p, const struct lane_request *request,
	struct control_lane *reply, int ret_fds[3], char *text, size_t size);
/*
 * Drops the lane: waits for its tickets in decode and cancels its reads (bounded). No lane_event is
 * under way when it returns. state → CLOSED, but for one that failed or drained: what it published
 * is still to be read.
 */
void pipeline_lane_free(struct lane *lane);

uint64_t lane_id(const struct lane *lane);
/* Descriptor to poll for the client's doorbell; on an edge call lane_doorbell. */
int lane_doorbell_fd(const struct lane *lane);
void lane_doorbell(struct lane *lane);
int lane_seek(struct lane *lane, const void *cursor, size_t cursor_size, struct control_lane *reply,
	char *text, size_t size);
/* ids NULL unless the order is IDS; copied. */
int lane_set_epoch(struct lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count,
	struct control_lane *reply, char *text, size_t size);
/* No new tickets; what is in flight is published; lane_event when done. state → DRAINING. */
void lane_drain(struct lane *lane);
bool lane_drained(const struct lane *lane);
/* Ends the lane for its consumer (taken over): state → CLOSED, consumers woken. */
void lane_shut(struct lane *lane);
/* 0: fine; else the error of a failed lane. */
int lane_error(const struct lane *lane, struct control_error *ret);

/*
 * Statistics: counters and settings that the lane knows; cases newest last, returns their number.
 */
void lane_counters(struct lane *lane, uint64_t counters[STATS_LANE_COUNT], uint32_t *ret_state);
uint32_t lane_cases(struct lane *lane, struct stats_case *ret, uint32_t max);

/* What ranks of one group must agree in, and may not all be equal when a lane reopens. */
struct lane_identity {
	uint8_t fingerprint[16];
	uint32_t order;
	uint64_t seed;
	uint32_t world;
	uint32_t batch;
	uint32_t accumulate;
	uint32_t tail;
	uint64_t epoch; /* of the cursor with which it was opened */
	uint64_t c;
};
void lane_identity(const struct lane *lane, struct lane_identity *ret);
/* The same of a request that is not yet a lane, cursor decoded and settled. */
int lane_request_identity(
	const struct lane_request *request, struct lane_identity *ret, char *text, size_t size);

#endif
