/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's consumer against the fake daemon. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static void batches_come_in_order_with_their_bytes(void **state)
{
	struct fixture x;
	uint64_t digest = 0;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .steps = 5 }, 0);
	for (uint64_t n = 1; n <= 23; n++) {
		bool last = n % 5 == 0;

		fixture_next(&x, n);
		digest += n;
		assert_int_equal(x.batch.epoch, (n - 1) / 5);
		assert_int_equal(x.batch.step, (n - 1) % 5);
		assert_int_equal(x.batch.last_of_epoch, last);
		assert_int_equal(x.batch.count, last ? 3 : 4);
		assert_int_equal(x.batch.batches_left, 4 - x.batch.step);
		assert_int_equal(feeder_release(x.lane, n), 0);
	}
	assert_int_equal(feeder_order_digest(x.lane), digest);
	assert_true(feeder_pixel_digest(x.lane) > digest);
	fixture_stop(&x);
}

static void releases_may_come_in_any_order(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, NULL, 0);
	for (uint64_t n = 1; n <= 4; n++)
		fixture_next(&x, n);
	assert_int_equal(feeder_release(x.lane, 3), 0);
	assert_int_equal(feeder_release(x.lane, 2), 0);
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EDEADLK);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	for (uint64_t n = 5; n <= 7; n++)
		fixture_next(&x, n);
	assert_int_equal(feeder_release(x.lane, 4), 0);
	fixture_next(&x, 8);
	fixture_stop(&x);
}

static void holding_the_next_slot_is_a_named_error(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .slots = 2 }, 0);
	fixture_next(&x, 1);
	fixture_next(&x, 2);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EDEADLK);
	assert_error_says("batch 3 needs the slot that batch 1, still held");
	assert_int_equal(feeder_release(x.lane, 1), 0);
	fixture_next(&x, 3);
	fixture_stop(&x);
}

static void release_takes_only_what_is_held(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, NULL, 0);
	assert_int_equal(feeder_release(x.lane, 1), -EINVAL);
	assert_error_says("batch 1 is not held");
	assert_int_equal(feeder_release(x.lane, 0), -EINVAL);
	fixture_next(&x, 1);
	assert_int_equal(feeder_release(x.lane, 5), -EINVAL);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	assert_int_equal(feeder_release(x.lane, 1), -EINVAL);
	fixture_stop(&x);
}

static void views_end_with_the_release(void **state)
{
	struct fixture x;
	struct feeder_place place;
	const void *data = NULL;
	uint64_t bytes = 0;

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	assert_int_equal(feeder_batch_place(x.lane, 1, 2, &place), 0);
	assert_int_equal(place.id, 12);
	assert_int_equal(place.label, fake_label(1, 2));
	assert_int_equal(place.position, 102);
	assert_int_equal(place.box_w, 3);
	assert_int_equal(feeder_batch_place(x.lane, 1, 4, &place), -EINVAL);
	assert_error_says("place 4 of a batch with 4 places");
	assert_int_equal(feeder_batch_field(x.lane, 1, "labels", &data, &bytes), 0);
	assert_ptr_equal(data, x.batch.labels);
	assert_int_equal(bytes, 32);
	assert_int_equal(feeder_batch_field(x.lane, 1, "masks", &data, &bytes), -ENOENT);
	assert_error_says("no field masks");
	assert_int_equal(feeder_release(x.lane, 1), 0);
	assert_int_equal(feeder_batch_place(x.lane, 1, 2, &place), -EINVAL);
	assert_int_equal(feeder_batch_field(x.lane, 1, "labels", &data, &bytes), -EINVAL);
	fixture_stop(&x);
}

static void a_batch_that_is_late_says_so(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EAGAIN);
	assert_int_equal(feeder_next(x.lane, &x.batch, 20), -EAGAIN);
	assert_error_says("batch 1 is not ready after 20 ms");
	fake_allow(x.fake, 1);
	fixture_next(&x, 1);
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EAGAIN);
	fixture_stop(&x);
}

static void *allow_later(void *argument)
{
	usleep(150000);
	fake_allow(argument, 1);
	return NULL;
}

static void a_sleeping_consumer_is_woken(void **state)
{
	struct fixture x;
	pthread_t thread;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	pthread_create(&thread, NULL, allow_later, x.fake);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), 0);
	assert_true(x.batch.wait_ns > 50 * NS_PER_MS);
	pthread_join(thread, NULL);
	fixture_stop(&x);
}

static void a_silent_daemon_is_described(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 60);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -ETIMEDOUT);
	assert_error_says("did not come within");
	assert_error_says("dataset /tmp");
	assert_error_says("the lane is running");
	assert_error_says("(pid 4242) answers, with 17 reads in flight");
	/* and the lane goes on */
	fake_allow(x.fake, 1);
	fixture_next(&x, 1);
	fixture_stop(&x);
}

static void slices_add_up_to_the_time_out(void **state)
{
	struct fixture x;
	unsigned int early = 0;
	int r;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 100);
	while ((r = feeder_next(x.lane, &x.batch, 20)) == -EAGAIN)
		early++;
	assert_int_equal(r, -ETIMEDOUT);
	assert_in_range(early, 1, 5);
	assert_int_equal(feeder_next(x.lane, &x.batch, 1), -EAGAIN);
	fixture_stop(&x);
}

/* D11: the daemon is stopped, as by SIGSTOP. */
static void d11_a_stopped_daemon_is_named(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 60);
	fake_freeze(x.fake, true);
	assert_int_equal(feeder_next(x.lane, &x.batch, 30), -EAGAIN);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -ETIMEDOUT);
	assert_error_says("it does not answer (stopped or stuck)");
	fake_freeze(x.fake, false);
	fake_allow(x.fake, 1);
	fixture_next(&x, 1);
	fixture_stop(&x);
}

static void on_alarm(int number)
{
	(void)number;
}

static void a_signal_interrupts_and_calling_again_goes_on(void **state)
{
	struct fixture x;
	struct sigaction action = { .sa_handler = on_alarm };
	struct sigaction saved;
	timer_t timer;
	struct itimerspec soon = { .it_value = { .tv_nsec = 30000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int r;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	sigaction(SIGUSR1, &action, &saved);
	/* the fake's thread inherited an open mask: aim at this one */
	event.sigev_notify = SIGEV_THREAD_ID;
	event._sigev_un._tid = gettid();
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	timer_settime(timer, 0, &soon, NULL);
	r = feeder_next(x.lane, &x.batch, 5000);
	assert_int_equal(r, -EINTR);
	assert_error_says("interrupted");
	fake_allow(x.fake, 1);
	fixture_next(&x, 1);
	timer_delete(timer);
	sigaction(SIGUSR1, &saved, NULL);
	fixture_stop(&x);
}

static void what_was_published_outlives_the_daemon(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_allow(x.fake, 3);
	fixture_next(&x, 1);
	fake_die(x.fake);
	fixture_next(&x, 2);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	fixture_next(&x, 3);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPIPE);
	assert_error_says("died: connect again");
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EPIPE);
	fixture_check_pixels(&x.batch);
	assert_int_equal(feeder_release(x.lane, 3), 0);
	fixture_stop(&x);
}

static void *die_later(void *argument)
{
	usleep(30000);
	fake_die(argument);
	return NULL;
}

/* D09: no wait without liveness. */
static void d09_death_ends_a_wait_in_a_slice(void **state)
{
	struct fixture x;
	pthread_t thread;
	uint64_t start = now_ns();

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 60000);
	pthread_create(&thread, NULL, die_later, x.fake);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPIPE);
	assert_true(now_ns() - start < 30 * NS_PER_SEC);
	pthread_join(thread, NULL);
	fixture_stop(&x);
}

static void a_drained_daemon_is_told_from_a_dead_one(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_allow(x.fake, 1);
	fake_set_state(x.fake, RING_DRAINING);
	fake_event(x.fake, CONTROL_DRAINING, "\4\0\0\0", 4);
	fixture_next(&x, 1);
	assert_int_equal(feeder_next(x.lane, &x.batch, 10), -EAGAIN);
	fake_die(x.fake);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPIPE);
	assert_error_says("was stopped and has published its last batch");
	fixture_stop(&x);
}

static void a_failed_lane_gives_its_batches_then_its_reason(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_allow(x.fake, 2);
	fake_set_state(x.fake, RING_FAILED);
	fake_lane_error(
		x.fake, -EBADMSG, "dataset /tmp: cat/9.jpg: decode: the image data ends early");
	fixture_next(&x, 1);
	fixture_next(&x, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EBADMSG);
		assert_string_equal(feeder_last_error(),
			"dataset /tmp: cat/9.jpg: decode: the image data ends early");
	}
	fixture_stop(&x);
}

static void a_failed_lane_without_a_reason_ends_too(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_set_state(x.fake, RING_FAILED);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPIPE);
	assert_error_says("did not say why");
	fixture_stop(&x);
}

static void a_lane_taken_over_stops_at_once(void **state)
{
	struct fixture x;
	struct control_lane_lost lost = { .size = sizeof(lost), .lane = 1 };

	(void)state;
	strcpy(lost.text, "rank 0 was taken over by pid 77");
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_allow(x.fake, 2);
	fixture_next(&x, 1);
	fake_event(x.fake, CONTROL_LANE_LOST, &lost, sizeof(lost));
	fake_set_state(x.fake, RING_CLOSED);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -ESTALE);
	assert_string_equal(feeder_last_error(), "rank 0 was taken over by pid 77");
	assert_int_equal(feeder_release(x.lane, 1), 0);
	fixture_stop(&x);
}

static void end_at_three(struct control_lane *reply, void *context)
{
	(void)context;
	reply->last = 3;
}

static void a_lane_with_an_end_says_so(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .on_reply = end_at_three }, 0);
	for (uint64_t n = 1; n <= 3; n++) {
		fixture_next(&x, n);
		assert_int_equal(feeder_release(x.lane, n), 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(feeder_next(x.lane, &x.batch, -1), -ENODATA);
	assert_error_says("delivered all of its 3 batches");
	fixture_stop(&x);
}

static void unknown_events_are_ignored(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_event(x.fake, 0x2ff, "\4\0\0\0", 4);
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EAGAIN);
	fake_allow(x.fake, 1);
	fixture_next(&x, 1);
	fixture_stop(&x);
}

static void a_malformed_packet_ends_the_connection(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .manual = true }, 0);
	fake_event(x.fake, CONTROL_ERROR, "\1\0\0", 3);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), -EPROTO);
	assert_error_says("malformed packet");
	fixture_stop(&x);
}

static void older_and_newer_callers_get_their_part(void **state)
{
	struct fixture x;
	struct {
		struct feeder_batch batch;
		uint64_t newer;
	} large = { .batch = { .size = sizeof(large) }, .newer = 1 };
	union {
		struct feeder_batch batch;
		uint8_t bytes[sizeof(struct feeder_batch)];
	} small;
	const size_t old = offsetof(struct feeder_batch, epoch);

	(void)state;
	fixture_start(&x, NULL, 0);
	assert_int_equal(feeder_next(x.lane, &large.batch, -1), 0);
	assert_int_equal(large.batch.size, sizeof(large));
	assert_int_equal(large.newer, 0);
	memset(&small, 0xee, sizeof(small));
	small.batch.size = old;
	assert_int_equal(feeder_next(x.lane, &small.batch, -1), 0);
	assert_int_equal(small.batch.number, 2);
	for (size_t i = old; i < sizeof(small); i++)
		assert_int_equal(small.bytes[i], 0xee);
	small.batch.size = 0;
	assert_int_equal(feeder_next(x.lane, &small.batch, -1), -EINVAL);
	assert_error_says("set its size");
	fixture_next(&x, 3);
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_come_in_order_with_their_bytes),
		cmocka_unit_test(releases_may_come_in_any_order),
		cmocka_unit_test(holding_the_next_slot_is_a_named_error),
		cmocka_unit_test(release_takes_only_what_is_held),
		cmocka_unit_test(views_end_with_the_release),
		cmocka_unit_test(a_batch_that_is_late_says_so),
		cmocka_unit_test(a_sleeping_consumer_is_woken),
		cmocka_unit_test(a_silent_daemon_is_described),
		cmocka_unit_test(slices_add_up_to_the_time_out),
		cmocka_unit_test(d11_a_stopped_daemon_is_named),
		cmocka_unit_test(a_signal_interrupts_and_calling_again_goes_on),
		cmocka_unit_test(what_was_published_outlives_the_daemon),
		cmocka_unit_test(d09_death_ends_a_wait_in_a_slice),
		cmocka_unit_test(a_drained_daemon_is_told_from_a_dead_one),
		cmocka_unit_test(a_failed_lane_gives_its_batches_then_its_reason),
		cmocka_unit_test(a_failed_lane_without_a_reason_ends_too),
		cmocka_unit_test(a_lane_taken_over_stops_at_once),
		cmocka_unit_test(a_lane_with_an_end_says_so),
		cmocka_unit_test(unknown_events_are_ignored),
		cmocka_unit_test(a_malformed_packet_ends_the_connection),
		cmocka_unit_test(older_and_newer_callers_get_their_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
