/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's life: seeking, draining, freeing. */
#include "pipeline/lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

void lane_destroy(struct lane *lane)
{
	for (unsigned int i = 0; lane->batches && i < lane->batch_count; i++) {
		struct batch *batch = &lane->batches[i];

		for (uint32_t k = 0; batch->tickets && k < lane->capacity; k++) {
			if (batch->tickets[k].path != batch->tickets[k].path_inline)
				free(batch->tickets[k].path);
		}
		free(batch->tickets);
	}
	free(lane->batches);
	perm_put(lane->perm);
	perm_put(lane->perm_next);
	cases_deinit(&lane->cases);
	recipe_deinit(&lane->recipe);
	ring_free(lane->ring);
	fd_close(lane->doorbell);
	dataset_unref(lane->dataset);
	free(lane);
}

/* The number of the last batch that the limits of the lane allow; 0: none. */
static uint64_t last_number(const struct lane *lane, const struct control_lane *at)
{
	uint64_t last = lane->max_batches ? lane->max_batches : UINT64_MAX;
	uint64_t epochs, by_epochs;

	if (lane->end_epoch != UINT64_MAX) {
		epochs =
			lane->end_epoch > lane->base.epoch ? lane->end_epoch - lane->base.epoch : 0;
		by_epochs =
			at->first - 1 + (epochs ? at->steps + (epochs - 1) * at->steps_epoch : 0);
		last = by_epochs < last ? by_epochs : last;
	}
	return last == UINT64_MAX ? 0 : last;
}

/* Where the lane stands, for the replies to open, seek and set epoch. Lock held. */
void lane_fill_reply(const struct lane *lane, bool moved, struct control_lane *ret)
{
	*ret = (struct control_lane){
		.size = sizeof(*ret),
		.generation = lane->generation,
		.first = ring_published(lane->ring) + 1,
		.ring_bytes = ring_bytes(lane->ring),
		.moved = moved,
		.cursor_size = CURSOR_SIZE,
	};
	if (!order_brings_ids(lane->order) || lane->perm) {
		ret->steps = shard_steps(&lane->shard, lane->base.c);
		ret->steps_epoch = shard_steps(&lane->shard, 0);
	}
	ret->last = last_number(lane, ret);
	cursor_encode(&lane->base, ret->cursor);
}

void batch_drop(struct batch *batch)
{
	struct lane *lane = batch->lane;

	batch->zombie = true;
	list_remove(&batch->link);
	for (uint32_t i = 0; i < lane->capacity; i++) {
		struct ticket *t = &batch->tickets[i];

		ticket_uncount(t);
		if (batch->granted && (t->state == TICKET_READING || t->state == TICKET_READ ||
					      t->state == TICKET_DECODING))
			lane->slotted_reads--;
		if (t->state == TICKET_DECODING)
			lane->stale_decoding++;
		if (t->state == TICKET_READ && batch->granted)
			lane->job->ready--;
		if (t->state != TICKET_DECODING && t->state != TICKET_READING) {
			list_remove(&t->link);
			ticket_drop_bytes(t);
		}
	}
	list_append(batch->outstanding ? &lane->zombies : &lane->free, &batch->link);
}

/* Drops all that is planned and not published: from here on the lane stands at `at`. */
static void restart_at(struct lane *lane, const struct cursor *at)
{
	LIST_FOR_EACH_SAFE (node, tmp, &lane->planned)
		batch_drop(CONTAINER_OF(node, struct batch, link));
	lane->generation++;
	lane->next_number = ring_published(lane->ring) + 1;
	lane->granted = ring_published(lane->ring);
	lane->base = *at;
	lane->next_step = 0;
	perm_put(lane->perm);
	perm_put(lane->perm_next);
	lane->perm = NULL;
	lane->perm_next = NULL;
	lane->order_wait_ns = 0;
	lane->full_since_ns = 0;
	planner_kick(lane->pipeline);
}

/* A lane of max_epochs does not go past them: its client waits for no more. */
static int refuse_past_end(const struct lane *lane, uint64_t epoch, char *text, size_t size)
{
	if (epoch < lane->end_epoch)
		return 0;
	snprintf(text, size,
		"epoch %llu is past the lane's last, %llu: it was opened with max_epochs",
		(unsigned long long)epoch, (unsigned long long)lane->end_epoch - 1);
	return -EINVAL;
}

static int refuse_stopped(const struct lane *lane, char *text, size_t size)
{
	if (lane->failed) {
		snprintf(text, size, "the lane has failed: %.900s", lane->error.text);
		return lane->error.code;
	}
	snprintf(text, size, "the daemon is stopping: the lane cannot be moved");
	return -ESHUTDOWN;
}

int lane_seek(struct lane *lane, const void *cursor, size_t cursor_size, struct control_lane *reply,
	char *text, size_t size)
{
	struct control_open_lane open = { .order = lane->order, .seed = lane->seed };
	struct lane_request request = { .open = &open, .dataset = lane->dataset };
	struct pipeline *p = lane->pipeline;
	struct cursor at;
	bool moved = false;
	int r = lane_take_cursor(&request, cursor, cursor_size, &at, text, size);

	if (r == 0 && order_brings_ids(lane->order)) {
		snprintf(text, size, "a lane of order ids starts its epochs by set epoch");
		r = -EINVAL;
	}
	if (r == 0)
		r = lane_settle(&at, &lane->shard, &moved, text, size);
	if (r == 0)
		r = refuse_past_end(lane, at.epoch, text, size);
	if (r < 0)
		return r;
	pthread_mutex_lock(&p->lock);
	if (lane->stopped) {
		r = refuse_stopped(lane, text, size);
	} else {
		restart_at(lane, &at);
		lane_fill_reply(lane, moved, reply);
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

/* The ids of one epoch, checked against the dataset; n of the epoch is their number. */
static int adopt_ids(struct lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count,
	struct perm **ret_perm, char *text, size_t size)
{
	struct shard shard = lane->shard;
	int r = -EINVAL;

	if (!ids || count == 0) {
		snprintf(text, size, "order ids needs the epoch's ids with set epoch");
		return r;
	}
	shard.n = count;
	if (shard_check(&shard, text, size) < 0 || shard_steps(&shard, 0) == 0) {
		snprintf(text, size,
			"%llu ids give no step for world %u, batch %u, accumulate %u, tail %s",
			(unsigned long long)count, shard.world, shard.batch, shard.accumulate,
			order_tail_name((int)shard.tail));
		return r;
	}
	*ret_perm = perms_adopt(
		lane->pipeline->perms, (int)lane->order, ids, count, lane->dataset_n, epoch, &r);
	if (!*ret_perm)
		snprintf(text, size, "%s",
			r == -ERANGE ? "an id is not in the dataset" : strerror(-r));
	return *ret_perm ? 0 : r;
}

int lane_set_epoch(struct lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count,
	struct control_lane *reply, char *text, size_t size)
{
	struct pipeline *p = lane->pipeline;
	struct cursor at = lane->opened_at;
	struct perm *perm = NULL;
	int r = 0;

	r = refuse_past_end(lane, epoch, text, size);
	if (r < 0)
		return r;
	if (order_brings_ids(lane->order)) {
		r = adopt_ids(lane, epoch, ids, count, &perm, text, size);
	} else if (ids) {
		snprintf(text, size, "ids were sent to a lane of order %s",
			order_kind_name((int)lane->order));
		r = -EINVAL;
	}
	if (r < 0)
		return r;
	at.epoch = epoch;
	at.c = 0;
	pthread_mutex_lock(&p->lock);
	if (lane->stopped) {
		r = refuse_stopped(lane, text, size);
	} else {
		restart_at(lane, &at);
		if (perm) {
			lane->perm = perm;
			lane->shard.n = count;
			perm = NULL;
		}
		lane_fill_reply(lane, false, reply);
	}
	pthread_mutex_unlock(&p->lock);
	perm_put(perm);
	return r;
}

uint64_t lane_id(const struct lane *lane)
{
	return lane->id;
}

int lane_doorbell_fd(const struct lane *lane)
{
	return lane->doorbell;
}

void lane_doorbell(struct lane *lane)
{
	struct pipeline *p = lane->pipeline;

	pthread_mutex_lock(&p->lock);
	lane_grant(lane);
	planner_kick(p);
	pthread_mutex_unlock(&p->lock);
}

void lane_drain(struct lane *lane)
{
	struct pipeline *p = lane->pipeline;

	pthread_mutex_lock(&p->lock);
	lane->draining = true;
	lane->stopped = true;
	LIST_FOR_EACH_SAFE (node, tmp, &lane->planned) {
		struct batch *batch = CONTAINER_OF(node, struct batch, link);

		if (!batch->granted)
			batch_drop(batch);
	}
	if (!lane->failed)
		ring_set_state(lane->ring, RING_DRAINING);
	if (lane_drained_locked(lane))
		lane_owe_event(lane);
	pthread_mutex_unlock(&p->lock);
	pipeline_send_events(p);
}

bool lane_drained(const struct lane *lane)
{
	struct pipeline *p = lane->pipeline;
	bool drained;

	pthread_mutex_lock(&p->lock);
	drained = lane->failed || lane_drained_locked(lane);
	pthread_mutex_unlock(&p->lock);
	return drained;
}

void lane_shut(struct lane *lane)
{
	struct pipeline *p = lane->pipeline;

	pthread_mutex_lock(&p->lock);
	lane->stopped = true;
	ring_set_state(lane->ring, RING_CLOSED);
	pthread_mutex_unlock(&p->lock);
}

int lane_error(const struct lane *lane, struct control_error *ret)
{
	struct pipeline *p = lane->pipeline;
	int code;

	pthread_mutex_lock(&p->lock);
	code = lane->failed ? lane->error.code : 0;
	if (code)
		*ret = lane->error;
	pthread_mutex_unlock(&p->lock);
	return code;
}

void pipeline_lane_free(struct lane *lane)
{
	struct pipeline *p;

	if (!lane)
		return;
	p = lane->pipeline;
	pthread_mutex_lock(&p->lock);
	lane->dying = true;
	lane->stopped = true;
	LIST_FOR_EACH_SAFE (node, tmp, &lane->planned)
		batch_drop(CONTAINER_OF(node, struct batch, link));
	/* of a lane that failed or drained, what was published is still to be read */
	if (ring_state(lane->ring) == RING_RUNNING)
		ring_set_state(lane->ring, RING_CLOSED);
	pthread_mutex_unlock(&p->lock);
	reader_cancel(p->reader, &lane->tree);
	pthread_mutex_lock(&p->lock);
	/* after the last lane is freed there is nobody to send events to */
	while (lane->outstanding > 0 || p->sending > 0)
		pthread_cond_wait(&p->drained, &p->lock);
	list_remove(&lane->link);
	p->lane_count--;
	job_put(lane->job);
	planner_kick(p);
	pthread_mutex_unlock(&p->lock);
	dataset_save_verdicts(lane->dataset);
	lane_destroy(lane);
}
