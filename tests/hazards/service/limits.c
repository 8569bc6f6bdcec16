/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the start says about limits, under a control group that the test makes up: files of /proc
 * and /sys are replaced (fopen is wrapped), the log is caught.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "control/config.h"
#include "control/quota.h"
#include "daemon/limits.h"

#define MIB (1ull << 20)

/* The group's files, by what stands behind the mount; NULL: the real ones. */
static const char *memory_max, *memory_current, *cpu_max;

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

static FILE *text_file(const char *text)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	fputs(text, f);
	rewind(f);
	return f;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (!memory_max)
		return __real_fopen64(path, mode);
	if (!strcmp(path, "/proc/self/cgroup"))
		return text_file("0::/pod/feeder\n");
	if (!strcmp(path, "/sys/fs/cgroup/pod/memory.max"))
		return text_file(memory_max);
	if (!strcmp(path, "/sys/fs/cgroup/pod/feeder/memory.max"))
		return text_file("max\n");
	if (!strcmp(path, "/sys/fs/cgroup/pod/memory.current"))
		return text_file(memory_current);
	if (!strcmp(path, "/sys/fs/cgroup/pod/feeder/cpu.max"))
		return text_file(cpu_max);
	return strncmp(path, "/sys/fs/cgroup/", 15) ? __real_fopen64(path, mode) : NULL;
}

/* What limits_report logs. */
static void report(const struct config *config, unsigned int workers, unsigned int cpus, char *ret,
	size_t size)
{
	int before = dup(STDERR_FILENO), ends[2];
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(before >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	limits_report(config, workers, cpus, "pread");
	dup2(before, STDERR_FILENO);
	close(before);
	close(ends[1]);
	n = read(ends[0], ret, size - 1);
	assert_true(n > 0);
	ret[n] = '\0';
	close(ends[0]);
}

static void limit_text(const struct rlimit *limit, char *ret, size_t size)
{
	if (limit->rlim_cur == RLIM_INFINITY)
		snprintf(ret, size, "unlimited");
	else
		snprintf(ret, size, "%" PRIu64, (uint64_t)limit->rlim_cur);
}

static void d55_the_log_has_the_limits_that_hold(void **state)
{
	static const struct rlimit small = { 300, 512 }, locked = { 64 << 10, 64 << 10 };
	struct rlimit files, memlock;
	char log[4096], want[128], number[32];
	struct config config;

	(void)state;
	config_init(&config);
	/* whatever this process was started with */
	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	limit_text(&files, number, sizeof(number));
	snprintf(want, sizeof(want), "limits: open files %s, locked memory ", number);
	limit_text(&memlock, number, sizeof(number));
	strncat(want, number, sizeof(want) - strlen(want) - 1);
	report(&config, 1, 1, log, sizeof(log));
	assert_non_null(strstr(log, want));
	/* and as a unit without Limit…= has them: raised where that is free */
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &locked), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	limits_raise();
	report(&config, 1, 1, log, sizeof(log));
	assert_non_null(strstr(log, "limits: open files 512, locked memory 65536\n"));
	config_deinit(&config);
}

static void d55_cpus_and_quota_are_told_and_too_many_workers_warned_of(void **state)
{
	char log[4096], mask[256];
	struct config config;

	(void)state;
	config_init(&config);
	memory_max = "max\n";
	memory_current = "0\n";
	cpu_max = "150000 100000\n";
	cpu_mask_string(mask, sizeof(mask));
	report(&config, 2, 2, log, sizeof(log));
	assert_non_null(strstr(log, mask));
	assert_non_null(strstr(log, "quota 1.50"));
	assert_null(strstr(log, "warning"));
	report(&config, 5, 2, log, sizeof(log));
	assert_non_null(strstr(log, "warning: 5 workers on 2 CPUs allowed"));
	memory_max = NULL;
	config_deinit(&config);
}

/* What one uid's rings and the read-ahead may take is held against the group's limit. */
static void d58_rings_beyond_the_memory_limit_are_warned_of_at_the_start(void **state)
{
	struct config_limits *limits;
	struct quota *quota;
	struct config config;
	char log[4096], text[512];

	(void)state;
	config_init(&config);
	limits = &config.limits;
	cpu_max = "max 100000\n";
	memory_max = "1073741824\n";
	memory_current = "0\n";
	assert_int_equal(limits_memory(), 1024 * MIB);
	/* half the memory and 64 MiB: they fit */
	report(&config, 1, 1, log, sizeof(log));
	assert_non_null(strstr(log, "memory: 1024 MiB (the control group's limit); rings up to 512 "
				    "MiB a uid, read-ahead up to 64 MiB"));
	assert_null(strstr(log, "warning"));
	/* the limit just above the ring: with the read-ahead it is over */
	limits->ring_bytes = 1000 * MIB;
	report(&config, 1, 1, log, sizeof(log));
	assert_non_null(strstr(log, "warning: rings of one uid (1000 MiB) and read-ahead (64 MiB) "
				    "may exceed the control group's memory limit of 1024 MiB"));
	assert_non_null(strstr(log, "MemoryMax="));
	limits->ring_bytes = 960 * MIB;
	report(&config, 1, 1, log, sizeof(log));
	assert_null(strstr(log, "warning"));
	/* and what has no explicit limit may have half of the group's memory */
	limits->ring_bytes = 0;
	assert_int_equal(quota_new(&quota, limits, limits_memory()), 0);
	assert_int_equal(quota_take_bytes(quota, 0, 512 * MIB, text, sizeof(text)), 0);
	assert_true(quota_take_bytes(quota, 0, 1, text, sizeof(text)) < 0);
	quota_give_bytes(quota, 0, 512 * MIB);
	quota_free(quota);
	memory_max = NULL;
	config_deinit(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d55_cpus_and_quota_are_told_and_too_many_workers_warned_of),
		cmocka_unit_test(d58_rings_beyond_the_memory_limit_are_warned_of_at_the_start),
		cmocka_unit_test(d55_the_log_has_the_limits_that_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
