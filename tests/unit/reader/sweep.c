/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many small files through both back ends, without faults and with each of them at random, over
 * poisoned buffers: every byte right or a status that says why not, and the same on both.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "feeder/status.h"
#include "fixture.h"

struct round {
	struct reader_faults faults;
	int other_status; /* that some reads end with; 0: all succeed */
};

#define OPEN_ONCE(e)                            \
	{                                       \
		{ .open = { e, 100, 1, 0 } }, 0 \
	}
#define READ_ONCE(e)                            \
	{                                       \
		{ .read = { e, 100, 1, 0 } }, 0 \
	}

static const struct round rounds[] = {
	{ { .seed = 0 }, 0 },
	{ { .shorten = 400 }, 0 },
	{ { .shorten = 900, .shorten_to = 4096 }, 0 },
	{ { .delay = 500, .delay_ns = 2 * NS_PER_MS }, 0 },
	{ { .echo = 500, .shorten = 300, .delay = 200, .delay_ns = NS_PER_MS }, 0 },
	OPEN_ONCE(EIO),
	OPEN_ONCE(ESTALE),
	OPEN_ONCE(EINTR),
	OPEN_ONCE(EAGAIN),
	OPEN_ONCE(ENFILE),
	OPEN_ONCE(EMFILE),
	OPEN_ONCE(ENOMEM),
	OPEN_ONCE(ETIMEDOUT),
	READ_ONCE(EIO),
	READ_ONCE(ESTALE),
	READ_ONCE(EINTR),
	READ_ONCE(EAGAIN),
	READ_ONCE(ENOMEM),
	READ_ONCE(ETIMEDOUT),
	{ { .read = { EIO, 30, 0, 0 } }, FEEDER_STATUS_READ_ERROR },
	{ { .read = { ENOSPC, 300, 0, 0 } }, FEEDER_STATUS_READ_ERROR },
	{ { .read = { EAGAIN, 20, 0, 0 } }, FEEDER_STATUS_READ_ERROR },
	{ { .open = { EACCES, 300, 0, 0 } }, FEEDER_STATUS_NO_PERMISSION },
	{ { .open = { ENOENT, 300, 0, 0 } }, FEEDER_STATUS_MISSING },
	{ { .submit = 300, .submit_error = EBUSY }, 0 },
	{ { .submit = 300, .submit_error = EAGAIN }, 0 },
	{ { .submit = 300, .submit_error = EINTR }, 0 },
	{ { .submit_part = 700 }, 0 },
	{ { .shorten = 300,
		  .delay = 200,
		  .delay_ns = NS_PER_MS,
		  .echo = 300,
		  .submit = 200,
		  .submit_error = EBUSY,
		  .submit_part = 300,
		  .open = { EMFILE, 50, 1, 0 },
		  .read = { ESTALE, 50, 1, 0 } },
		0 },
};

static void sweep(struct fixture *f, enum reader_backend backend, const struct round *round,
	unsigned int number, int *ret_statuses)
{
	struct reader_faults faults = round->faults;
	struct reader_config config;
	struct reader_stats stats;
	struct reader *r;

	faults.seed = number;
	reader_config_init(&config);
	config.faults = number ? &faults : NULL;
	config.threads = 2;
	config.retries = 2;
	r = start(f, backend, &config);
	fixture_run(f, r);
	reader_stats(r, &stats);
	reader_free(r);
	for (size_t i = 0; i < f->count; i++)
		ret_statuses[i] = f->items[i].request.fault.status;
	fixture_check(f, round->other_status);
	assert_int_equal(stats.completed, f->count);
	assert_int_equal(stats.overflow, 0);
	if (faults.shorten)
		assert_true(stats.short_reads > 0);
	if (faults.echo && backend == READER_URING)
		assert_true(stats.strays > 0);
	if (round->other_status)
		assert_true(memchr(ret_statuses, round->other_status, f->count * sizeof(int)));
}

static void both_back_ends_give_the_same(void **state)
{
	struct fixture f;
	int *one, *other;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, long_or(2000, 160), 300000, 4711);
	one = calloc(f.count, sizeof(int));
	other = calloc(f.count, sizeof(int));
	for (unsigned int i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		sweep(&f, backend_of(0), &rounds[i], i, one);
		sweep(&f, backend_of(1), &rounds[i], i, other);
		assert_memory_equal(one, other, f.count * sizeof(int));
	}
	free(one);
	free(other);
	fixture_deinit(&f, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_back_ends_give_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
