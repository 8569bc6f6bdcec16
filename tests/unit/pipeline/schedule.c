/* SPDX-License-Identifier: Apache-2.0 */
/* Which ticket a worker takes next, and events that are owed: without threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/lane.h"

#define LANES 80

static struct pipeline pipeline;
static struct job jobs[LANES];
static struct lane lanes[LANES];
static struct batch batches[LANES];
static struct ticket tickets[LANES];
static struct ring *ring;
static unsigned int events;

static void count_event(void *context, uint64_t lane)
{
	(void)context;
	(void)lane;
	events++;
}

static int setup(void **state)
{
	struct ring_shape shape = {
		.slots = 2,
		.capacity = 1,
		.field_count = 1,
		.fields = { { .name = "images",
			.dtype = 1,
			.ndim = 1,
			.shape = { 1 },
			.strides = { 1 },
			.place_bytes = 1 } },
		.numa_node = -1,
	};
	char text[256];

	(void)state;
	memset(&pipeline, 0, sizeof(pipeline));
	pipeline.active_workers = 4;
	pipeline.config.lane_event = count_event;
	pthread_mutex_init(&pipeline.lock, NULL);
	pthread_cond_init(&pipeline.drained, NULL);
	list_init(&pipeline.lanes);
	events = 0;
	if (ring_new(&ring, &shape, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ring_free(ring);
	pthread_mutex_destroy(&pipeline.lock);
	pthread_cond_destroy(&pipeline.drained);
	return 0;
}

/* Lane i of a user of its own, with one ticket to decode. */
static void add_lane(unsigned int i, unsigned int share, unsigned int decoding)
{
	memset(&lanes[i], 0, sizeof(lanes[i]));
	memset(&jobs[i], 0, sizeof(jobs[i]));
	memset(&batches[i], 0, sizeof(batches[i]));
	memset(&tickets[i], 0, sizeof(tickets[i]));
	lanes[i].pipeline = &pipeline;
	lanes[i].id = i;
	lanes[i].uid = i;
	lanes[i].ring = ring;
	lanes[i].job = &jobs[i];
	lanes[i].worker_share = share;
	lanes[i].decoding = decoding;
	list_init(&lanes[i].ready);
	batches[i].lane = &lanes[i];
	tickets[i].batch = &batches[i];
	list_append(&pipeline.lanes, &lanes[i].link);
	ticket_ready(&tickets[i]);
}

/* workers_share caps a user while another's lane has work, and leaves no worker idle else. */
static void a_share_holds_while_others_wait(void **state)
{
	(void)state;
	add_lane(0, 25, 1);
	add_lane(1, 25, 0);
	jobs[1].virtual_ns = 1000; /* lane 0 would be first */
	assert_ptr_equal(schedule_pick(&pipeline), &tickets[1]);
	assert_ptr_equal(schedule_pick(&pipeline), &tickets[0]);
	assert_null(schedule_pick(&pipeline));
}

static void least_served_job_first(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		add_lane(i, 100, 0);
	jobs[0].virtual_ns = 3;
	jobs[1].virtual_ns = 1;
	jobs[2].virtual_ns = 2;
	assert_ptr_equal(schedule_pick(&pipeline), &tickets[1]);
	assert_ptr_equal(schedule_pick(&pipeline), &tickets[2]);
	assert_ptr_equal(schedule_pick(&pipeline), &tickets[0]);
}

/* Each event is sent once, and then nobody looks for events any more. */
static void events_are_sent_once(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < LANES; i++) {
		add_lane(i, 100, 0);
		lane_owe_event(&lanes[i]);
	}
	assert_true(pipeline.events);
	while (pipeline.events)
		pipeline_send_events(&pipeline);
	assert_int_equal(events, LANES);
	pipeline_send_events(&pipeline);
	assert_int_equal(events, LANES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_share_holds_while_others_wait),
		TEST(least_served_job_first),
		TEST(events_are_sent_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
