/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine lets this process use. Never nproc: a batch job has an affinity mask, a
 * container a CPU quota and a memory limit, and both count (the tightest of the own group and its
 * ancestors, cgroup v1 and v2).
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/* min(CPUs in the calling thread's affinity mask, ceil(cgroup quota)), at least 1. */
unsigned int cpu_allowed(void);
unsigned int cpu_mask_width(void); /* CPUs in the mask alone */
/* The mask as the kernel writes lists, "0-3,8"; cut where it does not fit. */
void cpu_mask_string(char *ret, size_t size);
/* The inverse, for lists of /sys. 0, -EINVAL, -ERANGE (a CPU ≥ CPU_SETSIZE). */
int cpu_list_parse(const char *list, cpu_set_t *ret);

struct cgroup_limits {
	uint32_t quota_milli;  /* CPUs · 1000 that the quota gives; 0: no quota */
	uint64_t memory;       /* bytes; UINT64_MAX: no limit */
	uint64_t memory_used;  /* bytes charged to that group, without droppable page cache */
	uint64_t throttled_ns; /* time for which the quota stopped the own group, so far */
};

/*
 * Never fails: what cannot be read sets no limit. root is put before /proc and /sys ("" but in
 * tests).
 */
void cgroup_limits_read(const char *root, struct cgroup_limits *ret);

#endif
