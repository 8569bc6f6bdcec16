/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, forks, closing: rows D06, D07, D12, D13, D15, D57, D62, E03 of the catalogue. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

static void lower_limit(struct ring_header *header, void *context)
{
	struct rlimit limit;
	int fd = dup(0);

	/* the ring's memfds exist, its doorbell too: what follows is only the client's */
	(void)header;
	getrlimit(RLIMIT_NOFILE, &limit);
	*(struct rlimit *)context = limit;
	close(fd);
	limit.rlim_cur = (rlim_t)fd + 1;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void d06_descriptors_that_do_not_fit_are_named(void **state)
{
	struct rlimit saved;
	struct fixture x;
	struct feeder_lane_config config;
	unsigned int before;
	unsigned int closed = 0;
	int r;

	(void)state;
	fixture_connect(&x, &(struct fake_config){ .on_header = lower_limit, .context = &saved });
	before = count_fds();
	feeder_lane_config_init(&config);
	config.timeout_ms = 2000;
	r = feeder_lane_open(&x.lane, x.f, "/tmp", &config);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	assert_int_equal(r, -EMFILE);
	assert_error_says("raise it (ulimit -n)");
	/* the lane that the daemon had made is closed again, and nothing leaks */
	for (unsigned int i = 0; i < 500 && closed == 0; i++)
		closed = fake_count(x.fake, &x.fake->closed);
	assert_int_equal(closed, 1);
	assert_int_equal(count_fds(), before);
	fixture_stop(&x);
}

static void d07_ten_thousand_batches_take_no_descriptor(void **state)
{
	struct fixture x;
	unsigned int before;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .side = 2, .slots = 8 }, 0);
	before = count_fds();
	for (uint64_t n = 1; n <= 10000; n++) {
		assert_int_equal(feeder_next(x.lane, &x.batch, 5000), 0);
		if (n > 4)
			assert_int_equal(feeder_release(x.lane, n - 4), 0);
	}
	assert_int_equal(count_fds(), before);
	fixture_stop(&x);
}

/* One descriptor a lane stays open in the client: the doorbell; the fake keeps three. */
static void d07_a_lane_costs_one_descriptor(void **state)
{
	struct fixture x;
	unsigned int before;

	(void)state;
	fixture_connect(&x, NULL);
	before = count_fds();
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", NULL), 0);
	assert_int_equal(count_fds(), before + 3 + 1);
	feeder_lane_close(x.lane);
	assert_int_equal(count_fds(), before);
	fixture_stop(&x);
}

/* D12: the daemon sees the death of its client by the socket. */
static void d12_a_killed_trainer_hangs_up(void **state)
{
	struct fake *fake = fake_start(NULL, NULL);
	unsigned int lanes = 1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct feeder_connect_options options;
		struct feeder *f = NULL;
		struct feeder_lane *lane = NULL;

		feeder_connect_options_init(&options);
		options.socket = fake->path;
		if (feeder_connect(&f, &options) < 0 ||
			feeder_lane_open(&lane, f, "/tmp", NULL) < 0)
			_exit(1);
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	assert_int_equal(fake_count(fake, &fake->opened), 1);
	for (unsigned int i = 0; i < 2000 && lanes > 0; i++) {
		lanes = fake_lanes_open(fake);
		usleep(1000);
	}
	assert_int_equal(lanes, 0);
	fake_stop(fake);
}

/* D13: closing is idempotent and bounded, also under a daemon that is stopped. */
static void d13_closing_is_bounded(void **state)
{
	struct fixture x;
	uint64_t start;

	(void)state;
	fixture_connect(&x, NULL);
	for (unsigned int i = 0; i < 300; i++) {
		assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", NULL), 0);
		assert_int_equal(feeder_next(x.lane, &x.batch, 5000), 0);
		feeder_lane_close(x.lane);
	}
	assert_int_equal(fake_lanes_open(x.fake), 0);
	feeder_lane_close(NULL);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", NULL), 0);
	fake_freeze(x.fake, true);
	start = now_ns();
	feeder_disconnect(x.f);
	assert_true(now_ns() - start < 10 * NS_PER_SEC);
	fake_freeze(x.fake, false);
	fake_stop(x.fake);
}

/* Runs in the child: exits with the line that failed. */
#define CHILD(x)                                \
	do {                                    \
		if (!(x))                       \
			_exit(__LINE__ & 0xff); \
	} while (0)

static void in_child(struct fixture *x, int socket)
{
	struct feeder_lane *lane = NULL;
	struct feeder_place place;
	const void *data;
	uint64_t bytes;
	unsigned char resident;
	uintptr_t page = (uintptr_t)x->batch.images & ~(uintptr_t)4095;
	char cursor[FEEDER_CURSOR_MAX];
	int fd;

	CHILD(feeder_next(x->lane, &x->batch, 100) == -ECHILD);
	CHILD(strstr(feeder_last_error(), "before fork()"));
	CHILD(feeder_release(x->lane, 1) == -ECHILD);
	CHILD(feeder_batch_place(x->lane, 1, 0, &place) == -ECHILD);
	CHILD(feeder_batch_field(x->lane, 1, "images", &data, &bytes) == -ECHILD);
	CHILD(feeder_cursor(x->lane, cursor, sizeof(cursor)) == -ECHILD);
	CHILD(feeder_seek(x->lane, "x", 1) == -ECHILD);
	CHILD(feeder_set_epoch(x->lane, 0) == -ECHILD);
	CHILD(feeder_sample_path(x->lane, 0, cursor, sizeof(cursor)) == -ECHILD);
	CHILD(feeder_lane_open(&lane, x->f, "/tmp", NULL) == -ECHILD);
	CHILD(feeder_stats(x->f, &fd) == -ECHILD);
	CHILD(feeder_fd(x->f) == -ECHILD);
	CHILD(fcntl(socket, F_GETFD) == -1 && errno == EBADF);
	/* D62: the ring is not mapped here */
	CHILD(mincore((void *)page, 4096, &resident) == -1 && errno == ENOMEM);
	/* disconnecting there does not disturb the parent */
	feeder_disconnect(x->f);
	_exit(0);
}

static void d15_d62_a_forked_child_has_no_handles(void **state)
{
	struct fixture x;
	int status = 0;
	pid_t pid;

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	pid = fork();
	if (pid == 0)
		in_child(&x, feeder_fd(x.f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fixture_check_pixels(&x.batch);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	for (uint64_t n = 2; n < 9; n++) {
		fixture_next(&x, n);
		assert_int_equal(feeder_release(x.lane, n), 0);
	}
	fixture_stop(&x);
}

/* D57: nothing that this side has could shrink the ring under the other, nor write it. */
static void d57_the_payload_is_read_only(void **state)
{
	struct fixture x;
	uintptr_t page;

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	page = (uintptr_t)x.batch.images & ~(uintptr_t)4095;
	assert_int_equal(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	fixture_stop(&x);
}

static void e03_what_is_held_is_not_recycled(void **state)
{
	struct fixture x;
	struct feeder_batch kept;

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	kept = x.batch;
	for (uint64_t n = 2; n <= 4; n++) {
		fixture_next(&x, n);
		feeder_release(x.lane, n);
	}
	usleep(20000);
	fixture_check_pixels(&kept);
	fixture_stop(&x);
}

static void statistics_are_sealed(void **state)
{
	struct fixture x;
	CLEANUP(fd_closep) int fd = -1;

	(void)state;
	fixture_connect(&x, NULL);
	assert_int_equal(feeder_stats(x.f, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	fake_die(x.fake);
	assert_int_equal(feeder_stats(x.f, &fd), -EPIPE);
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d06_descriptors_that_do_not_fit_are_named),
		cmocka_unit_test(d07_ten_thousand_batches_take_no_descriptor),
		cmocka_unit_test(d07_a_lane_costs_one_descriptor),
		cmocka_unit_test(d12_a_killed_trainer_hangs_up),
		cmocka_unit_test(d13_closing_is_bounded),
		cmocka_unit_test(d15_d62_a_forked_child_has_no_handles),
		cmocka_unit_test(d57_the_payload_is_read_only),
		cmocka_unit_test(e03_what_is_held_is_not_recycled),
		cmocka_unit_test(statistics_are_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
