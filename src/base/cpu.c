/* SPDX-License-Identifier: Apache-2.0 */
/* The affinity mask, and what it becomes under a CPU quota. */
#include "base/cpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Masks wider than CPU_SETSIZE (1,024) are counted with a larger set. */
unsigned int cpu_mask_width(void)
{
	for (int cpus = CPU_SETSIZE; cpus <= 65536; cpus *= 4) {
		size_t size = CPU_ALLOC_SIZE(cpus);
		cpu_set_t *set = CPU_ALLOC(cpus);

		if (!set)
			return 1;
		int r = sched_getaffinity(0, size, set);
		int width = r < 0 ? 0 : CPU_COUNT_S(size, set);
		int error = errno;
		CPU_FREE(set);
		if (r == 0)
			return width > 0 ? (unsigned int)width : 1;
		if (error != EINVAL)
			return 1;
	}
	return 1;
}

unsigned int cpu_allowed(void)
{
	struct cgroup_limits limits;
	unsigned int width = cpu_mask_width();

	cgroup_limits_read("", &limits);
	unsigned int quota = (limits.quota_milli + 999) / 1000;
	return quota > 0 && quota < width ? quota : width;
}

void cpu_mask_string(char *ret, size_t size)
{
	cpu_set_t set;
	size_t used = 0;

	if (size == 0)
		return;
	ret[0] = '\0';
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (int i = 0; i < CPU_SETSIZE && used < size; i++) {
		int last = i;

		if (!CPU_ISSET(i, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		int n = last > i ? snprintf(ret + used, size - used, "%s%d-%d", used ? "," : "", i,
					   last)
				 : snprintf(ret + used, size - used, "%s%d", used ? "," : "", i);
		used += (size_t)n;
		i = last;
	}
}

int cpu_list_parse(const char *list, cpu_set_t *ret)
{
	cpu_set_t set;
	const char *p = list;

	CPU_ZERO(&set);
	while (*p && *p != '\n') {
		char *end;

		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		unsigned long first = strtoul(p, &end, 10), last = first;
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		if (last >= CPU_SETSIZE)
			return -ERANGE;
		for (unsigned long i = first; i <= last; i++)
			CPU_SET(i, &set);
		p = *end == ',' ? end + 1 : end;
	}
	*ret = set;
	return 0;
}
