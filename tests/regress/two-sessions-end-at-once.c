/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symptom: feederd's control thread spun for ever in loop_timer when several clients left at the
 * same moment. Cause: the place in the timer list was looked for from a node taken before the
 * timer was disarmed; armed anew while it was the first of the list, as the reaper is when a
 * second session dies in the same round, that node was the timer itself, alone and pointing at
 * itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/control/bench.h"
#include "unit/control/fake-pipeline.h"

#define CLIENTS 4

static struct control_packet packet;
static struct control_open_lane request;

/* All ends are in the daemon's sockets before its loop looks at any of them. */
static void sessions_that_end_in_one_round(void **state)
{
	int fds[CLIENTS];
	struct bench b;

	(void)state;
	alarm(30);
	bench_start(&b, false);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = bench_client(&b);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	bench_settle(&b);
	int fd = bench_client(&b);
	close(fd);
	bench_stop(&b);
	alarm(0);
}

/* The reply to a close finds its socket gone: the session ends inside its own request. */
static void sessions_that_close_a_lane_and_go(void **state)
{
	struct control_close body[CLIENTS] = { 0 };
	int fds[CLIENTS];
	struct bench b;

	(void)state;
	alarm(30);
	bench_start(&b, false);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		fds[i] = bench_client(&b);
		bench_lane_request(&request, bench_open_dataset(&b, fds[i], 0, &packet), i);
		control_packet_close(&packet);
		body[i].size = sizeof(body[i]);
		body[i].lane = bench_open_lane(&b, fds[i], &request, &packet);
		assert_true(body[i].lane > 0);
		control_packet_close(&packet);
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		bench_send(fds[i], CONTROL_CLOSE, 99, &body[i], sizeof(body[i]), NULL, 0);
		close(fds[i]);
	}
	bench_settle(&b);
	assert_int_equal(fake.lanes, 0);
	bench_stop(&b);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sessions_that_end_in_one_round),
		TEST(sessions_that_close_a_lane_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
