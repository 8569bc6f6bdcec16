/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers: each takes one sample at a time and decodes it straight into its place in the slot.
 * Nothing on this path allocates once warm, opens or logs.
 */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "pipeline/lane.h"

#define LABEL_IGNORED     (-100) /* cross-entropy's ignore_index */
#define PIN_CHECK_SAMPLES 1024
#define FIELD_IMAGES      0
#define FIELD_LABELS      1

void ticket_uncount(struct ticket *t)
{
	t->batch->lane->ahead_bytes -= t->ahead;
	t->ahead = 0;
}

void ticket_drop_bytes(struct ticket *t)
{
	struct lane *lane = t->batch->lane;
	uint64_t freed;

	ticket_uncount(t);
	if (!t->bytes)
		return;
	freed = t->bytes->capacity;
	bytes_give(lane->pipeline->bytes, t->bytes);
	t->bytes = NULL;
	planner_kick_bytes(lane->pipeline, freed, false);
}

void ticket_came_back(struct ticket *t)
{
	struct batch *batch = t->batch;
	struct lane *lane = batch->lane;

	batch->outstanding--;
	lane->outstanding--;
	if (batch->zombie) {
		ticket_drop_bytes(t);
		if (batch->outstanding == 0) {
			list_remove(&batch->link);
			list_append(&lane->free, &batch->link);
		}
		planner_kick(lane->pipeline);
	}
	if (lane->dying && lane->outstanding == 0)
		pthread_cond_broadcast(&lane->pipeline->drained);
	if (lane_drained_locked(lane))
		lane_owe_event(lane);
}

void ticket_failed(struct ticket *t, const struct fault *fault)
{
	struct batch *batch = t->batch;
	struct lane *lane = batch->lane;

	ticket_drop_bytes(t);
	if (t->substitute == 0)
		t->fault = *fault;
	if (lane->bad == CONTROL_BAD_SUBSTITUTE && t->substitute < SUBSTITUTES_MAX) {
		t->id = substitute_id(t->id_asked, t->substitute, lane->dataset_n);
		t->substitute++;
		dataset_sample(lane->dataset, t->id, &t->sample);
		t->state = TICKET_PLANNED;
		if (batch->granted)
			lane->slotted_reads--;
		ticket_insert(&lane->reread, t);
		planner_kick(lane->pipeline);
		return;
	}
	t->masked = true;
	t->state = TICKET_READ;
	if (batch->granted)
		ticket_ready(t);
}

void ticket_done(struct ticket *t)
{
	struct batch *batch = t->batch;
	struct lane *lane = batch->lane;

	ticket_drop_bytes(t);
	t->state = TICKET_DONE;
	lane->slotted_reads--;
	if (++batch->done == lane->capacity)
		lane_publish(lane);
}

/* The place's record in the descriptor; every byte of it is written. */
static void write_place(const struct ticket *t, const struct sample_result *result, bool pixels)
{
	const struct lane *lane = t->batch->lane;
	struct ring_place *place = ring_place(lane->ring, t->batch->number, t->place);
	struct ring_extent images = ring_field_extent(lane->ring, FIELD_IMAGES);
	int64_t *labels = ring_field_data(lane->ring, t->batch->number, FIELD_LABELS);
	int64_t label = pixels ? t->sample.label : LABEL_IGNORED;

	labels[t->place] = label;
	*place = (struct ring_place){
		.id_asked = t->id_asked,
		.id = pixels ? t->id : t->id_asked,
		.position = t->position,
		.kind = pixels ? RING_PIXELS : RING_BLANK,
		.status = (uint32_t)t->fault.status,
		.offset = images.offset + t->place * lane->recipe.place_bytes,
		.length = lane->recipe.place_bytes,
		.box_x = result->box.x,
		.box_y = result->box.y,
		.box_w = result->box.w,
		.box_h = result->box.h,
		.flip = result->flip,
		.source_w = result->source_w,
		.source_h = result->source_h,
		.valid = pixels,
		.label = label,
		.substitute = pixels ? t->substitute : 0,
	};
}

static uint8_t *place_data(const struct ticket *t)
{
	const struct lane *lane = t->batch->lane;
	uint8_t *images = ring_field_data(lane->ring, t->batch->number, FIELD_IMAGES);

	return images + t->place * lane->recipe.place_bytes;
}

static void blank_place(struct ticket *t)
{
	const struct lane *lane = t->batch->lane;
	struct sample_result nothing = { .flip = false };

	recipe_blank(&lane->recipe, place_data(t));
	write_place(t, &nothing, false);
	if (t->valid && lane->recipe.pixel_digest)
		t->pixel_digest = digest_pixels(t->batch->epoch, t->position, t->id_asked, NULL,
			lane->recipe.packed_bytes, LABEL_IGNORED);
}

/* Works on one ticket with no lock held: it is this worker's alone. 0 or a status. */
static int work_on(
	struct worker *worker, struct ticket *t, struct sample_result *result, struct fault *fault)
{
	struct lane *lane = t->batch->lane;
	struct sample_input in;
	int status;

	memset(result, 0, sizeof(*result));
	if (t->batch->number <= ring_slots(lane->ring))
		ring_populate(place_data(t), lane->recipe.place_bytes);
	if (t->blank || t->masked) {
		blank_place(t);
		return 0;
	}
	in = (struct sample_input){
		.bytes = t->bytes->data,
		.size = t->sample.length,
		.verdict = dataset_verdict(lane->dataset, t->id),
		.id = t->id,
		.epoch = t->batch->epoch,
		.id_asked = t->id_asked,
		.position = t->position,
		.label = t->sample.label,
	};
	if (bench_fit(&worker->bench, &lane->recipe) < 0)
		return fault_set(fault, FEEDER_STATUS_INTERNAL, 0, "out of memory in a worker");
	status = recipe_run(&lane->recipe, &worker->bench, &in, place_data(t), result, fault);
	if (result->verdict)
		dataset_set_verdict(lane->dataset, t->id, result->verdict);
	if (status == 0) {
		t->pixel_digest = result->pixel_digest;
		write_place(t, result, true);
	}
	return status;
}

static void account(struct ticket *t, const struct sample_result *result)
{
	struct lane *lane = t->batch->lane;

	lane->counters[STATS_LANE_decode_cpu] += result->decode_ns;
	lane->counters[STATS_LANE_transform_cpu] += result->transform_ns;
	if (t->bytes)
		lane->counters[STATS_LANE_encoded_bytes] += t->sample.length;
	schedule_charge(lane->job, result->decode_ns + result->transform_ns);
}

static void run_one(struct worker *worker, struct ticket *t)
{
	struct pipeline *p = worker->pipeline;
	struct sample_result result;
	struct fault fault;
	int status;

	pthread_mutex_unlock(&p->lock);
	status = work_on(worker, t, &result, &fault);
	pthread_mutex_lock(&p->lock);
	account(t, &result);
	if (result.cpu_ns)
		worker->cpu_ns = result.cpu_ns;
	t->batch->lane->decoding--;
	if (t->batch->zombie)
		t->batch->lane->stale_decoding--;
	else if (status)
		ticket_failed(t, &fault);
	else
		ticket_done(t);
	ticket_came_back(t);
}

void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct pipeline *p = worker->pipeline;
	uint64_t samples = 0;

	thread_worker_policy();
	thread_pin_node(worker->index);
	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		struct ticket *t = NULL;

		if (worker->index >= p->active_workers) {
			pthread_cond_wait(&p->inactive, &p->lock);
			continue;
		}
		t = schedule_pick(p);
		if (t) {
			run_one(worker, t);
			if (++samples % PIN_CHECK_SAMPLES == 0)
				worker->repinned += (uint64_t)thread_pin_check();
			if (p->events) {
				pthread_mutex_unlock(&p->lock);
				pipeline_send_events(p);
				pthread_mutex_lock(&p->lock);
			}
			continue;
		}
		uint64_t idle = now_ns();

		planner_kick_bytes(p, 0, true);
		p->sleeping_workers++;
		p->sleep_started_sum += idle;
		pthread_cond_wait(&p->work, &p->lock);
		p->sleeping_workers--;
		p->sleep_started_sum -= idle;
		p->idle_ns += now_ns() - idle;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}
