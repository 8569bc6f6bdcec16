/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: start, worker policy, pinning. */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/cpu.h"

static __thread cpu_set_t pinned_to; /* empty: never pinned */

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	char cut[16];

	snprintf(cut, sizeof(cut), "%s", name);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&thread, NULL, fn, arg);
	if (r == 0)
		pthread_setname_np(thread, cut);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	*ret = thread;
	return 0;
}

void thread_worker_policy(void)
{
	struct sched_param param = { .sched_priority = 0 };

	sched_setscheduler(0, SCHED_BATCH, &param);
	setpriority(PRIO_PROCESS, 0, 5); /* Linux: of the calling thread alone */
}

static bool read_list(const char *path, cpu_set_t *ret)
{
	char list[4096];
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	bool got = fgets(list, sizeof(list), f) != NULL;
	fclose(f);
	return got && cpu_list_parse(list, ret) == 0;
}

/* CPUs of the k-th node that shares any with mask; the number of such nodes. */
static unsigned int node_cpus(const cpu_set_t *mask, unsigned int k, cpu_set_t *ret)
{
	unsigned int found = 0;
	cpu_set_t nodes, cpus;

	if (!read_list("/sys/devices/system/node/has_cpu", &nodes))
		return 0;
	for (unsigned int node = 0; node < CPU_SETSIZE; node++) {
		char path[80];

		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
		if (!CPU_ISSET(node, &nodes) || !read_list(path, &cpus))
			continue;
		CPU_AND(&cpus, &cpus, mask);
		if (CPU_COUNT(&cpus) == 0)
			continue;
		if (found++ == k)
			*ret = cpus;
	}
	return found;
}

int thread_pin_node(unsigned int i)
{
	cpu_set_t mask, cpus;

	if (sched_getaffinity(0, sizeof(mask), &mask) < 0)
		return -errno;
	CPU_ZERO(&cpus);
	unsigned int nodes = node_cpus(&mask, 0, &cpus);
	if (nodes < 2)
		return 0;
	node_cpus(&mask, i % nodes, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		return -errno;
	pinned_to = cpus;
	return 0;
}

int thread_pin_check(void)
{
	cpu_set_t mask;

	if (CPU_COUNT(&pinned_to) == 0 || sched_getaffinity(0, sizeof(mask), &mask) < 0 ||
		CPU_EQUAL(&mask, &pinned_to))
		return 0;
	sched_setaffinity(0, sizeof(pinned_to), &pinned_to);
	return 1;
}
