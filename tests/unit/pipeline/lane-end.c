/* SPDX-License-Identifier: Apache-2.0 */
/* How lanes end: openings that fail half-way, a stopped daemon's last batches, late events. */
#include "unit/pipeline/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned int count_fds(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/*
 * At the limit of open files an opening fails at each of the descriptors that it makes, and
 * leaves none: neither open, nor its number with the caller, who would close a stranger's.
 */
static void test_a_failed_opening_leaves_no_descriptors(void **state)
{
	struct pipeline_options options = { .workers = 1 };
	struct control_open_lane open;
	struct lane_request request = { .open = &open, .job_key = 1 };
	struct rlimit limit, low;
	struct control_lane reply;
	struct pipeline *p;
	struct lane *lane = NULL;
	unsigned int failures = 0, before;
	struct folder f;
	char text[1024];
	int fds[3], r = -1;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request.dataset = f.dataset;
	p = pipeline_make(&options);
	request_init(&open);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* the workers read files of /sys when they start */
	do {
		before = count_fds();
		usleep(50000);
	} while (count_fds() != before);
	low = limit;
	low.rlim_cur = (rlim_t)dup(0);
	close((int)low.rlim_cur);
	while (r < 0) {
		memset(fds, 0xFF, sizeof(fds));
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
		r = pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text));
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (r < 0) {
			assert_int_equal(r, -EMFILE);
			for (unsigned int i = 0; i < 3; i++)
				assert_int_equal(fds[i], -1);
			assert_int_equal(count_fds(), before);
			failures++;
		}
		low.rlim_cur++;
	}
	assert_true(failures >= 7); /* two memfds, one opened again, the doorbell, three to give */
	for (unsigned int i = 0; i < 3; i++)
		close(fds[i]);
	pipeline_lane_free(lane);
	pipeline_free(p);
	folder_free(&f);
}

/* A daemon that stops drains its lanes and frees them: what it published can still be read. */
static void test_a_drained_lane_is_read_to_its_end_when_it_is_freed(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;
	unsigned int batches = 0;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	assert_true(consumer_take(&c, &d));
	lane_drain(c.lane);
	while (!lane_drained(c.lane))
		wait_event(lane_id(c.lane));
	pipeline_lane_free(c.lane);
	c.lane = NULL;
	/* CLOSED would have the consumer stop at once */
	assert_int_equal(ring_load_acquire(&ring_map_words(&c.map)->state), RING_DRAINING);
	while (consumer_take(&c, &d))
		batches++;
	assert_true(batches <= 2);
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

/* ---- events ---- */

static sem_t entered, leave;
static atomic_bool freed;

static void slow_event(void *context, uint64_t lane)
{
	(void)context;
	(void)lane;
	sem_post(&entered);
	while (sem_wait(&leave) < 0)
		;
}

static void *free_lane(void *arg)
{
	pipeline_lane_free(arg);
	freed = true;
	return NULL;
}

/* Who gets events may be gone once its last lane is freed: none is under way then. */
static void test_no_event_comes_after_the_lane_was_freed(void **state)
{
	struct pipeline_config config = {
		.workers = 1,
		.readahead_bytes = 8u << 20,
		.slots = 2,
		.read_deadline_ns = 30000000000ull,
		.lane_event = slow_event,
	};
	struct control_open_lane open;
	struct pipeline *p = NULL;
	struct consumer c;
	struct folder f;
	pthread_t thread;
	char text[512];

	(void)state;
	freed = false;
	sem_init(&entered, 0, 0);
	sem_init(&leave, 0, 0);
	folder_make(&f);
	folder_put(&f, 0, "x", 1);
	folder_open(&f);
	request_init(&open);
	open.order = ORDER_SEQUENTIAL;
	open.bad = CONTROL_BAD_FAIL;
	assert_int_equal(pipeline_new(&p, &config, text, sizeof(text)), 0);
	consumer_open(&c, p, &f, &open);
	while (sem_wait(&entered) < 0)
		;
	assert_int_equal(pthread_create(&thread, NULL, free_lane, c.lane), 0);
	c.lane = NULL;
	usleep(50000); /* long enough for one that does not wait */
	assert_false(freed);
	sem_post(&leave);
	pthread_join(thread, NULL);
	assert_true(freed);
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
	sem_destroy(&entered);
	sem_destroy(&leave);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_opening_leaves_no_descriptors),
		cmocka_unit_test(test_a_drained_lane_is_read_to_its_end_when_it_is_freed),
		cmocka_unit_test(test_no_event_comes_after_the_lane_was_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
