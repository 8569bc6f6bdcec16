/* SPDX-License-Identifier: Apache-2.0 */
/* Which job: argument, FEEDER_JOB, Slurm, torchrun, this process; in that order. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../clients/c/client.h"

static int clear(void **state)
{
	static const char *const names[] = { "FEEDER_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID",
		"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	return 0;
}

static void assert_job(const char *argument, const char *expected)
{
	char job[CONTROL_JOB_MAX];

	memset(job, 0xee, sizeof(job));
	fdr_job_find(job, argument);
	assert_string_equal(job, expected);
	assert_true(control_string_ok(job, sizeof(job)));
}

static void each_source_yields_to_the_one_before(void **state)
{
	(void)state;
	setenv("MASTER_ADDR", "node7", 1);
	setenv("MASTER_PORT", "29500", 1);
	setenv("WORLD_SIZE", "8", 1);
	assert_job(NULL, "node7:29500");
	setenv("SLURM_JOB_ID", "991", 1);
	assert_job(NULL, "node7:29500");
	setenv("SLURM_STEP_ID", "3", 1);
	assert_job(NULL, "991.3");
	setenv("FEEDER_JOB", "resnet", 1);
	assert_job(NULL, "resnet");
	assert_job("mine", "mine");
	assert_job("", "resnet");
}

static void one_rank_alone_is_its_process(void **state)
{
	char job[CONTROL_JOB_MAX];
	char again[CONTROL_JOB_MAX];
	char start[32];
	int pid = 0;

	(void)state;
	setenv("MASTER_ADDR", "node7", 1);
	setenv("MASTER_PORT", "29500", 1);
	setenv("WORLD_SIZE", "1", 1);
	fdr_job_find(job, NULL);
	assert_int_equal(sscanf(job, "process %d@%31s", &pid, start), 2);
	assert_int_equal(pid, getpid());
	assert_string_not_equal(start, "0");
	fdr_job_find(again, NULL);
	assert_string_equal(job, again);
}

static void long_names_stay_different(void **state)
{
	char a[300];
	char b[300];
	char job_a[CONTROL_JOB_MAX];
	char job_b[CONTROL_JOB_MAX];

	(void)state;
	memset(a, 'x', sizeof(a));
	a[sizeof(a) - 1] = '\0';
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 2] = 'y';
	fdr_job_find(job_a, a);
	fdr_job_find(job_b, b);
	assert_string_not_equal(job_a, job_b);
	assert_memory_equal(job_a, a, 100);
	assert_true(control_string_ok(job_a, sizeof(job_a)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_source_yields_to_the_one_before, clear),
		cmocka_unit_test_setup(one_rank_alone_is_its_process, clear),
		cmocka_unit_test_setup(long_names_stay_different, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
