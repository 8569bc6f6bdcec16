/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the pipeline: lanes, batches, tickets, and the lock that guards them.
 *
 * A lane's planner turns its cursor into batches of tickets. A ticket is read, then decoded into
 * its place once its batch has a slot, and the last one to land completes its batch; complete
 * batches are published in order. Everything that several threads touch here is guarded by the
 * pipeline's one lock: it is taken a few times a sample (a sample is about a millisecond of
 * decoding), never while reading, decoding or copying.
 *
 *	planner thread   plans batches, takes buffers, submits reads, grants slots
 *	reader threads   ticket_read_done
 *	worker threads   schedule_pick, recipe_run, ticket_decoded → publishing
 *	control thread   new, seek, set epoch, drain, free, doorbell, statistics
 */
#ifndef PIPELINE_LANE_H
#define PIPELINE_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/list.h"
#include "order/order.h"
#include "pipeline/cases.h"
#include "pipeline/perms.h"
#include "pipeline/pipeline.h"
#include "pipeline/recipe.h"
#include "reader/reader.h"
#include "ring/ring.h"
#include "source/source.h"

#define TICKET_PATH_INLINE 128
#define SUBSTITUTES_MAX    8
#define BATCHES_AHEAD      2 /* planned beyond the ring's slots */

enum ticket_state {
	TICKET_PLANNED, /* waits for a buffer and the reader */
	TICKET_READING,
	TICKET_READ, /* has its bytes (or needs none); decoded when the batch has a slot */
	TICKET_DECODING,
	TICKET_DONE,
};

struct ticket {
	struct list link; /* in lane->reread or lane->ready */
	struct batch *batch;
	uint32_t place;
	enum ticket_state state;
	bool blank; /* past the end: nothing is read or decoded */
	bool valid;
	uint64_t position;
	uint64_t id_asked;
	uint64_t id;         /* being tried */
	uint32_t substitute; /* 0: the asked id, else k + 1 */
	struct sample sample;
	struct read_request read;
	struct bytes *bytes;
	uint64_t ahead;     /* bytes counted in lane->ahead_bytes for this ticket */
	struct fault fault; /* of the asked id; status 0 while it is good */
	bool masked;        /* done without pixels although valid */
	uint64_t order_digest;
	uint64_t pixel_digest;
	char *path; /* path_inline, or allocated */
	char path_inline[TICKET_PATH_INLINE];
};

/*
 * One planned batch. After a seek its number is given again: then it is a zombie, kept until the
 * reader and the workers have let go of its tickets, and returned to the lane's free list.
 */
struct batch {
	struct list link; /* in lane->planned (in order), lane->free or lane->zombies */
	struct lane *lane;
	uint64_t number;
	uint32_t generation;
	bool zombie;
	bool granted; /* the slot is ours to write */
	uint64_t epoch;
	uint64_t step;
	uint64_t steps_left; /* after this one */
	struct cursor after;
	uint32_t count;       /* places to deliver */
	uint32_t next_read;   /* first ticket that was not given to the reader */
	uint32_t outstanding; /* tickets that the reader or a worker holds */
	uint32_t done;
	uint64_t first_read_ns;
	uint64_t last_read_ns;  /* when the last of its bytes had come */
	struct ticket *tickets; /* capacity entries */
};

/* The scheduler's unit of fairness: lanes of one (uid, job). */
struct job {
	struct list link;
	uint64_t key;
	uint32_t weight;
	unsigned int lanes;
	unsigned int ready;  /* tickets in its lanes' ready lists */
	uint64_t virtual_ns; /* CPU time taken, divided by the weight */
};

struct lane {
	/* constant after start */
	struct pipeline *pipeline;
	uint64_t id;
	uint32_t uid;
	bool device; /* a GPU releases its slots: it cannot ring the doorbell */
	struct dataset *dataset;
	uint64_t dataset_n;
	struct read_tree tree;
	struct recipe recipe;
	struct ring *ring;
	int doorbell;
	uint32_t order;
	uint64_t seed;
	uint32_t bad;              /* enum control_bad */
	unsigned int worker_share; /* of the active workers, percent, for all lanes of the uid */
	uint32_t capacity;
	uint64_t opened_ns;
	struct cursor opened_at; /* settled */
	uint64_t max_batches;    /* 0: no end */
	uint64_t end_epoch;      /* the first epoch that is not planned; UINT64_MAX: no end */
	struct batch *batches;   /* the storage of all batches */
	unsigned int batch_count;

	/* guarded by pipeline->lock */
	struct list link; /* in pipeline->lanes */
	struct job *job;
	struct shard shard;
	struct list free;
	struct list planned;
	struct list zombies;
	struct list ready;  /* tickets to decode, in order */
	struct list reread; /* substitutes to read */
	uint32_t generation;
	uint64_t next_number;   /* of the batch planned next */
	uint64_t granted;       /* newest number that has a slot */
	struct cursor base;     /* where the planned epoch was entered */
	uint64_t next_step;     /* of that epoch, from base */
	struct perm *perm;      /* of the planned epoch; NULL: not asked yet */
	struct perm *perm_next; /* of the next one, computed ahead */
	bool stopped;           /* failed, shut or draining: no new batches */
	bool failed;
	bool draining;
	bool dying;                  /* pipeline_lane_free waits for outstanding tickets */
	bool event;                  /* lane_event is owed */
	unsigned int decoding;       /* workers busy with its tickets, zombies' included */
	unsigned int stale_decoding; /* workers still writing for zombies */
	unsigned int outstanding;    /* tickets held by reader or workers, zombies included */
	unsigned int slotted_reads;  /* granted tickets that are reading or ready */
	uint64_t ahead_bytes;        /* buffers of batches without a slot */
	uint64_t epoch_bad;          /* bad samples of epoch_bad_of */
	uint64_t epoch_bad_of;
	uint64_t order_wait_ns; /* since when a permutation has been waited for; 0: not */
	uint64_t full_since_ns; /* 0: a slot is free */
	uint64_t last_publish_ns;
	uint64_t seen_wait_ns; /* of the client's telemetry */
	double short_ns[4];    /* since then: short of order, read, decode, transform */
	uint64_t idle_mark;    /* pipeline_idle_ns at the last publication */
	struct control_error error;
	struct cases cases;
	uint64_t counters[STATS_LANE_COUNT];
};

struct worker {
	struct pipeline *pipeline;
	pthread_t thread;
	unsigned int index;
	struct bench bench;

	/* guarded by pipeline->lock */
	uint64_t cpu_ns;
	uint64_t repinned;
};

struct pipeline {
	/* constant after start */
	struct pipeline_config config;
	struct bytes_pool *bytes;
	struct reader *reader;
	struct perms *perms;
	struct worker *workers;
	unsigned int worker_count;
	pthread_t planner;
	char reader_note[256];
	uint64_t max_file; /* bytes of one sample */

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t work;     /* workers: a ticket became ready, or stopping */
	pthread_cond_t inactive; /* workers above active_workers */
	pthread_cond_t plan;     /* planner: something changed (CLOCK_MONOTONIC) */
	pthread_cond_t drained;  /* pipeline_lane_free: a ticket came back, events were sent */
	struct list lanes;
	struct list jobs;
	uint64_t next_lane;
	unsigned int lane_count;
	unsigned int active_workers; /* workers of a higher index sleep */
	unsigned int sleeping_workers;
	uint64_t sleep_started_sum; /* of the times when they fell asleep */
	uint64_t idle_ns;           /* of sleeps that have ended */
	uint64_t virtual_now;       /* of the job picked last */
	bool plan_again;
	bool bytes_wanted;    /* the planner could not get a buffer for a sample that has a slot */
	uint64_t bytes_freed; /* since then */
	bool events;          /* some lane's event is owed */
	unsigned int sending; /* threads inside lane_event */
	bool planner_started;
	bool stopping;
};

/* ---- plan.c ---- */
void *planner_main(void *arg);
void planner_kick(struct pipeline *p); /* lock held */
/*
 * Buffers came free, or a worker ran out of work: kicks the planner if it waits for buffers and
 * enough are there to be worth its waking. Lock held.
 */
void planner_kick_bytes(struct pipeline *p, uint64_t freed, bool starving);
/* Gives freed slots to planned batches; lock held. */
void lane_grant(struct lane *lane);
void ticket_read_done(struct read_request *req);

/* ---- schedule.c ---- */
/* The ticket that a worker takes next, marked DECODING; NULL: none. Lock held. */
struct ticket *schedule_pick(struct pipeline *p);
void schedule_charge(struct job *job, uint64_t cpu_ns);
struct job *job_get(struct pipeline *p, uint64_t key, uint32_t weight); /* NULL: no memory */
void job_put(struct job *job);
/* Links a ticket into a list that is in the order of batches. Lock held. */
void ticket_insert(struct list *tickets, struct ticket *t);
/* Puts a ticket that has all it needs where a worker finds it. Lock held. */
void ticket_ready(struct ticket *t);

/* ---- worker.c ---- */
void *worker_main(void *arg);
/* Ends the ticket's part in lane->ahead_bytes. Lock held. */
void ticket_uncount(struct ticket *t);
/* Frees the bytes of a ticket. Lock held. */
void ticket_drop_bytes(struct ticket *t);
/* A ticket that the reader or a worker held came back; a zombie's batch may be free now. */
void ticket_came_back(struct ticket *t);
/* The id being tried failed with fault: the next substitute, or the ticket is done. Lock held. */
void ticket_failed(struct ticket *t, const struct fault *fault);
/* The place is final. Lock held. */
void ticket_done(struct ticket *t);

/* ---- publish.c ---- */
/* Publishes every complete batch that is next in order. Lock held. */
void lane_publish(struct lane *lane);
void lane_fail(struct lane *lane, int code, uint64_t sample, int status, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Notes that lane_event is owed for the lane. Lock held. */
void lane_owe_event(struct lane *lane);
/* Calls lane_event for lanes that owe one. Takes the lock, which must not be held. */
void pipeline_send_events(struct pipeline *p);
bool lane_drained_locked(const struct lane *lane);
/* Time that workers have slept for want of samples, all together. Lock held. */
uint64_t pipeline_idle_ns(const struct pipeline *p, uint64_t now);

/* ---- lane-open.c ---- */
/* Decodes a cursor for the request's dataset, order and seed; size 0 is the start of everything. */
int lane_take_cursor(const struct lane_request *request, const void *bytes, size_t bytes_size,
	struct cursor *ret, char *text, size_t size);
/* Moves a cursor at its epoch's end to the next epoch; an epoch without a step is refused. */
int lane_settle(
	struct cursor *cursor, const struct shard *shard, bool *ret_moved, char *text, size_t size);
/* Orders whose ids the client brings, epoch by epoch. */
static inline bool order_brings_ids(uint32_t order)
{
	return order == ORDER_IDS || order == ORDER_DATALOADER;
}

/* ---- lane.c ---- */
void lane_destroy(struct lane *lane);
/* Where the lane stands, for the replies to open, seek and set epoch. Lock held. */
void lane_fill_reply(const struct lane *lane, bool moved, struct control_lane *ret);
/* Turns a batch that nobody needs any more into a zombie, or frees it at once. Lock held. */
void batch_drop(struct batch *batch);

#endif
