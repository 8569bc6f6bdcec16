/* SPDX-License-Identifier: Apache-2.0 */
/* Every verdict, from two snapshots a second apart or from one. */
#include "sample.h"

#include <string.h>

#include "protocol/ring.h"
#include "tools/stat/why.h"

struct pair {
	struct snapshot before;
	struct snapshot now;
	uint64_t *c; /* of lane 0, now */
};

static int setup(void **state)
{
	static struct pair p;

	sample_new(&p.before, 2);
	sample_later(&p.now, &p.before, SAMPLE_SECOND);
	p.c = p.now.lanes[0].counters;
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	snapshot_free(&p->before);
	snapshot_free(&p->now);
	return 0;
}

static uint64_t ms(uint64_t n)
{
	return n * 1000000;
}

/* The consumer took 10 batches and waited so long for a stage. */
static void consume(struct pair *p, enum stats_lane stage, uint64_t wait_ms)
{
	p->c[STATS_LANE_batches] += 10;
	p->c[STATS_LANE_consumed] += 10;
	p->c[STATS_LANE_consumer_wait] += ms(wait_ms);
	p->c[stage] += ms(wait_ms);
}

static void expect(const struct pair *p, unsigned int cpus, enum why_kind kind, const char *words)
{
	struct verdict v;

	why_lane(&v, &p->before, &p->now, 0, cpus);
	if (v.kind != kind || !strstr(v.text, words))
		print_error("%s: %s\n", why_word(v.kind), v.text);
	assert_int_equal(v.kind, kind);
	assert_non_null(strstr(v.text, words));
}

static void decoding_is_the_limit_with_busy_workers(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 310);
	p->c[STATS_LANE_consumer_wait] += ms(30);
	p->c[STATS_LANE_wait_read] += ms(30);
	p->now.daemon[STATS_DAEMON_worker_cpu] += ms(1960);
	expect(p, 4, WHY_DECODE,
		"decoding is the limit: the consumer waited 34 % of the time, 91 % of that for "
		"decoding; 2 workers were 98 % busy, for 1 other lane too: more workers (4 CPUs "
		"are "
		"allowed");
	expect(p, 2, WHY_DECODE, ": more workers (or a larger CPU quota) would help");
}

/* C36: a slow sample holds its batch up while the workers have nothing to do */
static void decoding_with_idle_workers_names_slow_samples(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 310);
	p->now.daemon[STATS_DAEMON_worker_cpu] += ms(400);
	p->now.daemon[STATS_DAEMON_worker_idle] += ms(1500);
	expect(p, 4, WHY_DECODE,
		"20 % busy, for 1 other lane too: they had time to spare, so single "
		"slow samples");
}

static void workers_that_get_no_cpu_are_not_called_idle(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 900);
	p->now.daemon[STATS_DAEMON_worker_cpu] += ms(400);
	p->now.daemon[STATS_DAEMON_worker_idle] += ms(200);
	expect(p, 4, WHY_DECODE,
		"20 % busy, for 1 other lane too, and wanted a CPU for 90 % of the time: other "
		"processes, or a quota, keep the CPUs from them");
}

static void reading_is_the_limit(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_read, 500);
	p->now.daemon[STATS_DAEMON_read_bytes] += 12500000;
	expect(p, 4, WHY_READ,
		"reading is the limit: the consumer waited 50 % of the time, 100 % of that for "
		"reading; 12.5 MB/s with 5 reads in flight: faster storage");
	p->now.daemon[STATS_DAEMON_readahead_bytes] = 250 << 20;
	expect(p, 4, WHY_READ, "the read-ahead holds 250 of its 256 MiB: a larger budget");
}

static void transforming_and_the_permutation_can_be_the_limit(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_transform, 200);
	expect(p, 4, WHY_TRANSFORM, "transforming is the limit: the consumer waited 20 %");
	p->c[STATS_LANE_wait_order] += ms(700);
	p->c[STATS_LANE_consumer_wait] += ms(700);
	expect(p, 4, WHY_ORDER, "the permutation is the limit: the consumer waited 90 %");
}

static void the_consumer_is_the_limit_when_the_ring_was_full(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 3);
	p->c[STATS_LANE_ring_full] += ms(870);
	expect(p, 4, WHY_CONSUMER,
		"the consumer is the limit: every slot was ready for 87 % of the time, and it "
		"waited "
		"0.3 %");
}

static void nothing_is_short_when_nobody_waits(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 9);
	p->c[STATS_LANE_ring_full] += ms(200);
	expect(p, 4, WHY_NONE,
		"nothing is short: the consumer waited 0.9 % of the time, and every slot was ready "
		"for 20 %");
	p->c[STATS_LANE_consumer_wait] += ms(2);
	expect(p, 4, WHY_DECODE, "waited 1.1 %");
}

static void a_wait_not_yet_divided_is_said_to_be_so(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 0);
	p->c[STATS_LANE_consumer_wait] += ms(400);
	expect(p, 4, WHY_STALLED, "waited 40 % of the time, for a stage that is not known yet");
}

static void a_full_ring_that_nobody_reads_is_idle(void **state)
{
	struct pair *p = *state;

	p->c[STATS_LANE_ready] = 4;
	p->c[STATS_LANE_ring_full] += ms(1000);
	expect(p, 4, WHY_IDLE, "idle: nobody asked for a batch for 1.0 s; all 4 slots are ready");
	p->c[STATS_LANE_consumed] = 0;
	p->c[STATS_LANE_batches] = 4;
	p->before.lanes[0].counters[STATS_LANE_batches] = 4;
	expect(p, 4, WHY_IDLE, "idle: nobody has asked for a batch for 51.0 s, since the lane was");
}

static void a_lane_that_is_through_is_idle(void **state)
{
	struct pair *p = *state;

	p->c[STATS_LANE_ready] = 0;
	p->now.daemon[STATS_DAEMON_reads_in_flight] = 0;
	expect(p, 4, WHY_IDLE, "idle: no batch was asked for or prepared for 1.0 s; 0 of 4");
}

static void a_batch_that_does_not_come_is_a_stall_with_its_cause(void **state)
{
	struct pair *p = *state;

	p->c[STATS_LANE_ready] = 0;
	expect(p, 4, WHY_STALLED,
		"stalled: no batch came for 1.0 s, though only 0 of 4 slots are ready; it waits "
		"for 5 "
		"reads in flight");
	p->now.daemon[STATS_DAEMON_worker_cpu] += ms(1900);
	expect(p, 4, WHY_STALLED, "slots are ready; 2 workers were 95 % busy");
}

static void a_lane_without_a_batch_is_starting(void **state)
{
	struct pair *p = *state;

	p->c[STATS_LANE_batches] = p->before.lanes[0].counters[STATS_LANE_batches] = 0;
	p->c[STATS_LANE_consumed] = p->c[STATS_LANE_ready] = 0;
	expect(p, 4, WHY_STARTING,
		"starting: no batch yet, 51.0 s after the lane was opened; it waits");
	p->c[STATS_LANE_batches] = p->c[STATS_LANE_ready] = 2;
	expect(p, 4, WHY_STARTING, "starting: 2 of 4 slots are ready, and none was taken yet");
}

static void states_come_first(void **state)
{
	struct pair *p = *state;

	consume(p, STATS_LANE_wait_decode, 500);
	p->now.lanes[0].state = RING_FAILED;
	expect(p, 4, WHY_FAILED, "failed: ");
	p->now.lanes[0].state = RING_DRAINING;
	expect(p, 4, WHY_DRAINING, "draining: ");
	p->now.lanes[0].state = RING_CLOSED;
	expect(p, 4, WHY_CLOSED, "closed: ");
}

/* From one snapshot: all the time of the lane, and the CPU that the daemon used in it. */
static void one_snapshot_judges_since_the_lane_opened(void **state)
{
	struct pair *p = *state;
	struct verdict v;

	p->c[STATS_LANE_opened] = 10 * SAMPLE_SECOND;
	p->c[STATS_LANE_consumer_wait] = 5 * SAMPLE_SECOND;
	p->c[STATS_LANE_wait_decode] = 4 * SAMPLE_SECOND;
	why_lane(&v, NULL, &p->now, 0, 4);
	assert_int_equal(v.kind, WHY_DECODE);
	assert_float_equal(v.waited, 0.5, 1e-9);
	assert_float_equal(v.share, 1.0, 1e-9);
	/* 22 s used by the process, 10 s when the lane opened: 12 s in 10 s by 2 workers */
	assert_non_null(strstr(v.text, "2 workers were 60 % busy"));
}

static void a_lane_opened_in_between_counts_from_its_opening(void **state)
{
	struct pair *p = *state;
	struct verdict v;

	p->before.lanes[0].lane = 99;
	p->c[STATS_LANE_opened] = ms(500);
	p->c[STATS_LANE_consumer_wait] = ms(250);
	p->c[STATS_LANE_wait_read] = ms(250);
	why_lane(&v, &p->before, &p->now, 0, 4);
	assert_int_equal(v.kind, WHY_READ);
	assert_float_equal(v.waited, 0.5, 1e-9);
}

/* A client's own count is shown, and cannot break the arithmetic. */
static void nonsense_counts_stay_in_their_bounds(void **state)
{
	struct pair *p = *state;
	struct verdict v;

	consume(p, STATS_LANE_wait_read, 10);
	p->c[STATS_LANE_consumer_wait] = UINT64_MAX;
	why_lane(&v, &p->before, &p->now, 0, 4);
	assert_float_equal(v.waited, 1.0, 0);
	p->before.lanes[0].counters[STATS_LANE_consumer_wait] = UINT64_MAX;
	p->c[STATS_LANE_consumer_wait] = 5;
	why_lane(&v, &p->before, &p->now, 0, 4);
	assert_float_equal(v.waited, 0.0, 0);
}

static void expect_daemon(const struct pair *p, unsigned int cpus, unsigned int count,
	enum why_kind kind, const char *words)
{
	struct verdict v[WHY_DAEMON_MAX];

	assert_int_equal(why_daemon(v, &p->before, &p->now, cpus), count);
	if (count == 0)
		return;
	if (!strstr(v[0].text, words))
		print_error("%s\n", v[0].text);
	assert_int_equal(v[0].kind, kind);
	assert_non_null(strstr(v[0].text, words));
}

static void workers_that_take_the_ranks_cpus_are_named(void **state)
{
	struct pair *p = *state;

	p->now.daemon[STATS_DAEMON_workers] = 4;
	p->now.daemon[STATS_DAEMON_worker_cpu] += ms(3900);
	assert_int_equal(why_ranks(&p->now), 2);
	expect_daemon(p, 4, 1, WHY_TRAINER,
		"feeder's own CPU use may delay the trainer: 4 workers kept 3.9 of 4 CPUs busy, "
		"and 2 "
		"ranks need one each: feederd --workers 2 would leave room");
	expect_daemon(p, 6, 0, WHY_NONE, "");
	expect_daemon(p, 0, 0, WHY_NONE, ""); /* not known: nothing is claimed */
	p->now.lanes[1].rank = 0;             /* train and eval of one rank */
	assert_int_equal(why_ranks(&p->now), 1);
	expect_daemon(p, 5, 0, WHY_NONE, "");
	snprintf(p->now.lanes[1].job, sizeof(p->now.lanes[1].job), "another");
	assert_int_equal(why_ranks(&p->now), 2);
}

static void d42_quota_throttling_is_named(void **state)
{
	struct pair *p = *state;

	p->now.daemon[STATS_DAEMON_throttled] += ms(5);
	expect_daemon(p, 4, 0, WHY_NONE, "");
	p->now.daemon[STATS_DAEMON_throttled] += ms(225);
	expect_daemon(p, 4, 1, WHY_THROTTLED,
		"the cgroup's CPU quota stopped the daemon for 23 % of the time");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(decoding_is_the_limit_with_busy_workers),
		TEST(decoding_with_idle_workers_names_slow_samples),
		TEST(workers_that_get_no_cpu_are_not_called_idle),
		TEST(reading_is_the_limit),
		TEST(transforming_and_the_permutation_can_be_the_limit),
		TEST(the_consumer_is_the_limit_when_the_ring_was_full),
		TEST(nothing_is_short_when_nobody_waits),
		TEST(a_wait_not_yet_divided_is_said_to_be_so),
		TEST(a_full_ring_that_nobody_reads_is_idle),
		TEST(a_lane_that_is_through_is_idle),
		TEST(a_batch_that_does_not_come_is_a_stall_with_its_cause),
		TEST(a_lane_without_a_batch_is_starting),
		TEST(states_come_first),
		TEST(one_snapshot_judges_since_the_lane_opened),
		TEST(a_lane_opened_in_between_counts_from_its_opening),
		TEST(nonsense_counts_stay_in_their_bounds),
		TEST(workers_that_take_the_ranks_cpus_are_named),
		TEST(d42_quota_throttling_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
