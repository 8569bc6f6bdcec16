/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU quota, throttling and memory limit of this process's control groups, v1 and v2.
 *
 * The path in /proc/self/cgroup is walked upwards, since every ancestor's limit holds too. In a
 * container without a cgroup namespace that path is the host's and does not exist below the
 * mounted hierarchy; walking up then ends at the mount itself, which is the container's group.
 */
#include "base/cpu.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hierarchy {
	char mount[PATH_MAX / 2];
	char path[PATH_MAX / 2];
	bool v2;
};

/* First line of directory/name, without its end; false where it cannot be read. */
static bool read_line(const char *directory, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool got = fgets(ret, (int)size, f) != NULL;
	fclose(f);
	if (got)
		ret[strcspn(ret, "\n")] = '\0';
	return got;
}

static bool has_controller(const char *list, const char *controller)
{
	size_t length = strlen(controller);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		if (!strncmp(p, controller, length) && (p[length] == ',' || p[length] == '\0'))
			return true;
	}
	return false;
}

static bool directory_has(const char *directory, const char *name)
{
	char line[64];

	return read_line(directory, name, line, sizeof(line));
}

/* Where v1 mounts a controller: under its own name or with others (cpu,cpuacct). */
static void v1_mount(
	const char *root, const char *controllers, const char *controller, struct hierarchy *h)
{
	snprintf(h->mount, sizeof(h->mount), "%s/sys/fs/cgroup/%s", root, controllers);
	if (!directory_has(h->mount, "cgroup.procs") && !directory_has(h->mount, "tasks"))
		snprintf(h->mount, sizeof(h->mount), "%s/sys/fs/cgroup/%s", root, controller);
	h->v2 = false;
}

/* The hierarchy that has the controller; v1 where it is listed there (hybrid systems). */
static bool find_hierarchy(const char *root, const char *controller, struct hierarchy *h)
{
	char name[PATH_MAX], line[PATH_MAX];
	bool found = false;

	snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
	FILE *f = fopen(name, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		path[strcspn(path, "\n")] = '\0';
		bool v2 = controllers[0] == '\0';
		if (v2 ? found : !has_controller(controllers, controller))
			continue;
		snprintf(h->path, sizeof(h->path), "%.*s", (int)sizeof(h->path) - 1, path);
		if (v2) {
			snprintf(h->mount, sizeof(h->mount), "%s/sys/fs/cgroup", root);
			h->v2 = true;
		} else {
			v1_mount(root, controllers, controller, h);
		}
		found = true;
		if (!v2)
			break;
	}
	fclose(f);
	return found;
}

/* CPUs · 1000 of one group, 0 where it sets no quota. */
static uint64_t group_quota(const char *directory, bool v2)
{
	char line[64];
	long long quota = -1, period = 0;

	if (v2) {
		if (!read_line(directory, "cpu.max", line, sizeof(line)) ||
			sscanf(line, "%lld %lld", &quota, &period) != 2)
			return 0; /* "max" too */
	} else {
		if (!read_line(directory, "cpu.cfs_quota_us", line, sizeof(line)))
			return 0;
		quota = strtoll(line, NULL, 10);
		if (!read_line(directory, "cpu.cfs_period_us", line, sizeof(line)))
			return 0;
		period = strtoll(line, NULL, 10);
	}
	if (quota <= 0 || period <= 0)
		return 0;
	uint64_t milli = (uint64_t)quota * 1000 / (uint64_t)period;
	return milli > 0 ? milli : 1;
}

static uint64_t group_number(const char *directory, const char *name)
{
	char line[64];
	char *end;

	if (!read_line(directory, name, line, sizeof(line)))
		return UINT64_MAX;
	errno = 0;
	unsigned long long value = strtoull(line, &end, 10);
	return end == line || *end || errno ? UINT64_MAX : value;
}

static uint64_t group_throttled(const char *directory, bool v2)
{
	char path[PATH_MAX + 64], line[128];
	uint64_t found = 0;
	unsigned long long value;

	snprintf(path, sizeof(path), "%s/cpu.stat", directory);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (v2 && sscanf(line, "throttled_usec %llu", &value) == 1)
			found = value * 1000;
		else if (!v2 && sscanf(line, "throttled_time %llu", &value) == 1)
			found = value;
	}
	fclose(f);
	return found;
}

/* Bytes charged that cannot be had back by dropping the page cache. */
static uint64_t group_memory_used(const char *directory, bool v2)
{
	uint64_t used = group_number(directory, v2 ? "memory.current" : "memory.usage_in_bytes");
	char path[PATH_MAX + 64], line[128];
	uint64_t cache = 0;
	unsigned long long value;

	snprintf(path, sizeof(path), "%s/memory.stat", directory);
	FILE *f = fopen(path, "re");
	if (!f)
		return used == UINT64_MAX ? 0 : used;
	while (fgets(line, sizeof(line), f)) {
		const char *key = v2 || strncmp(line, "total_", 6) ? line : line + 6;

		if (v2 == (key == line) && (sscanf(key, "inactive_file %llu", &value) == 1 ||
						   sscanf(key, "active_file %llu", &value) == 1))
			cache += value;
	}
	fclose(f);
	return used == UINT64_MAX || used < cache ? 0 : used - cache;
}

/* Cuts the last component off; false when there was none left. */
static bool path_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (path[0] == '\0')
		return false;
	*(slash ? slash : path) = '\0';
	return true;
}

static void read_cpu(const char *root, struct cgroup_limits *ret)
{
	char directory[PATH_MAX];
	struct hierarchy h;
	bool own = true;

	if (!find_hierarchy(root, "cpu", &h))
		return;
	do {
		if (h.path[0] == '/' && h.path[1] == '\0')
			h.path[0] = '\0';
		snprintf(directory, sizeof(directory), "%s%s", h.mount, h.path);
		uint64_t milli = group_quota(directory, h.v2);
		if (milli > 0 && (ret->quota_milli == 0 || milli < ret->quota_milli))
			ret->quota_milli = milli < UINT32_MAX ? (uint32_t)milli : UINT32_MAX;
		if (own && directory_has(directory, "cpu.stat")) {
			ret->throttled_ns = group_throttled(directory, h.v2);
			own = false;
		}
	} while (path_up(h.path));
}

static void read_memory(const char *root, struct cgroup_limits *ret)
{
	char directory[PATH_MAX];
	struct hierarchy h;

	if (!find_hierarchy(root, "memory", &h))
		return;
	do {
		if (h.path[0] == '/' && h.path[1] == '\0')
			h.path[0] = '\0';
		snprintf(directory, sizeof(directory), "%s%s", h.mount, h.path);
		uint64_t limit =
			group_number(directory, h.v2 ? "memory.max" : "memory.limit_in_bytes");
		if (limit >= (1ull << 60)) /* v1 writes LONG_MAX rounded to pages for none */
			continue;
		if (limit >= ret->memory)
			continue;
		ret->memory = limit;
		ret->memory_used = group_memory_used(directory, h.v2);
	} while (path_up(h.path));
}

void cgroup_limits_read(const char *root, struct cgroup_limits *ret)
{
	*ret = (struct cgroup_limits){ .memory = UINT64_MAX };
	read_cpu(root, ret);
	read_memory(root, ret);
}
