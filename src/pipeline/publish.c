/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: complete batches leave in order, with their descriptor; here bad samples are counted,
 * budgets and the policy `fail` are judged, both in the lane's order and so the same for any number
 * of workers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/lane.h"

#define BUDGET_PERCENT 5
#define BUDGET_MIN     16
#define EVENTS_MAX     64

void lane_fail(struct lane *lane, int code, uint64_t sample, int status, const char *format, ...)
{
	va_list ap;

	if (lane->failed)
		return;
	lane->failed = true;
	lane->stopped = true;
	lane->error = (struct control_error){
		.size = sizeof(lane->error),
		.code = code,
		.status = (uint32_t)status,
		.sample = sample,
	};
	va_start(ap, format);
	vsnprintf(lane->error.text, sizeof(lane->error.text), format, ap);
	va_end(ap);
	ring_set_state(lane->ring, RING_FAILED);
	lane_owe_event(lane);
}

/* "DATASET/path (sample 12): decode: the reason" */
static void describe(
	struct lane *lane, uint64_t id, const struct fault *fault, char *ret, size_t size)
{
	char path[1024];

	if (dataset_path(lane->dataset, id, path, sizeof(path)) < 0)
		snprintf(path, sizeof(path), "(a path of over %zu bytes)", sizeof(path));
	snprintf(ret, size, "%s/%s (sample %llu): %s: %s", dataset_display(lane->dataset), path,
		(unsigned long long)id, status_word(fault->status), fault->text);
}

static const struct ticket *first_bad(const struct batch *batch)
{
	for (uint32_t i = 0; i < batch->lane->capacity; i++) {
		if (batch->tickets[i].fault.status)
			return &batch->tickets[i];
	}
	return NULL;
}

static uint64_t bad_budget(const struct lane *lane)
{
	uint64_t places = shard_valid(&lane->shard, 0) * BUDGET_PERCENT / 100;

	return places > BUDGET_MIN ? places : BUDGET_MIN;
}

static void fail_over_budget(struct lane *lane, const struct batch *batch)
{
	char first[3][256];
	uint32_t n = lane->cases.count < 3 ? lane->cases.count : 3;

	memset(first, 0, sizeof(first));
	for (uint32_t i = 0; i < n; i++)
		describe(lane, lane->cases.rows[i].id, &lane->cases.rows[i].fault, first[i],
			sizeof(first[i]));
	lane_fail(lane, -EBADMSG, lane->cases.count ? lane->cases.rows[0].id : 0,
		lane->cases.count ? lane->cases.rows[0].fault.status : 0,
		"epoch %llu: %llu bad samples are over the budget of %llu (%d %% of this lane's "
		"samples, at least %d); the first: %s%s%s%s%s; `feeder-stat errors` lists them all",
		(unsigned long long)batch->epoch, (unsigned long long)lane->epoch_bad,
		(unsigned long long)bad_budget(lane), BUDGET_PERCENT, BUDGET_MIN, first[0],
		n > 1 ? "; " : "", first[1], n > 2 ? "; " : "", first[2]);
}

/* Counts the batch's bad samples; false when the lane fails by them. */
static bool judge(struct lane *lane, struct batch *batch, uint32_t *ret_bad)
{
	const struct ticket *bad = first_bad(batch);
	uint32_t count = 0;
	char text[1024 + 512];

	*ret_bad = 0;
	if (!bad)
		return true;
	if (lane->epoch_bad_of != batch->epoch) {
		lane->epoch_bad_of = batch->epoch;
		lane->epoch_bad = 0;
	}
	for (uint32_t i = 0; i < lane->capacity; i++) {
		struct ticket *t = &batch->tickets[i];

		if (!t->fault.status)
			continue;
		cases_add(&lane->cases, t->id_asked, batch->epoch, &t->fault);
		count++;
		if (t->masked)
			lane->counters[STATS_LANE_masked]++;
		else
			lane->counters[STATS_LANE_substituted]++;
	}
	lane->counters[STATS_LANE_bad_samples] += count;
	lane->epoch_bad += count;
	*ret_bad = count;
	if (lane->bad == CONTROL_BAD_FAIL) {
		describe(lane, bad->id_asked, &bad->fault, text, sizeof(text));
		lane_fail(lane, -EBADMSG, bad->id_asked, bad->fault.status,
			"%.800s; bad samples end this lane (bad = fail): use mask or substitute to "
			"go on",
			text);
		return false;
	}
	if (lane->epoch_bad > bad_budget(lane)) {
		fail_over_budget(lane, batch);
		return false;
	}
	return true;
}

uint64_t pipeline_idle_ns(const struct pipeline *p, uint64_t now)
{
	return p->idle_ns + p->sleeping_workers * now - p->sleep_started_sum;
}

/*
 * Adds the time that the client says it waited to the stages that were short meanwhile: the client
 * counts a wait when it has ended, which may be some publications after the one that ended it.
 */
static void attribute_wait(struct lane *lane)
{
	static const enum stats_lane stage[4] = { STATS_LANE_wait_order, STATS_LANE_wait_read,
		STATS_LANE_wait_decode, STATS_LANE_wait_transform };
	struct ring_telemetry t = ring_telemetry(lane->ring);
	uint64_t waited = t.wait_ns - lane->seen_wait_ns;
	double total = 0;

	/* a client's word: nonsense is dropped; the rest only shows in its own statistics */
	if (t.wait_ns < lane->seen_wait_ns || waited > now_ns() - lane->opened_ns)
		waited = 0;
	lane->seen_wait_ns = t.wait_ns;
	if (waited == 0)
		return;
	for (int i = 0; i < 4; i++)
		total += lane->short_ns[i];
	for (int i = 0; i < 4; i++) {
		if (total > 0)
			lane->counters[stage[i]] +=
				(uint64_t)((double)waited * lane->short_ns[i] / total);
		lane->short_ns[i] = 0;
	}
}

/*
 * What this batch was short of since the publication before: while workers slept for want of
 * samples it was reading (or the order, before the lane's first read); for the rest the CPU. A
 * batch that finds an earlier one still waiting for the consumer was not short of anything.
 */
static void note_short(struct lane *lane, const struct batch *batch, uint64_t now)
{
	const struct pipeline *p = lane->pipeline;
	uint64_t begin = lane->last_publish_ns ? lane->last_publish_ns : lane->opened_ns;
	double total = now > begin ? (double)(now - begin) : 1.0;
	double idle =
		(double)(pipeline_idle_ns(p, now) - lane->idle_mark) / (double)p->active_workers;
	double decode = (double)lane->counters[STATS_LANE_decode_cpu];
	double cpu = decode + (double)lane->counters[STATS_LANE_transform_cpu];
	double decoding = cpu > 0 ? decode / cpu : 1.0;
	double order = 0;

	lane->idle_mark = pipeline_idle_ns(p, now);
	if (ring_held(lane->ring) > 1)
		return;
	if (idle > total)
		idle = total;
	if (!lane->last_publish_ns && batch->first_read_ns > begin)
		order = (double)(batch->first_read_ns - begin);
	if (order > idle)
		order = idle;
	lane->short_ns[0] += order;
	lane->short_ns[1] += idle - order;
	lane->short_ns[2] += (total - idle) * decoding;
	lane->short_ns[3] += (total - idle) * (1.0 - decoding);
}

static void write_descriptor(struct lane *lane, struct batch *batch, uint32_t bad, uint64_t now)
{
	struct ring_descriptor d = {
		.number = batch->number,
		.generation = batch->generation,
		.flags = batch->steps_left == 0 ? RING_LAST_OF_EPOCH : 0,
		.epoch = batch->epoch,
		.step = batch->step,
		.capacity = lane->capacity,
		.count = batch->count,
		.batches_left = batch->steps_left,
		.read_ns = batch->first_read_ns,
		.ready_ns = now,
		.published_ns = now,
		.bad_count = bad,
		.cursor_size = CURSOR_SIZE,
	};

	for (uint32_t i = 0; i < lane->capacity; i++) {
		d.order_digest += batch->tickets[i].order_digest;
		d.pixel_digest += batch->tickets[i].pixel_digest;
	}
	cursor_encode(&batch->after, d.cursor);
	d.fields[0] = ring_field_extent(lane->ring, 0);
	d.fields[1] = ring_field_extent(lane->ring, 1);
	*ring_descriptor(lane->ring, batch->number) = d;
	lane->counters[STATS_LANE_order_digest] += d.order_digest;
	lane->counters[STATS_LANE_pixel_digest] += d.pixel_digest;
}

static void publish(struct lane *lane, struct batch *batch, uint32_t bad)
{
	uint64_t now = now_ns();

	write_descriptor(lane, batch, bad, now);
	ring_publish(lane->ring, batch->number);
	attribute_wait(lane);
	note_short(lane, batch, now);
	lane->last_publish_ns = now;
	if (!lane->counters[STATS_LANE_first_batch])
		lane->counters[STATS_LANE_first_batch] = now - lane->opened_ns;
	lane->counters[STATS_LANE_batches]++;
	lane->counters[STATS_LANE_samples] += batch->count;
	lane->counters[STATS_LANE_epoch] = batch->epoch;
	lane->counters[STATS_LANE_step] = batch->step;
	lane->counters[STATS_LANE_position] = batch->after.c;
}

bool lane_drained_locked(const struct lane *lane)
{
	return lane->draining && list_empty(&lane->planned) && lane->outstanding == 0;
}

void lane_publish(struct lane *lane)
{
	while (!lane->failed && !list_empty(&lane->planned)) {
		struct batch *batch = CONTAINER_OF(lane->planned.next, struct batch, link);
		uint32_t bad;

		if (!batch->granted || batch->done < lane->capacity)
			break;
		if (!judge(lane, batch, &bad))
			break;
		publish(lane, batch, bad);
		list_remove(&batch->link);
		/*
		 * its last ticket may still be in its worker's hands: as a zombie it waits for
		 * that
		 */
		if (batch->outstanding > 0) {
			batch->zombie = true;
			list_append(&lane->zombies, &batch->link);
		} else {
			list_append(&lane->free, &batch->link);
		}
		planner_kick(lane->pipeline);
	}
	if (lane_drained_locked(lane))
		lane_owe_event(lane);
}

void lane_owe_event(struct lane *lane)
{
	lane->event = true;
	lane->pipeline->events = true;
}

void pipeline_send_events(struct pipeline *p)
{
	uint64_t ids[EVENTS_MAX];
	unsigned int count = 0;

	pthread_mutex_lock(&p->lock);
	p->events = false;
	LIST_FOR_EACH (node, &p->lanes) {
		struct lane *lane = CONTAINER_OF(node, struct lane, link);

		if (!lane->event)
			continue;
		if (count == EVENTS_MAX) {
			p->events = true;
			break;
		}
		lane->event = false;
		ids[count++] = lane->id;
	}
	p->sending++;
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < count; i++)
		p->config.lane_event(p->config.context, ids[i]);
	pthread_mutex_lock(&p->lock);
	if (--p->sending == 0)
		pthread_cond_broadcast(&p->drained);
	pthread_mutex_unlock(&p->lock);
}
