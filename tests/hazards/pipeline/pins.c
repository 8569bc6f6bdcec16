/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that are kept on a NUMA node, on a machine of two nodes. Where there is one node nothing
 * is pinned; so the files that tell the nodes are replaced (fopen is wrapped): the first CPU of
 * this process's mask is node 0, all others are node 1.
 */
#include "hazards/pipeline/faulty.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 2
/* A worker looks at its mask once in 1,024 samples. */
#define BATCHES (3 * 1024 * WORKERS / FOLDER_FILES)
#define BATCH   FOLDER_FILES

static cpu_set_t nodes[2];
static bool two_nodes;

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

static FILE *list_file(const char *list)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	fputs(list, f);
	rewind(f);
	return f;
}

static FILE *node_file(const cpu_set_t *cpus)
{
	char list[8192] = "";

	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, cpus))
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d",
				list[0] ? "," : "", i);
	}
	return list_file(list);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (two_nodes && !strcmp(path, "/sys/devices/system/node/has_cpu"))
		return list_file("0-1\n");
	if (two_nodes && !strcmp(path, "/sys/devices/system/node/node0/cpulist"))
		return node_file(&nodes[0]);
	if (two_nodes && !strcmp(path, "/sys/devices/system/node/node1/cpulist"))
		return node_file(&nodes[1]);
	return __real_fopen64(path, mode);
}

/* Halves this process's CPUs; skips the test where there is one. */
static cpu_set_t make_nodes(void)
{
	cpu_set_t all;
	int first = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		skip();
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&nodes[0]);
	CPU_SET(first, &nodes[0]);
	nodes[1] = all;
	CPU_CLR(first, &nodes[1]);
	return all;
}

/* The worker threads' numbers, by the number in their names. */
static void find_workers(pid_t ret[WORKERS])
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;

	assert_non_null(tasks);
	memset(ret, 0, WORKERS * sizeof(*ret));
	while ((e = readdir(tasks))) {
		char path[300], name[32] = "";
		unsigned int i;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = __real_fopen64(path, "r");
		if (f && fgets(name, sizeof(name), f) && sscanf(name, "feeder-work-%u", &i) == 1 &&
			i < WORKERS)
			ret[i] = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(tasks);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_true(ret[i] > 0);
}

static void drain(struct consumer *c, unsigned int batches)
{
	struct ring_descriptor d;

	for (unsigned int i = 0; i < batches; i++)
		assert_true(consumer_next(c, &d));
}

static bool has_mask(pid_t tid, const cpu_set_t *want)
{
	cpu_set_t mask;

	assert_int_equal(sched_getaffinity(tid, sizeof(mask), &mask), 0);
	return CPU_EQUAL(&mask, want);
}

struct stage {
	struct folder f;
	struct pipeline *p;
	struct consumer c;
	pid_t workers[WORKERS];
};

static void set_up(struct stage *s)
{
	struct pipeline_options options = { .workers = WORKERS };
	struct control_open_lane open;

	folder_make(&s->f);
	folder_open(&s->f);
	faulty_next(NULL);
	s->p = pipeline_make(&options);
	request_init(&open);
	open.batch = BATCH;
	consumer_open(&s->c, s->p, &s->f, &open);
	drain(&s->c, 2); /* all threads have begun */
	find_workers(s->workers);
}

static void tear_down(struct stage *s)
{
	consumer_close(&s->c);
	pipeline_free(s->p);
	folder_free(&s->f);
}

static void d41_a_mask_changed_from_outside_is_set_again_and_counted(void **state)
{
	struct stage s;
	cpu_set_t all = make_nodes();

	(void)state;
	two_nodes = true;
	set_up(&s);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_true(has_mask(s.workers[i], &nodes[i % 2]));
	drain(&s.c, BATCHES);
	assert_int_equal(daemon_counter(s.p, STATS_DAEMON_repinned), 0);
	/* as taskset does it */
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(sched_setaffinity(s.workers[i], sizeof(all), &all), 0);
	for (unsigned int i = 0; i < 20 && daemon_counter(s.p, STATS_DAEMON_repinned) < WORKERS;
		i++)
		drain(&s.c, BATCHES);
	assert_int_equal(daemon_counter(s.p, STATS_DAEMON_repinned), WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_true(has_mask(s.workers[i], &nodes[i % 2]));
	tear_down(&s);
	two_nodes = false;
}

/* One node: no thread is pinned, and a mask that somebody sets is left as he set it. */
static void d41_nothing_is_pinned_where_there_is_one_node(void **state)
{
	struct stage s;
	cpu_set_t all = make_nodes();
	FILE *f = fopen("/sys/devices/system/node/has_cpu", "r");
	char line[64] = "";

	(void)state;
	if (f && fgets(line, sizeof(line), f) && strpbrk(line, ",-"))
		line[0] = 'x';
	if (f)
		fclose(f);
	if (line[0] == 'x')
		skip();
	set_up(&s);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_true(has_mask(s.workers[i], &all));
	assert_int_equal(sched_setaffinity(s.workers[0], sizeof(nodes[0]), &nodes[0]), 0);
	drain(&s.c, BATCHES);
	assert_int_equal(daemon_counter(s.p, STATS_DAEMON_repinned), 0);
	assert_true(has_mask(s.workers[0], &nodes[0]));
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d41_a_mask_changed_from_outside_is_set_again_and_counted),
		cmocka_unit_test(d41_nothing_is_pinned_where_there_is_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
