/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop and the background executor. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/background.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/thread.h"

static struct loop *loop;

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

/* Two watches become ready together; the first takes the other's place away. */
struct pair {
	struct watch watch;
	struct pair *other;
	int calls;
};

static void remove_other(struct watch *watch, uint32_t events)
{
	struct pair *pair = CONTAINER_OF(watch, struct pair, watch);

	(void)events;
	pair->calls++;
	loop_unwatch(&pair->other->watch);
}

static void a_removed_watch_is_not_called(void **state)
{
	struct pair a = { .other = NULL }, b = { .other = &a };

	(void)state;
	a.other = &b;
	int fa = eventfd(1, EFD_CLOEXEC), fb = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(loop_watch(loop, &a.watch, fa, EPOLLIN, remove_other), 0);
	assert_int_equal(loop_watch(loop, &b.watch, fb, EPOLLIN, remove_other), 0);
	assert_int_equal(loop_once(loop, 0), 0);
	assert_int_equal(a.calls + b.calls, 1);
	loop_unwatch(&a.watch);
	loop_unwatch(&b.watch);
	loop_unwatch(&b.watch);
	close(fa);
	close(fb);
}

static char order[8];

struct letter {
	struct timer timer;
	char letter;
	struct timer *stops;
};

static void write_letter(struct timer *timer)
{
	struct letter *l = CONTAINER_OF(timer, struct letter, timer);

	order[strlen(order)] = l->letter;
	if (l->stops)
		timer_stop(l->stops);
}

static void timers_fire_in_order_and_can_be_stopped(void **state)
{
	struct letter a = { .letter = 'a' }, b = { .letter = 'b' }, c = { .letter = 'c' },
		      d = { .letter = 'd' };
	uint64_t now = now_ns();

	(void)state;
	memset(order, 0, sizeof(order));
	a.stops = &b.timer; /* due in the same round */
	loop_timer(loop, &c.timer, now + 3, write_letter);
	loop_timer(loop, &b.timer, now + 2, write_letter);
	loop_timer(loop, &a.timer, now + 1, write_letter);
	loop_timer(loop, &d.timer, now + 3600 * NS_PER_SEC, write_letter);
	loop_timer(loop, &c.timer, now + 4, write_letter); /* arms anew */
	loop_timer(loop, &a.timer, now + 1, write_letter); /* also the first of all */
	assert_true(timer_armed(&c.timer));
	assert_int_equal(loop_once(loop, 1000), 0);
	assert_string_equal(order, "ac");
	assert_false(timer_armed(&a.timer));
	assert_true(timer_armed(&d.timer));
	timer_stop(&d.timer);
	timer_stop(&d.timer);
}

static void stop(struct timer *timer)
{
	loop_stop(timer->loop ? timer->loop : loop, 5);
}

static void run_ends_with_the_code(void **state)
{
	struct timer timer = { 0 };

	(void)state;
	loop_timer(loop, &timer, 0, stop);
	assert_int_equal(loop_run(loop), 5);
}

struct work {
	struct background_job job;
	pthread_t thread;
	struct background *again; /* done submits the job a second time */
	int runs;
	int dones;
};

static atomic_int finished;

static void run_work(struct background_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);

	work->thread = pthread_self();
	work->runs++;
}

static void work_done(struct background_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);

	work->dones++;
	finished++;
	if (work->again) {
		struct background *again = work->again;

		work->again = NULL;
		background_submit(again, &work->job);
	}
}

static void jobs_run_elsewhere_and_finish_here(void **state)
{
	struct background *b;
	struct work work[20] = { 0 };

	(void)state;
	finished = 0;
	assert_int_equal(background_new(&b, loop, "test", 2), 0);
	for (int i = 0; i < 20; i++) {
		work[i].job.run = run_work;
		work[i].job.done = work_done;
		background_submit(b, &work[i].job);
	}
	while (finished < 20)
		assert_int_equal(loop_once(loop, 1000), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(work[i].runs, 1);
		assert_int_equal(work[i].dones, 1);
		assert_false(pthread_equal(work[i].thread, pthread_self()));
	}
	background_free(b);
}

static void nothing_is_lost_at_the_end(void **state)
{
	struct background *b;
	struct work work[20] = { 0 };

	(void)state;
	assert_int_equal(background_new(&b, loop, "test", 2), 0);
	for (int i = 0; i < 20; i++) {
		work[i].job.run = run_work;
		work[i].job.done = work_done;
		work[i].again = b;
		background_submit(b, &work[i].job);
	}
	background_free(b);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(work[i].runs, 2);
		assert_int_equal(work[i].dones, 2);
	}
}

static void *look_at_signals(void *arg)
{
	sigset_t set;
	char name[16] = "";

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	/* the name may be set a moment after the start */
	*(bool *)arg = sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR1);
	return NULL;
}

static void threads_block_signals(void **state)
{
	pthread_t thread;
	bool blocked = false;
	sigset_t set;

	(void)state;
	assert_int_equal(
		thread_start(&thread, "a-name-that-is-too-long", look_at_signals, &blocked), 0);
	pthread_join(thread, NULL);
	assert_true(blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	assert_false(sigismember(&set, SIGTERM));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_removed_watch_is_not_called),
		TEST(timers_fire_in_order_and_can_be_stopped),
		TEST(run_ends_with_the_code),
		TEST(jobs_run_elsewhere_and_finish_here),
		TEST(nothing_is_lost_at_the_end),
		TEST(threads_block_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
