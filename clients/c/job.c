/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job this process belongs to: the name that joins the ranks of one training run, from the
 * launchers that set it for every rank alike.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a; for names that must not collide by accident, not against an attacker. */
uint64_t fdr_hash(uint64_t seed, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < size; i++)
		seed = (seed ^ p[i]) * 0x100000001b3ull;
	return seed;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* Start time of this process in clock ticks since boot: with the pid, unique on this node. */
static unsigned long long start_time(void)
{
	unsigned long long ticks = 0;
	char line[1024];
	FILE *file = fopen("/proc/self/stat", "re");

	if (!file)
		return 0;
	if (fgets(line, sizeof(line), file)) {
		/* the name, field 2, may hold anything; field 22 counts from behind it */
		char *p = strrchr(line, ')');

		for (unsigned int field = 2; p && field < 22; field++)
			p = strchr(p + 1, ' ');
		if (p)
			ticks = strtoull(p, NULL, 10);
	}
	fclose(file);
	return ticks;
}

/* A name that is too long keeps its beginning and gets the whole's hash behind it. */
static void set_job(char ret[CONTROL_JOB_MAX], const char *a, const char *separator, const char *b)
{
	char whole[2048];
	int length = snprintf(whole, sizeof(whole), "%s%s%s", a, separator, b);

	memset(ret, 0, CONTROL_JOB_MAX);
	if (length < CONTROL_JOB_MAX) {
		memcpy(ret, whole, (size_t)length);
		return;
	}
	uint64_t hash = fdr_hash(FDR_HASH_SEED, a, strlen(a));

	hash = fdr_hash(hash, separator, strlen(separator));
	hash = fdr_hash(hash, b, strlen(b));
	snprintf(ret, CONTROL_JOB_MAX, "%.100s#%016llx", whole, (unsigned long long)hash);
}

void fdr_job_find(char ret[CONTROL_JOB_MAX], const char *argument)
{
	const char *slurm_job = environment("SLURM_JOB_ID");
	const char *slurm_step = environment("SLURM_STEP_ID");
	const char *master = environment("MASTER_ADDR");
	const char *port = environment("MASTER_PORT");
	const char *world = environment("WORLD_SIZE");
	char pid[32];
	char start[32];

	if (!argument || !argument[0])
		argument = environment("FEEDER_JOB");
	if (argument) {
		set_job(ret, argument, "", "");
		return;
	}
	if (slurm_job && slurm_step) {
		set_job(ret, slurm_job, ".", slurm_step);
		return;
	}
	if (master && port && world && strtol(world, NULL, 10) > 1) {
		set_job(ret, master, ":", port);
		return;
	}
	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	snprintf(start, sizeof(start), "%llu", start_time());
	set_job(ret, pid, "@", start);
}
