/* SPDX-License-Identifier: Apache-2.0 */
/* What io_uring and the kernel do to reads: D26 D27 D28 D30 D34 D36 D37 D38 D39. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "base/clock.h"
#include "feeder/status.h"
#include "fixture.h"

static struct reader_stats read_all(
	struct fixture *f, enum reader_backend backend, struct reader_config *config)
{
	struct reader *r = start(f, backend, config);
	struct reader_stats stats;

	fixture_run(f, r);
	reader_stats(r, &stats);
	reader_free(r);
	assert_int_equal(stats.overflow, 0);
	return stats;
}

/* linux/io_uring.h's numbers: a build without liburing has no use for this test. */
enum { OPCODE_READ = 22, OPCODE_OPENAT2 = 28 };

static void d26_a_missing_opcode_is_found_before_it_is_needed(void **state)
{
	struct reader_faults faults = { .missing_opcode = OPCODE_READ };
	struct reader_config config;
	struct reader *r = NULL;
	struct fixture f;
	char text[256];

	(void)state;
	need_uring();
	fixture_init(&f);
	fixture_files(&f, 20, 50000, 1);
	reader_config_init(&config);
	config.faults = &faults;
	config.give = f.pool;
	assert_int_equal(reader_new(&r, &config, text, sizeof(text)), 0);
	assert_string_equal(reader_backend_name(r), "pread");
	assert_string_equal(
		text, "io_uring of this kernel lacks IORING_OP_READ; reading with pread");
	fixture_run(&f, r);
	fixture_check(&f, 0);
	reader_free(r);
	config.backend = READER_URING;
	assert_int_equal(reader_new(&r, &config, text, sizeof(text)), -EOPNOTSUPP);

	/* Without OPENAT2 the thread opens the files itself. */
	faults.missing_opcode = OPCODE_OPENAT2;
	read_all(&f, backend_of(0), &config);
	fixture_check(&f, 0);
	fixture_deinit(&f, false);
}

static void d27_extents_need_no_alignment(void **state)
{
	static const struct {
		uint64_t offset, length;
	} extents[] = { { 512 * 7 + 1, 1000 }, { 1, 511 }, { 4095, 4098 }, { 8191, 1 } };

	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct reader_config config;
		struct fixture f;
		struct reader *r;

		fixture_init(&f);
		fixture_files(&f, 1, 1, 1);
		fixture_write(&f, "member", 20000, 77);
		reader_config_init(&config);
		r = start(&f, backend_of(b), &config);
		struct item *whole = fixture_add(&f, "member", 20000);

		assert_int_equal(read_one(&f, r, whole), 0);
		for (unsigned int i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
			struct item *item = fixture_add(&f, "member", extents[i].length);

			item->request.offset = extents[i].offset;
			item->digest = XXH64(whole->request.bytes->data + extents[i].offset,
				extents[i].length, 0);
			assert_int_equal(read_one(&f, r, item), 0);
			assert_true(item_is_whole(item));
			item_give(item);
		}
		item_give(whole);
		reader_free(r);
		fixture_deinit(&f, false);
	}
}

static void d28_short_is_not_the_end(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct reader_faults faults = { .shorten = 1000, .shorten_to = 1 };
		struct reader_config config;
		struct reader_stats stats;
		struct fixture f;

		fixture_init(&f);
		fixture_files(&f, 20, 4097, 3);
		reader_config_init(&config);
		config.faults = &faults;
		stats = read_all(&f, backend_of(b), &config);
		fixture_check(&f, 0);
		assert_int_equal(stats.short_reads, stats.bytes - 20);
		fixture_deinit(&f, false);
	}
}

static void d30_a_completion_of_an_older_read_is_ignored(void **state)
{
	struct reader_faults faults = {
		.echo = 1000, .shorten = 500, .delay = 300, .delay_ns = NS_PER_MS
	};
	struct reader_config config;
	struct reader_stats stats;
	struct fixture f;

	(void)state;
	need_uring();
	fixture_init(&f);
	fixture_files(&f, long_or(2000, 300), 300000, 5);
	reader_config_init(&config);
	config.faults = &faults;
	config.depth = 8; /* operations are used again and again */
	stats = read_all(&f, backend_of(0), &config);
	fixture_check(&f, 0);
	assert_true(stats.strays > 300);
	assert_true(stats.short_reads > 0);
	fixture_deinit(&f, false);
}

static void d34_readers_come_and_go(void **state)
{
	struct reader_config config;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 2, 5000, 5);
	reader_config_init(&config);
	for (size_t i = 0; i < long_or(1000, 60); i++) {
		read_all(&f, backend_of(i % 4 == 3), &config);
		fixture_check(&f, 0);
	}
	fixture_deinit(&f, false);
}

static void d36_the_completion_queue_cannot_overflow(void **state)
{
	struct reader_config config;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 64, 50000, 5);
	reader_config_init(&config);
	for (config.depth = 1; config.depth <= 64; config.depth *= 4) {
		read_all(&f, backend_of(0), &config);
		fixture_check(&f, 0);
	}
	fixture_deinit(&f, false);
}

static void d37_refused_and_partial_submissions_are_made_again(void **state)
{
	static const int errors[] = { EBUSY, EAGAIN, EINTR };
	struct reader_config config;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 100, 50000, 5);
	reader_config_init(&config);
	for (unsigned int i = 0; i < 3; i++) {
		struct reader_faults faults = {
			.seed = i, .submit = 700, .submit_error = errors[i], .submit_part = 900
		};

		config.faults = &faults;
		read_all(&f, backend_of(0), &config);
		fixture_check(&f, 0);
	}
	fixture_deinit(&f, false);
}

static void d38_a_read_that_never_completes_holds_up_nobody(void **state)
{
	struct reader_faults faults = { .only = "f0000", .never = 1000 };
	struct reader_config config;
	struct reader *r;
	struct fixture f;
	uint64_t one = 1;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 50, 50000, 5);
	faults.never_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	reader_config_init(&config);
	config.faults = &faults;
	config.deadline_ns = 100 * NS_PER_MS;
	r = start(&f, backend_of(0), &config);
	for (unsigned int i = 0; i < 4; i++) {
		fixture_run(&f, r);
		fixture_check(&f, FEEDER_STATUS_READ_TIMEOUT);
	}
	assert_int_equal(write(faults.never_fd, &one, sizeof(one)), sizeof(one));
	reader_free(r);
	close(faults.never_fd);
	fixture_deinit(&f, false);
}

/* EAGAIN once for each read sends it to the kernel's workers. */
static void d39_kernel_workers_are_few(void **state)
{
	struct reader_faults faults = { .read = { EAGAIN, 1000, 1, 0 } };
	struct reader_config config;
	unsigned int workers = 0;
	struct reader *r;
	struct fixture f;

	(void)state;
	need_uring();
	fixture_init(&f);
	fixture_files(&f, 200, 300000, 5);
	reader_config_init(&config);
	config.faults = &faults;
	config.depth = 256;
	r = start(&f, backend_of(0), &config);
	for (unsigned int i = 0; i < 3; i++) {
		fixture_run(&f, r);
		unsigned int now = count_threads("iou-wrk");

		workers = now > workers ? now : workers;
		fixture_check(&f, 0);
	}
	reader_free(r);
	assert_in_range(workers, 1, 20);
	fixture_deinit(&f, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d26_a_missing_opcode_is_found_before_it_is_needed),
		cmocka_unit_test(d27_extents_need_no_alignment),
		cmocka_unit_test(d28_short_is_not_the_end),
		cmocka_unit_test(d30_a_completion_of_an_older_read_is_ignored),
		cmocka_unit_test(d34_readers_come_and_go),
		cmocka_unit_test(d36_the_completion_queue_cannot_overflow),
		cmocka_unit_test(d37_refused_and_partial_submissions_are_made_again),
		cmocka_unit_test(d38_a_read_that_never_completes_holds_up_nobody),
		cmocka_unit_test(d39_kernel_workers_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
