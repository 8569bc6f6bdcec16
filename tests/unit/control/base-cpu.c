/* SPDX-License-Identifier: Apache-2.0 */
/* CPU lists, and control groups as they look on different systems. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"

static char root[] = "/tmp/feeder-cgroup-XXXXXX";

static int make_root(void **state)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put(const char *name, const char *content)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static void d42_version_2_takes_the_tightest_of_all_ancestors(void **state)
{
	struct cgroup_limits limits;

	(void)state;
	put("proc/self/cgroup", "0::/slice/unit.service\n");
	put("sys/fs/cgroup/slice/unit.service/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/slice/unit.service/cpu.stat",
		"usage_usec 5\nnr_throttled 3\nthrottled_usec 7000\n");
	put("sys/fs/cgroup/slice/cpu.max", "250000 100000\n");
	put("sys/fs/cgroup/slice/unit.service/memory.max", "8000000\n");
	put("sys/fs/cgroup/slice/unit.service/memory.current", "5000\n");
	put("sys/fs/cgroup/slice/unit.service/memory.stat",
		"anon 900\nfile 4000\ninactive_file 3000\nactive_file 1000\n");
	put("sys/fs/cgroup/slice/memory.max", "max\n");
	cgroup_limits_read(root, &limits);
	assert_int_equal(limits.quota_milli, 2500);
	assert_int_equal(limits.memory, 8000000);
	assert_int_equal(limits.memory_used, 1000);
	assert_int_equal(limits.throttled_ns, 7000000);
}

static void d42_version_1_in_a_container_without_namespace(void **state)
{
	struct cgroup_limits limits;

	(void)state;
	put("proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/"
				"docker/abc\n0::/\n");
	/* what is mounted is the container's own group */
	put("sys/fs/cgroup/cpu,cpuacct/cgroup.procs", "1\n");
	put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
	put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 1\nthrottled_time 1234\n");
	put("sys/fs/cgroup/memory/cgroup.procs", "1\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000\n");
	put("sys/fs/cgroup/memory/memory.stat",
		"inactive_file 1\ntotal_inactive_file 500000\ntotal_active_file 100000\n");
	cgroup_limits_read(root, &limits);
	assert_int_equal(limits.quota_milli, 500);
	assert_int_equal(limits.memory, 1000000);
	assert_int_equal(limits.memory_used, 300000);
	assert_int_equal(limits.throttled_ns, 1234);
}

static void no_limit_is_no_limit(void **state)
{
	struct cgroup_limits limits;

	(void)state;
	put("proc/self/cgroup", "2:memory:/\n1:cpu:/\n");
	put("sys/fs/cgroup/cpu/tasks", "1\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	put("sys/fs/cgroup/memory/tasks", "1\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	cgroup_limits_read(root, &limits);
	assert_int_equal(limits.quota_milli, 0);
	assert_true(limits.memory == UINT64_MAX);
}

static void nothing_there(void **state)
{
	struct cgroup_limits limits;

	(void)state;
	cgroup_limits_read(root, &limits);
	assert_int_equal(limits.quota_milli, 0);
	assert_true(limits.memory == UINT64_MAX);
	assert_int_equal(limits.throttled_ns, 0);
}

static void lists(void **state)
{
	static const char *const bad[] = { "a", "1-", "3-1", "1;2", "-1", "1,,2", "99999" };
	cpu_set_t set;

	(void)state;
	assert_int_equal(cpu_list_parse("0-3,8,10-11\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 7);
	assert_true(CPU_ISSET(8, &set) && !CPU_ISSET(9, &set));
	assert_int_equal(cpu_list_parse("", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(cpu_list_parse(bad[i], &set) < 0);
}

static void d40_the_own_mask(void **state)
{
	cpu_set_t before, one, parsed;
	char text[256];
	int cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(cpu_mask_width(), CPU_COUNT(&before));
	cpu_mask_string(text, sizeof(text));
	assert_int_equal(cpu_list_parse(text, &parsed), 0);
	assert_true(CPU_EQUAL(&parsed, &before));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cpu_mask_width(), 1);
	assert_int_equal(cpu_allowed(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	char tiny[2];
	cpu_mask_string(tiny, sizeof(tiny));
	assert_true(strlen(tiny) < sizeof(tiny));
}

#define TREE(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(d42_version_2_takes_the_tightest_of_all_ancestors),
		TREE(d42_version_1_in_a_container_without_namespace),
		TREE(no_limit_is_no_limit),
		TREE(nothing_there),
		cmocka_unit_test(lists),
		cmocka_unit_test(d40_the_own_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
