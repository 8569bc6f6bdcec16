/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sample next. Between jobs: the one that has had the least CPU time for its weight
 * (start-time
 * fair queueing: what deficit round-robin approximates with a quantum, without the quantum; a job
 * that was idle starts at the present and has saved nothing up). Inside a job: the lane with the
 * lowest share of ready slots, so that a fast drainer cannot starve a trainer.
 */
#include <stdlib.h>

#include "pipeline/lane.h"

struct job *job_get(struct pipeline *p, uint64_t key, uint32_t weight)
{
	struct job *job;

	LIST_FOR_EACH (node, &p->jobs) {
		job = CONTAINER_OF(node, struct job, link);
		if (job->key == key) {
			job->lanes++;
			return job;
		}
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->key = key;
	job->weight = weight ? weight : 1;
	job->lanes = 1;
	job->virtual_ns = p->virtual_now;
	list_append(&p->jobs, &job->link);
	return job;
}

void job_put(struct job *job)
{
	if (!job || --job->lanes > 0)
		return;
	list_remove(&job->link);
	free(job);
}

void schedule_charge(struct job *job, uint64_t cpu_ns)
{
	job->virtual_ns += cpu_ns / job->weight;
}

void ticket_insert(struct list *tickets, struct ticket *t)
{
	struct list *pos = tickets;

	while (pos->prev != tickets &&
		CONTAINER_OF(pos->prev, struct ticket, link)->batch->number > t->batch->number)
		pos = pos->prev;
	list_add_before(&t->link, pos);
}

void ticket_ready(struct ticket *t)
{
	struct lane *lane = t->batch->lane;
	struct pipeline *p = lane->pipeline;
	struct job *job = lane->job;

	if (job->ready++ == 0 && job->virtual_ns < p->virtual_now)
		job->virtual_ns = p->virtual_now;
	ticket_insert(&lane->ready, t);
	if (p->sleeping_workers > 0)
		pthread_cond_signal(&p->work);
}

/* Whether lane a should go before lane b. */
static bool more_urgent(const struct lane *a, const struct lane *b)
{
	uint64_t held_a = ring_held(a->ring), held_b = ring_held(b->ring);

	if (a->job != b->job)
		return a->job->virtual_ns < b->job->virtual_ns;
	return held_a * ring_slots(b->ring) < held_b * ring_slots(a->ring);
}

/* Whether the lane's uid has its share of workers; one worker is always allowed. */
static bool over_share(const struct lane *lane)
{
	const struct pipeline *p = lane->pipeline;
	unsigned int most = p->active_workers * lane->worker_share / 100, busy = 0;

	if (lane->worker_share >= 100)
		return false;
	LIST_FOR_EACH (node, &p->lanes) {
		const struct lane *other = CONTAINER_OF(node, struct lane, link);

		if (other->uid == lane->uid)
			busy += other->decoding;
	}
	return busy >= (most ? most : 1);
}

/* The most urgent lane with a ticket; shares: of those whose uid has not had its share. */
static struct lane *pick_lane(struct pipeline *p, bool shares)
{
	struct lane *best = NULL;

	LIST_FOR_EACH (node, &p->lanes) {
		struct lane *lane = CONTAINER_OF(node, struct lane, link);

		if (!list_empty(&lane->ready) && (!best || more_urgent(lane, best)) &&
			!(shares && over_share(lane)))
			best = lane;
	}
	return best;
}

struct ticket *schedule_pick(struct pipeline *p)
{
	struct lane *best = pick_lane(p, true);
	struct ticket *t;

	/* a share is for when others wait: workers do not idle for it */
	if (!best)
		best = pick_lane(p, false);
	if (!best)
		return NULL;
	t = CONTAINER_OF(list_pop(&best->ready), struct ticket, link);
	t->state = TICKET_DECODING;
	t->batch->outstanding++;
	best->outstanding++;
	best->decoding++;
	best->job->ready--;
	p->virtual_now = best->job->virtual_ns;
	/* the lanes of a job take turns where they are equally urgent */
	list_remove(&best->link);
	list_append(&p->lanes, &best->link);
	return t;
}
