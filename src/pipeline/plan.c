/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: one thread that walks every lane's cursor, makes batches of tickets, reads ahead
 * inside the byte budget and gives slots to batches.
 *
 * Read-ahead has two parts. Tickets whose batch has a slot are read as buffers come free, lane by
 * lane in turn. Tickets of later batches may hold bytes until the consumer releases a slot, which
 * can be never: together they get half the budget, in equal shares, so that a lane whose consumer
 * stands still cannot keep the others from reading.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/lane.h"

#define SUBMIT_MAX     64
#define IDLE_WAIT_NS   (100 * NS_PER_MS)
#define DEVICE_WAIT_NS (2 * NS_PER_MS) /* a GPU's release wakes nobody */

void planner_kick(struct pipeline *p)
{
	p->plan_again = true;
	pthread_cond_signal(&p->plan);
}

void planner_kick_bytes(struct pipeline *p, uint64_t freed, bool starving)
{
	p->bytes_freed += freed;
	if (!p->bytes_wanted || (!starving && p->bytes_freed < p->config.readahead_bytes / 8))
		return;
	p->bytes_wanted = false;
	planner_kick(p);
}

/* The permutation of the planned epoch, or NULL while there is none yet. */
static const struct permutation *current_permutation(struct lane *lane)
{
	const struct permutation *permutation;
	int error = 0;

	if (!lane->perm) {
		if (order_brings_ids(lane->order))
			return NULL; /* set epoch brings them */
		lane->perm = perms_get(lane->pipeline->perms, (int)lane->order, lane->shard.n,
			lane->seed, lane->base.epoch);
	}
	permutation = lane->perm ? perm_permutation(lane->perm, &error) : NULL;
	if (!lane->perm || error < 0)
		lane_fail(lane, -ENOMEM, 0, 0,
			"the order of epoch %llu needs %.1f MiB and there is no memory for it: use "
			"order "
			"feistel, which needs none",
			(unsigned long long)lane->base.epoch,
			(double)lane->shard.n * 4 / 1048576.0);
	else if (!permutation && !lane->order_wait_ns)
		lane->order_wait_ns = now_ns();
	else if (permutation)
		lane->order_wait_ns = 0;
	return permutation;
}

/* Past the epoch's last step: the next epoch from its start, its order asked for in time. */
static void next_epoch(struct lane *lane)
{
	lane->base.epoch++;
	lane->base.c = 0;
	lane->next_step = 0;
	perm_put(lane->perm);
	lane->perm = lane->perm_next;
	lane->perm_next = NULL;
}

static void ask_ahead(struct lane *lane, uint64_t steps)
{
	if (lane->perm_next || order_brings_ids(lane->order) || lane->next_step * 2 < steps ||
		lane->base.epoch + 1 >= lane->end_epoch)
		return;
	lane->perm_next = perms_get(lane->pipeline->perms, (int)lane->order, lane->shard.n,
		lane->seed, lane->base.epoch + 1);
}

static void plan_ticket(
	struct lane *lane, struct batch *batch, uint32_t i, const struct permutation *permutation)
{
	struct place where = shard_place(&lane->shard, lane->base.c, batch->step, i);
	struct ticket *t = &batch->tickets[i];

	t->state = TICKET_PLANNED;
	t->valid = where.valid;
	t->blank = !where.valid;
	t->masked = false;
	t->position = where.position;
	t->id_asked = permutation_at(permutation, where.index);
	t->id = t->id_asked;
	t->substitute = 0;
	t->fault.status = FEEDER_STATUS_OK;
	t->order_digest = where.valid ? digest_order(batch->epoch, t->position, t->id_asked) : 0;
	t->pixel_digest = 0;
	dataset_sample(lane->dataset, t->id, &t->sample);
}

/* Makes the next batch; false when there is none to make now. */
static bool plan_batch(struct lane *lane)
{
	const struct permutation *permutation;
	struct batch *batch;
	uint64_t steps;

	if (lane->stopped || list_empty(&lane->free) ||
		lane->next_number - 1 - ring_published(lane->ring) >=
			ring_slots(lane->ring) + BATCHES_AHEAD ||
		(lane->max_batches && lane->next_number > lane->max_batches) ||
		lane->base.epoch >= lane->end_epoch)
		return false;
	permutation = current_permutation(lane);
	if (!permutation)
		return false;
	steps = shard_steps(&lane->shard, lane->base.c);
	batch = CONTAINER_OF(list_pop(&lane->free), struct batch, link);
	batch->number = lane->next_number++;
	batch->generation = lane->generation;
	batch->zombie = false;
	batch->granted = false;
	batch->epoch = lane->base.epoch;
	batch->step = lane->next_step;
	batch->steps_left = steps - lane->next_step - 1;
	batch->after = cursor_after(&lane->base, &lane->shard, lane->next_step + 1);
	batch->count = shard_count(&lane->shard, lane->base.c, batch->step);
	batch->next_read = 0;
	batch->done = 0;
	batch->first_read_ns = 0;
	batch->last_read_ns = 0;
	for (uint32_t i = 0; i < lane->capacity; i++)
		plan_ticket(lane, batch, i, permutation);
	list_append(&lane->planned, &batch->link);
	lane->next_step++;
	ask_ahead(lane, steps);
	if (lane->next_step >= steps)
		next_epoch(lane);
	return true;
}

static struct batch *first_ungranted(struct lane *lane)
{
	LIST_FOR_EACH (node, &lane->planned) {
		struct batch *batch = CONTAINER_OF(node, struct batch, link);

		if (!batch->granted)
			return batch;
	}
	return NULL;
}

static void note_full(struct lane *lane, bool full)
{
	if (full && !lane->full_since_ns) {
		lane->full_since_ns = now_ns();
	} else if (!full && lane->full_since_ns) {
		lane->counters[STATS_LANE_ring_full] += now_ns() - lane->full_since_ns;
		lane->full_since_ns = 0;
	}
}

void lane_grant(struct lane *lane)
{
	struct batch *batch;

	while (!lane->stopped && lane->stale_decoding == 0 && (batch = first_ungranted(lane))) {
		if (!ring_slot_free(lane->ring, batch->number)) {
			note_full(lane, lane->granted == ring_published(lane->ring));
			return;
		}
		note_full(lane, false);
		batch->granted = true;
		lane->granted = batch->number;
		for (uint32_t i = 0; i < lane->capacity; i++) {
			struct ticket *t = &batch->tickets[i];

			ticket_uncount(t);
			if (t->state == TICKET_READING || t->state == TICKET_READ)
				lane->slotted_reads++;
			if (t->state == TICKET_READ)
				ticket_ready(t);
		}
	}
}

/*
 * The lane's next ticket that is to be read: the oldest batch first, in it substitutes before the
 * rest. A batch that has a slot is so never behind one that waits for its slot.
 */
static struct ticket *next_unread(struct lane *lane)
{
	struct ticket *again = NULL;

	if (!list_empty(&lane->reread))
		again = CONTAINER_OF(lane->reread.next, struct ticket, link);
	LIST_FOR_EACH (node, &lane->planned) {
		struct batch *batch = CONTAINER_OF(node, struct batch, link);

		if (again && again->batch->number <= batch->number)
			return again;
		if (batch->next_read < lane->capacity)
			return &batch->tickets[batch->next_read];
	}
	return again;
}

/* Takes the ticket off the lane's list of unread ones. */
static void take_unread(struct lane *lane, struct ticket *t)
{
	if (t->substitute > 0)
		list_remove(&t->link);
	else
		t->batch->next_read++;
	if (t->batch->granted)
		lane->slotted_reads++;
}

static struct bytes *take_bytes(struct lane *lane, const struct ticket *t)
{
	struct pipeline *p = lane->pipeline;
	struct bytes *bytes;

	if (!t->batch->granted) {
		uint64_t share =
			p->config.readahead_bytes / 2 / (p->lane_count ? p->lane_count : 1);

		if (lane->ahead_bytes + t->sample.length > share)
			return NULL;
	}
	bytes = bytes_take(p->bytes, t->sample.length);
	/* a lane none of whose slotted samples is under way goes on whatever the others hold */
	if (!bytes && t->batch->granted && lane->slotted_reads == 0)
		bytes = bytes_take_beyond(p->bytes, t->sample.length);
	return bytes;
}

static int ticket_path(struct lane *lane, struct ticket *t)
{
	int r = dataset_path(lane->dataset, t->id, t->path_inline, sizeof(t->path_inline));

	free(t->path == t->path_inline ? NULL : t->path);
	t->path = t->path_inline;
	if (r != -ENAMETOOLONG)
		return r;
	t->path = malloc(CONTROL_PATH_MAX);
	if (!t->path) {
		t->path = t->path_inline;
		return -ENOMEM;
	}
	return dataset_path(lane->dataset, t->id, t->path, CONTROL_PATH_MAX);
}

/* Fills the read request of a ticket that has its buffer. */
static void prepare_read(struct lane *lane, struct ticket *t, struct bytes *bytes)
{
	t->state = TICKET_READING;
	t->batch->outstanding++;
	lane->outstanding++;
	t->read = (struct read_request){
		.tree = &lane->tree,
		.path = t->path,
		.offset = t->sample.offset,
		.length = t->sample.length,
		.file_size = t->sample.file_size,
		.mtime_ns = t->sample.mtime_ns,
		.bytes = bytes,
		.done = ticket_read_done,
		.context = t,
	};
	list_init(&t->read.link);
	if (!t->batch->granted) {
		t->ahead = bytes->capacity;
		lane->ahead_bytes += t->ahead;
	}
}

enum step { STEP_NONE, STEP_DONE, STEP_SUBMIT };

/* Moves a lane's next ticket one step: to the reader, or past it when nothing is to be read. */
static enum step read_step(struct lane *lane, struct ticket **ret)
{
	struct ticket *t = next_unread(lane);
	struct bytes *bytes;
	struct fault fault;

	if (!t)
		return STEP_NONE;
	if (t->blank) {
		take_unread(lane, t);
		t->state = TICKET_READ;
		if (t->batch->granted)
			ticket_ready(t);
		return STEP_DONE;
	}
	if (t->sample.length > lane->pipeline->max_file) {
		take_unread(lane, t);
		fault_set(&fault, FEEDER_STATUS_TOO_LARGE, 0,
			"%llu encoded bytes are more than the limit of %llu",
			(unsigned long long)t->sample.length,
			(unsigned long long)lane->pipeline->max_file);
		ticket_failed(t, &fault);
		return STEP_DONE;
	}
	bytes = take_bytes(lane, t);
	if (!bytes) {
		lane->pipeline->bytes_wanted = true;
		lane->pipeline->bytes_freed = 0;
		return STEP_NONE;
	}
	take_unread(lane, t);
	if (ticket_path(lane, t) < 0) {
		bytes_give(lane->pipeline->bytes, bytes);
		fault_set(&fault, FEEDER_STATUS_MISSING, ENAMETOOLONG, "its path is too long");
		ticket_failed(t, &fault);
		return STEP_DONE;
	}
	prepare_read(lane, t, bytes);
	*ret = t;
	return STEP_SUBMIT;
}

/* One ticket a lane in turn, until none can go on or SUBMIT_MAX are under way. */
static unsigned int collect_reads(struct pipeline *p, struct ticket *submit[SUBMIT_MAX])
{
	unsigned int count = 0;
	bool moved = true;

	while (moved && count < SUBMIT_MAX) {
		moved = false;
		LIST_FOR_EACH (node, &p->lanes) {
			struct lane *lane = CONTAINER_OF(node, struct lane, link);
			enum step step = STEP_NONE;

			if (count < SUBMIT_MAX && !lane->dying && !lane->failed)
				step = read_step(lane, &submit[count]);
			moved |= step != STEP_NONE;
			count += step == STEP_SUBMIT;
		}
	}
	return count;
}

static void plan_all(struct pipeline *p)
{
	struct ticket *submit[SUBMIT_MAX];
	unsigned int count;

	do {
		LIST_FOR_EACH (node, &p->lanes) {
			struct lane *lane = CONTAINER_OF(node, struct lane, link);

			while (plan_batch(lane))
				lane_grant(lane);
			lane_grant(lane);
		}
		count = collect_reads(p, submit);
		if (count > 0) {
			pthread_mutex_unlock(&p->lock);
			for (unsigned int i = 0; i < count; i++)
				reader_submit(p->reader, &submit[i]->read);
			pthread_mutex_lock(&p->lock);
		}
	} while (count == SUBMIT_MAX && !p->stopping);
}

/* Waits to be kicked; briefly where a device's release words have to be looked at. */
static void planner_wait(struct pipeline *p)
{
	uint64_t wait = IDLE_WAIT_NS, until;
	struct timespec ts;

	LIST_FOR_EACH (node, &p->lanes) {
		struct lane *lane = CONTAINER_OF(node, struct lane, link);

		if (lane->device && first_ungranted(lane))
			wait = DEVICE_WAIT_NS;
	}
	until = now_ns() + wait;
	ts.tv_sec = (time_t)(until / NS_PER_SEC);
	ts.tv_nsec = (long)(until % NS_PER_SEC);
	pthread_cond_timedwait(&p->plan, &p->lock, &ts);
}

void *planner_main(void *arg)
{
	struct pipeline *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		p->plan_again = false;
		plan_all(p);
		if (p->events) {
			pthread_mutex_unlock(&p->lock);
			pipeline_send_events(p);
			pthread_mutex_lock(&p->lock);
		}
		if (!p->plan_again && !p->stopping)
			planner_wait(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void ticket_read_done(struct read_request *req)
{
	struct ticket *t = req->context;
	struct batch *batch = t->batch;
	struct lane *lane = batch->lane;
	struct pipeline *p = lane->pipeline;
	bool owed;

	pthread_mutex_lock(&p->lock);
	t->bytes = req->bytes;
	if (!t->bytes)
		ticket_uncount(t); /* a late buffer stays with the reader */
	if (!batch->zombie && !lane->dying) {
		uint64_t opened = req->opened_ns ? req->opened_ns : req->done_ns;

		if (!batch->first_read_ns || req->started_ns < batch->first_read_ns)
			batch->first_read_ns = req->started_ns;
		if (req->done_ns > batch->last_read_ns)
			batch->last_read_ns = req->done_ns;
		lane->counters[STATS_LANE_open_time] += opened - req->started_ns;
		lane->counters[STATS_LANE_read_time] += req->done_ns - opened;
		t->state = TICKET_READ;
		if (req->fault.status)
			ticket_failed(t, &req->fault);
		else if (batch->granted)
			ticket_ready(t);
	}
	ticket_came_back(t);
	owed = p->events;
	pthread_mutex_unlock(&p->lock);
	if (owed)
		pipeline_send_events(p);
}
