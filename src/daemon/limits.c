/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of this process. */
#include "daemon/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"
#include "control/config.h"

#define DECODE_MEMORY (1ull << 30) /* of one image, where the settings leave it to the decoder */

void limits_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t limits_memory(void)
{
	struct cgroup_limits group;
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	cgroup_limits_read("", &group);
	return group.memory < memory ? group.memory : memory;
}

static void limit_text(int resource, char *ret, size_t size)
{
	struct rlimit limit = { 0 };

	getrlimit((__rlimit_resource_t)resource, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(ret, size, "unlimited");
	else
		snprintf(ret, size, "%" PRIu64, (uint64_t)limit.rlim_cur);
}

static void report_memory(const struct config *config, unsigned int workers)
{
	uint64_t decode = config->decode_memory ? config->decode_memory : DECODE_MEMORY;
	uint64_t memory = limits_memory();
	uint64_t rings = config->limits.ring_bytes ? config->limits.ring_bytes : memory / 2;
	struct cgroup_limits group;

	cgroup_limits_read("", &group);
	log_info("memory: %" PRIu64 " MiB (%s); rings up to %" PRIu64
		 " MiB a uid, read-ahead up to %" PRIu64 " MiB, decoding at worst %u x %" PRIu64
		 " MiB",
		memory >> 20,
		group.memory == memory ? "the control group's limit" : "the machine's", rings >> 20,
		config->readahead >> 20, workers, decode >> 20);
	if (group.memory != UINT64_MAX && rings + config->readahead > group.memory)
		log_warning("rings of one uid (%" PRIu64 " MiB) and read-ahead (%" PRIu64
			    " MiB) may exceed the control group's memory limit of %" PRIu64
			    " MiB; lower ring_bytes, or raise MemoryMax=",
			rings >> 20, config->readahead >> 20, group.memory >> 20);
	else if (rings + config->readahead + workers * decode > memory)
		log_info("with images of the largest size in every worker that would be more than "
			 "there is: lower decode_memory if such images are to be expected");
}

void limits_report(
	const struct config *config, unsigned int workers, unsigned int cpus, const char *reader)
{
	char files[32], memlock[32], mask[256], quota[32] = "none";
	struct cgroup_limits group;

	limit_text(RLIMIT_NOFILE, files, sizeof(files));
	limit_text(RLIMIT_MEMLOCK, memlock, sizeof(memlock));
	cpu_mask_string(mask, sizeof(mask));
	cgroup_limits_read("", &group);
	if (group.quota_milli > 0)
		snprintf(quota, sizeof(quota), "%u.%02u", group.quota_milli / 1000,
			group.quota_milli % 1000 / 10);
	log_info("workers %u, CPUs allowed %u (mask %s, %u wide; quota %s), reader %s; limits: "
		 "open files %s, locked memory %s",
		workers, cpus, mask, cpu_mask_width(), quota, reader, files, memlock);
	if (workers > cpus)
		log_warning("%u workers on %u CPUs allowed (mask %s): they wait for each other; "
			    "widen the mask (taskset, CPUAffinity=, CPUQuota=) or lower workers",
			workers, cpus, mask);
	report_memory(config, workers);
}
