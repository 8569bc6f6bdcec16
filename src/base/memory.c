/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory can still be had. */
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cpu.h"

static uint64_t machine_available(void)
{
	uint64_t kib, bytes = UINT64_MAX;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return bytes;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) {
			bytes = kib * 1024;
			break;
		}
	}
	fclose(f);
	return bytes;
}

uint64_t memory_available(void)
{
	uint64_t machine = machine_available(), group = UINT64_MAX;
	struct cgroup_limits limits;

	cgroup_limits_read("", &limits);
	if (limits.memory != UINT64_MAX)
		group = limits.memory > limits.memory_used ? limits.memory - limits.memory_used : 0;
	return machine < group ? machine : group;
}
