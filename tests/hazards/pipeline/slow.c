/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample that takes as long as the test wants it to: its read does not come back before a
 * pipe is written to.
 */
#include "hazards/pipeline/faulty.h"

#include <string.h>
#include <unistd.h>

#define SLOTS 3 /* of pipeline_make's rings */
#define SLOW  3 /* the sample's id: rank 1 of 2 has it, in its first batch */

/* Rank `rank` of 2, in listed order, and nothing may be bad. */
static void open_rank(struct control_open_lane *open, uint32_t rank)
{
	request_init(open);
	open->order = ORDER_SEQUENTIAL;
	open->bad = CONTROL_BAD_FAIL;
	open->world = 2;
	open->rank = rank;
}

/* The hash of ten batches of a rank when nothing is slow. */
static uint64_t undisturbed(struct folder *f, uint32_t rank)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;

	open_rank(&open, rank);
	faulty_next(NULL);
	p = pipeline_make(&options);
	consumer_open(&c, p, f, &open);
	for (unsigned int i = 0; i < 10; i++)
		assert_true(consumer_next(&c, &d));
	consumer_close(&c);
	pipeline_free(p);
	return c.bytes_hash;
}

static bool is_published(struct consumer *c, uint64_t n)
{
	const struct ring_words *words = ring_map_words(&c->map);

	return (int32_t)(ring_load_acquire(&words->published) - (uint32_t)n) >= 0;
}

/* Encoded bytes of all that rank 1 can decode without the slow sample: the ring's slots. */
static uint64_t bytes_around(const struct folder *f)
{
	uint64_t bytes = 0;
	struct sample sample;

	for (uint64_t i = 0; i < SLOTS * 8; i++) {
		dataset_sample(f->dataset, 1 + 2 * i, &sample);
		bytes += 1 + 2 * i == SLOW ? 0 : sample.length;
	}
	return bytes;
}

/*
 * Nothing is published before the slow sample, but everything behind it is read and decoded as far
 * as the ring reaches, and another lane runs on; then all comes, in order and as ever.
 */
static void c36_a_slow_sample_delays_only_its_lane(void **state)
{
	struct reader_faults faults = { .seed = 1, .only = "a/003.jpg", .never = 1000 };
	struct pipeline_options options = { .workers = 2, .reader = READER_PREAD };
	struct control_open_lane open;
	struct consumer slow, other;
	struct ring_descriptor d;
	uint64_t want[2], waited;
	struct pipeline *p;
	struct folder f;
	int gate[2];

	(void)state;
	folder_make(&f);
	folder_open(&f);
	want[0] = undisturbed(&f, 0);
	want[1] = undisturbed(&f, 1);
	assert_int_equal(pipe(gate), 0);
	faults.never_fd = gate[0];
	faulty_next(&faults);
	p = pipeline_make(&options);
	open_rank(&open, 1);
	consumer_open(&slow, p, &f, &open);
	open_rank(&open, 0);
	consumer_open(&other, p, &f, &open);
	for (unsigned int i = 0; i < 10; i++)
		assert_true(consumer_next(&other, &d));
	assert_true(other.bytes_hash == want[0]);
	while (lane_counter(slow.lane, STATS_LANE_encoded_bytes) < bytes_around(&f))
		usleep(1000);
	assert_int_equal(lane_counter(slow.lane, STATS_LANE_encoded_bytes), bytes_around(&f));
	assert_int_equal(lane_counter(slow.lane, STATS_LANE_batches), 0);
	assert_false(is_published(&slow, 1));
	usleep(300000); /* most of what the batch waits for, the workers sleep */

	assert_int_equal(write(gate[1], "x", 1), 1);
	for (unsigned int i = 0; i < 10; i++) {
		assert_true(consumer_next(&slow, &d));
		assert_int_equal(d.number, i + 1);
		/* as libfeeder does: what it waited for the first batch */
		if (i == 0)
			ring_store_relaxed64(&ring_map_telemetry(&slow.map)->wait_ns, 1000000);
	}
	assert_true(slow.bytes_hash == want[1]);
	assert_int_equal(lane_counter(slow.lane, STATS_LANE_consumer_wait), 1000000);
	waited = 0;
	for (int i = STATS_LANE_wait_order; i <= STATS_LANE_wait_transform; i++)
		waited += lane_counter(slow.lane, (enum stats_lane)i);
	assert_in_range(waited, 990000, 1000000);
	/* the workers slept: it was reading, though batches behind it came out at once */
	assert_true(lane_counter(slow.lane, STATS_LANE_wait_read) > waited / 2);
	assert_int_equal(lane_counter(slow.lane, STATS_LANE_bad_samples), 0);

	consumer_close(&other);
	consumer_close(&slow);
	pipeline_free(p);
	close(gate[0]);
	close(gate[1]);
	folder_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c36_a_slow_sample_delays_only_its_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
