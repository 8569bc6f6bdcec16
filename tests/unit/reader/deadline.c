/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that hang: deadlines, late completions, cancelling, and ending all the same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "feeder/status.h"
#include "fixture.h"

struct state {
	enum reader_backend backend;
	struct fixture fixture;
	struct reader_faults faults;
	struct reader_config config;
	bool leaks;
};

static int setup(void **state, enum reader_backend backend)
{
	struct state *s = calloc(1, sizeof(*s));

	s->backend = backend;
	fixture_init(&s->fixture);
	reader_config_init(&s->config);
	s->faults.never_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->config.faults = &s->faults;
	*state = s;
	return 0;
}

static int setup_uring(void **state)
{
	return setup(state, backend_of(0));
}

static int setup_pread(void **state)
{
	return setup(state, READER_PREAD);
}

static int teardown(void **state)
{
	struct state *s = *state;

	fixture_deinit(&s->fixture, s->leaks);
	if (s->leaks)
		return 0;
	close(s->faults.never_fd);
	free(s);
	return 0;
}

static void let_go(struct state *s)
{
	uint64_t one = 1;

	assert_int_equal(write(s->faults.never_fd, &one, sizeof(one)), sizeof(one));
}

static struct reader_stats stats_of(struct reader *r)
{
	struct reader_stats stats;

	reader_stats(r, &stats);
	return stats;
}

/* Ten of fifty hang. What they write late must reach nobody, and their request is not needed. */
static void hanging_reads_are_answered_and_their_buffers_come_back(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	uint64_t late = 0;
	struct reader *r;

	s->faults.only = "f000";
	s->faults.never = 1000;
	s->config.deadline_ns = 150 * NS_PER_MS;
	s->config.threads = s->backend == READER_PREAD ? 16 : 1;
	fixture_files(f, 50, 100000, 9);
	r = start(f, s->backend, &s->config);
	fixture_run(f, r);
	for (size_t i = 0; i < f->count; i++) {
		struct read_request *req = &f->items[i].request;

		/* A machine that is busy elsewhere may let others miss their deadline too. */
		if (i >= 10 && item_is_whole(&f->items[i]))
			continue;
		assert_int_equal(req->fault.status, FEEDER_STATUS_READ_TIMEOUT);
		assert_string_equal(req->fault.text,
			req->started_ns ? "not read for 150 ms" : "waited for 150 ms");
		assert_null(req->bytes);
		late += req->started_ns != 0;
		memset(req, 0xDD, offsetof(struct read_request, fault));
		memset(f->items[i].path, 0xDD, sizeof(f->items[i].path));
		req->bytes = NULL;
	}
	let_go(s);
	while (stats_of(r).late < late)
		sleep_ms(1);
	for (size_t i = 0; i < f->count; i++) {
		assert_true(!f->items[i].request.bytes || item_is_whole(&f->items[i]));
		item_give(&f->items[i]);
	}
	assert_int_equal(bytes_pool_out(f->pool), 0);
	reader_free(r);
}

/* All threads hang: what still waits in the queue has a deadline too. */
static void queued_reads_have_a_deadline(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct reader *r;

	s->faults.never = 1000;
	s->config.deadline_ns = 100 * NS_PER_MS;
	s->config.threads = 1;
	s->config.depth = 4;
	fixture_files(f, 30, 10000, 9);
	r = start(f, s->backend, &s->config);
	fixture_run(f, r);
	for (size_t i = 0; i < f->count; i++) {
		assert_int_equal(f->items[i].request.fault.status, FEEDER_STATUS_READ_TIMEOUT);
		assert_null(f->items[i].request.bytes);
	}
	assert_int_equal(stats_of(r).timeouts, 30);
	let_go(s);
	reader_free(r);
	assert_int_equal(bytes_pool_out(f->pool), 0);
}

static void cancelling_one_tree_leaves_the_other(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct read_tree doomed = f->tree;
	unsigned int cancelled = 0;
	struct reader *r;

	/* Held back for a minute unless cancelled; io_uring has 200 in flight, pread a few. */
	s->faults.only = "f0";
	s->faults.delay = s->backend == READER_URING ? 1000 : 0;
	s->faults.delay_ns = 60 * NS_PER_SEC;
	s->faults.read = (struct reader_fault_error){ EIO, 1000, 0, 0 };
	s->config.retries = 3;
	s->config.depth = 256;
	fixture_files(f, 200, 5000, 11);
	r = start(f, s->backend, &s->config);
	for (size_t i = 0; i < f->count; i++) {
		f->items[i].request.tree = &doomed;
		item_submit(r, &f->items[i]);
	}
	reader_cancel(r, &f->tree);
	reader_cancel(r, &doomed);
	fixture_wait(f);
	for (size_t i = 0; i < f->count; i++) {
		struct read_request *req = &f->items[i].request;

		assert_int_equal(f->items[i].answers, 1);
		assert_int_equal(req->fault.status, FEEDER_STATUS_READ_ERROR);
		assert_non_null(req->bytes);
		cancelled += req->fault.error == ECANCELED;
		item_give(&f->items[i]);
		req->tree = &f->tree;
	}
	assert_true(cancelled > 150);
	reader_free(r);

	s->config.faults = NULL;
	r = start(f, s->backend, &s->config);
	for (size_t i = 0; i < f->count; i++)
		item_submit(r, &f->items[i]);
	reader_cancel(r, &doomed);
	fixture_wait(f);
	fixture_check(f, 0);
	reader_free(r);
}

/* The kernel itself lets go when asked: 200 in flight end long before their deadline. */
static void the_kernel_is_asked_to_let_go(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct reader *r;

	need_uring();
	s->faults.never = 1000;
	s->faults.never_yields = true;
	s->config.depth = 256;
	fixture_files(f, 200, 5000, 11);
	r = start(f, s->backend, &s->config);
	for (size_t i = 0; i < f->count; i++)
		item_submit(r, &f->items[i]);
	sleep_ms(20);
	reader_cancel(r, NULL);
	fixture_wait(f);
	for (size_t i = 0; i < f->count; i++) {
		assert_int_equal(f->items[i].request.fault.error, ECANCELED);
		item_give(&f->items[i]);
	}
	assert_int_equal(stats_of(r).timeouts, 0);
	reader_free(r);
}

static void free_answers_all_that_is_in_flight(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct reader *r;

	s->faults.delay = 500;
	s->faults.delay_ns = 20 * NS_PER_MS;
	fixture_files(f, 100, 50000, 13);
	r = start(f, s->backend, &s->config);
	for (size_t i = 0; i < f->count; i++)
		item_submit(r, &f->items[i]);
	reader_free(r);
	assert_int_equal(f->outstanding, 0);
	fixture_check(f, FEEDER_STATUS_READ_ERROR);
}

/* What never comes back is given up, together with its buffer, and may come back after all. */
static void free_gives_up_what_the_kernel_keeps(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct reader *r;

	s->faults.only = "f0001";
	s->faults.never = 1000;
	s->config.deadline_ns = 150 * NS_PER_MS;
	fixture_files(f, 4, 5000, 15);
	r = start(f, s->backend, &s->config);
	for (size_t i = 0; i < f->count; i++)
		item_submit(r, &f->items[i]);
	fixture_wait(f);
	assert_int_equal(f->items[1].request.fault.status, FEEDER_STATUS_READ_TIMEOUT);
	for (size_t i = 0; i < f->count; i++)
		item_give(&f->items[i]);
	reader_free(r);
	assert_true(bytes_pool_out(f->pool) > 0);
	let_go(s);
	sleep_ms(10);
	s->leaks = true;
}

struct chain {
	struct fixture *fixture;
	struct reader *reader;
	struct read_request request;
	unsigned int left;
};

static void submit_again(struct read_request *req)
{
	struct chain *chain = req->context;

	if (--chain->left > 0) {
		reader_submit(chain->reader, req);
		return;
	}
	pthread_mutex_lock(&chain->fixture->lock);
	chain->fixture->outstanding--;
	pthread_cond_broadcast(&chain->fixture->answered);
	pthread_mutex_unlock(&chain->fixture->lock);
}

static void done_may_submit(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct chain chain = { .fixture = f, .left = 500 };
	struct reader *r;

	fixture_files(f, 1, 5000, 17);
	s->config.threads = 2;
	chain.reader = r = start(f, s->backend, &s->config);
	chain.request = f->items[0].request;
	chain.request.done = submit_again;
	chain.request.context = &chain;
	chain.request.bytes = bytes_take(f->pool, 5000);
	f->outstanding = 1;
	reader_submit(r, &chain.request);
	fixture_wait(f);
	assert_int_equal(stats_of(r).completed, 500);
	bytes_give(f->pool, chain.request.bytes);
	reader_free(r);
}

struct slow {
	struct item *item;
	unsigned int calls;
};

static int slow_outside(const struct read_tree *tree, const char *path)
{
	struct slow *slow = tree->context;

	(void)path;
	while (now_ns() < slow->item->request.deadline_ns + 50 * NS_PER_MS)
		sleep_ms(5);
	/* The tree is still there, past the deadline. */
	slow->calls++;
	return -EXDEV;
}

static void a_tree_outlives_its_own_call(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct read_tree *tree = malloc(sizeof(*tree));
	struct slow *slow = calloc(1, sizeof(*slow));
	struct reader *r;
	int status;

	assert_true(tree && slow);
	*tree = (struct read_tree){ f->tree.dirfd, slow_outside, slow };
	assert_int_equal(symlinkat("/", f->tree.dirfd, "out"), 0);
	s->config.deadline_ns = 100 * NS_PER_MS;
	r = start(f, s->backend, &s->config);
	slow->item = fixture_add(f, "out", 10);
	slow->item->request.tree = tree;
	status = read_one(f, r, slow->item);
	/* Or no thread came to it in time. */
	assert_int_equal(
		status, slow->calls ? FEEDER_STATUS_OUTSIDE_ROOT : FEEDER_STATUS_READ_TIMEOUT);
	item_give(slow->item);
	free(tree);
	free(slow);
	reader_free(r);
}

#define BOTH(test)                                                    \
	cmocka_unit_test_setup_teardown(test, setup_uring, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_pread, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(hanging_reads_are_answered_and_their_buffers_come_back),
		BOTH(queued_reads_have_a_deadline),
		BOTH(cancelling_one_tree_leaves_the_other),
		cmocka_unit_test_setup_teardown(
			the_kernel_is_asked_to_let_go, setup_uring, teardown),
		BOTH(free_answers_all_that_is_in_flight),
		BOTH(free_gives_up_what_the_kernel_keeps),
		BOTH(done_may_submit),
		BOTH(a_tree_outlives_its_own_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
