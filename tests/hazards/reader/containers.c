/* SPDX-License-Identifier: Apache-2.0 */
/* Where io_uring is forbidden or short of something: D23 D24 D25 D33 and few descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "feeder/status.h"
#include "fixture.h"

/* io_uring_setup fails with error from here on, in this process. */
static int forbid(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

struct case_of {
	struct fixture *fixture;
	int error; /* of io_uring_setup */
	const char *words;
};

/* 0 if all files were read right. */
static int count_wrong(struct fixture *f, struct reader *r)
{
	int wrong = 0;

	fixture_run(f, r);
	for (size_t i = 0; i < f->count; i++) {
		wrong += !item_is_whole(&f->items[i]);
		item_give(&f->items[i]);
	}
	return wrong != 0;
}

static int forbidden(void *arg)
{
	const struct case_of *c = arg;
	struct reader_config config;
	struct reader *r = NULL;
	char text[256];

	reader_config_init(&config);
	config.give = c->fixture->pool;
	if (forbid(c->error) < 0)
		return 10;
	if (reader_new(&r, &config, text, sizeof(text)) < 0)
		return 11;
	if (strcmp(reader_backend_name(r), "pread") != 0)
		return 12;
	if (!strstr(text, c->words) || !strstr(text, "reading with pread")) {
		fprintf(stderr, "the cause was given as: %s\n", text);
		return 13;
	}
	if (count_wrong(c->fixture, r) != 0)
		return 14;
	reader_free(r);
	config.backend = READER_URING;
	if (reader_new(&r, &config, text, sizeof(text)) != -c->error)
		return 15;
	return strstr(text, c->words) ? 0 : 16;
}

static void d23_d25_a_forbidden_ring_is_named_and_replaced(void **state)
{
	struct fixture f;
	struct case_of cases[] = {
		{ &f, EPERM, "io_uring is forbidden (EPERM)" },
		{ &f, ENOSYS, "there is no io_uring (ENOSYS)" },
		{ &f, ENOMEM, "no memory for a ring (ENOMEM)" },
		{ &f, EMFILE, "no ring (EMFILE)" },
	};

	(void)state;
	need_uring();
	fixture_init(&f);
	fixture_files(&f, 40, 100000, 1);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(in_child(forbidden, &cases[i]), 0);
	fixture_deinit(&f, false);
}

/* Threads that were joined are still listed for a moment. */
static void wait_for_threads(unsigned int count)
{
	for (unsigned int i = 0; i < 5000 && count_threads("feeder-read-") != count; i++)
		sleep_ms(1);
	assert_int_equal(count_threads("feeder-read-"), count);
}

static void d24_a_later_ring_may_be_refused_too(void **state)
{
	struct reader_faults faults = { .ring_error = EPERM };
	struct reader_config config;
	struct reader_stats stats;
	struct reader *r = NULL;
	struct fixture f;
	char text[256];

	(void)state;
	need_uring();
	fixture_init(&f);
	fixture_files(&f, 60, 100000, 1);
	reader_config_init(&config);
	config.faults = &faults;
	config.threads = 4;
	config.give = f.pool;
	for (faults.ring_from = 1; faults.ring_from <= 4; faults.ring_from++) {
		config.backend = READER_AUTO;
		assert_int_equal(reader_new(&r, &config, text, sizeof(text)), 0);
		assert_string_equal(
			reader_backend_name(r), faults.ring_from == 1 ? "pread" : "io_uring");
		assert_non_null(strstr(text, "EPERM"));
		/* Four readers whatever they read with, and the keeper. */
		wait_for_threads(5);
		fixture_run(&f, r);
		fixture_check(&f, 0);
		reader_stats(r, &stats);
		assert_int_equal(
			stats.refused_rings, faults.ring_from == 1 ? 1 : 5 - faults.ring_from);
		reader_free(r);

		config.backend = READER_URING;
		assert_int_equal(reader_new(&r, &config, text, sizeof(text)), -EPERM);
	}
	fixture_deinit(&f, false);
}

static int little_locked_memory(void *arg)
{
	struct rlimit limit = { 65536, 65536 };
	struct fixture *f = arg;
	struct reader_config config;
	struct reader *r = NULL;
	char text[256];

	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return 10;
	/* Without the capability that lifts the limit, where we have it. */
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 11;
	reader_config_init(&config);
	config.threads = 128;
	config.give = f->pool;
	if (reader_new(&r, &config, text, sizeof(text)) < 0)
		return 12;
	if (count_wrong(f, r) != 0)
		return 13;
	reader_free(r);
	return 0;
}

static void d33_rings_do_not_need_locked_memory(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 60, 100000, 1);
	for (size_t i = 0; i < f.count; i++)
		assert_int_equal(fchmodat(f.tree.dirfd, f.items[i].path, 0644, 0), 0);
	assert_int_equal(
		fchmodat(f.tree.dirfd, "", 0755, AT_EMPTY_PATH) == 0 || chmod(f.dir, 0755) == 0, 1);
	assert_int_equal(in_child(little_locked_memory, &f), 0);
	fixture_deinit(&f, false);
}

/* Descriptors left for files: three, then none; the reader was started before. */
static int few_descriptors(void *arg)
{
	struct fixture *f = arg;
	struct reader_config config;
	struct rlimit limit;

	for (unsigned int b = 0; b < 2; b++) {
		struct reader *r = start(f, backend_of(b), (reader_config_init(&config), &config));
		int held[64], count = 0, fd;

		if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 10;
		limit.rlim_cur = 64;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 11;
		while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
			held[count++] = fd;
		for (unsigned int i = 0; i < 3; i++)
			close(held[--count]);
		if (count_wrong(f, r) != 0)
			return 12;
		while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
			held[count++] = fd;
		if (read_one(f, r, &f->items[0]) != FEEDER_STATUS_READ_ERROR)
			return 13;
		if (!strstr(f->items[0].request.fault.text, "EMFILE when opening"))
			return 14;
		item_give(&f->items[0]);
		while (count > 0)
			close(held[--count]);
		reader_free(r);
	}
	return 0;
}

static void b29_descriptors_nearly_exhausted(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_files(&f, 100, 50000, 1);
	assert_int_equal(in_child(few_descriptors, &f), 0);
	fixture_deinit(&f, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d23_d25_a_forbidden_ring_is_named_and_replaced),
		cmocka_unit_test(d24_a_later_ring_may_be_refused_too),
		cmocka_unit_test(d33_rings_do_not_need_locked_memory),
		cmocka_unit_test(b29_descriptors_nearly_exhausted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
