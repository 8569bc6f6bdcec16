/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of ranks ("Cursor, epochs, digest" of protocol/order.md). */
#include "control/group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/control.h"

struct group {
	struct list link;
	uid_t uid;
	char job[CONTROL_JOB_MAX];
	char name[CONTROL_NAME_MAX];
	struct lane_identity first; /* of the lane with which the group began */
	uint32_t first_rank;
	struct list members;
};

void group_table_init(struct group_table *table)
{
	list_init(&table->groups);
}

static struct group *find_group(const struct group_table *table, const struct group_ask *ask)
{
	LIST_FOR_EACH (l, &table->groups) {
		struct group *g = CONTAINER_OF(l, struct group, link);

		if (g->uid == ask->uid && !strcmp(g->job, ask->job) && !strcmp(g->name, ask->name))
			return g;
	}
	return NULL;
}

static const char *order_word(uint32_t order)
{
	static const char *const words[] = { "?", "torch", "feistel", "sequential", "block",
		"dataloader", "ids" };

	return words[order < sizeof(words) / sizeof(words[0]) ? order : 0];
}

static const char *tail_word(uint32_t tail)
{
	static const char *const words[] = { "?", "pad", "drop", "mask" };

	return words[tail < sizeof(words) / sizeof(words[0]) ? tail : 0];
}

static void fingerprint_word(char ret[17], const uint8_t fingerprint[16])
{
	for (unsigned int i = 0; i < 8; i++)
		snprintf(ret + 2 * i, 3, "%02x", fingerprint[i]);
}

/* The first value that differs, with both; false where all that must always agree does. */
static bool differs(
	const struct lane_identity *a, const struct lane_identity *b, char *ret, size_t size)
{
	char fa[17], fb[17];

	fingerprint_word(fa, a->fingerprint);
	fingerprint_word(fb, b->fingerprint);
	if (memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)) != 0)
		snprintf(ret, size,
			"dataset fingerprint %s, this one %s: they do not see the same files", fa,
			fb);
	else if (a->order != b->order)
		snprintf(ret, size, "order %s, this one %s", order_word(a->order),
			order_word(b->order));
	else if (a->seed != b->seed)
		snprintf(ret, size, "seed %" PRIu64 ", this one %" PRIu64, a->seed, b->seed);
	else if (a->world != b->world)
		snprintf(ret, size, "world size %u, this one %u", a->world, b->world);
	else if (a->batch != b->batch)
		snprintf(ret, size, "batch size %u, this one %u", a->batch, b->batch);
	else if (a->accumulate != b->accumulate)
		snprintf(ret, size, "accumulate %u, this one %u", a->accumulate, b->accumulate);
	else if (a->tail != b->tail)
		snprintf(ret, size, "tail %s, this one %s", tail_word(a->tail), tail_word(b->tail));
	else
		return false;
	return true;
}

/*
 * A new lane begins where the first one began. One that comes back after a death begins where it
 * was: another epoch, or the same one a whole number of steps away.
 */
static bool starts_elsewhere(const struct lane_identity *first, const struct lane_identity *ask,
	bool reopen, char *ret, size_t size)
{
	if (first->epoch != ask->epoch) {
		if (reopen)
			return false;
		snprintf(ret, size, "cursor at epoch %" PRIu64 ", this one %" PRIu64, first->epoch,
			ask->epoch);
		return true;
	}
	uint64_t apart = first->c > ask->c ? first->c - ask->c : ask->c - first->c;
	uint64_t step = (uint64_t)first->batch * first->world;
	if (apart == 0 || (reopen && step > 0 && apart % step == 0))
		return false;
	if (reopen)
		snprintf(ret, size,
			"cursor at position %" PRIu64 " of the epoch, this one %" PRIu64
			", which is not a whole number of steps of %" PRIu64 " positions",
			first->c, ask->c, step);
	else
		snprintf(ret, size,
			"cursor at position %" PRIu64 " of the epoch, this one %" PRIu64, first->c,
			ask->c);
	return true;
}

int group_check(const struct group_table *table, const struct group_ask *ask,
	struct group_member **ret_held, char *text, size_t size)
{
	const struct group *g = find_group(table, ask);
	char what[256];

	*ret_held = NULL;
	if (!g)
		return 0;
	if (differs(&g->first, ask->identity, what, sizeof(what)) ||
		starts_elsewhere(&g->first, ask->identity, ask->reopen, what, sizeof(what))) {
		snprintf(text, size,
			"rank %u of lane \"%s\" of job \"%s\" disagrees with rank %u, which was "
			"opened with %s",
			ask->rank, ask->name, ask->job, g->first_rank, what);
		return -EEXIST;
	}
	LIST_FOR_EACH (l, &g->members) {
		struct group_member *m = CONTAINER_OF(l, struct group_member, link);

		if (m->rank != ask->rank)
			continue;
		if (m->parts != ask->parts) {
			snprintf(text, size,
				"rank %u of lane \"%s\" of job \"%s\" is dealt in %u parts, this "
				"lane "
				"asks for a part of %u",
				ask->rank, ask->name, ask->job, m->parts, ask->parts);
			return -EEXIST;
		}
		if (m->part == ask->part)
			*ret_held = m;
	}
	return *ret_held ? 1 : 0;
}

int group_join(struct group_table *table, const struct group_ask *ask, struct group_member *member)
{
	struct group *g = find_group(table, ask);

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		g->uid = ask->uid;
		snprintf(g->job, sizeof(g->job), "%s", ask->job);
		snprintf(g->name, sizeof(g->name), "%s", ask->name);
		g->first = *ask->identity;
		g->first_rank = ask->rank;
		list_init(&g->members);
		list_append(&table->groups, &g->link);
	}
	member->group = g;
	member->rank = ask->rank;
	member->part = ask->part;
	member->parts = ask->parts;
	list_append(&g->members, &member->link);
	return 0;
}

void group_leave(struct group_member *member)
{
	struct group *g = member->group;

	if (!g)
		return;
	list_remove(&member->link);
	member->group = NULL;
	if (list_empty(&g->members)) {
		list_remove(&g->link);
		free(g);
	}
}

/* Whether a member stands before `until` in the table that is the same rank of the same job. */
static bool seen_before(const struct group_table *table, const struct group *group,
	const struct group_member *until)
{
	LIST_FOR_EACH (l, &table->groups) {
		const struct group *g = CONTAINER_OF(l, struct group, link);

		if (g->uid != group->uid || strcmp(g->job, group->job) != 0)
			continue;
		LIST_FOR_EACH (k, &g->members) {
			const struct group_member *m = CONTAINER_OF(k, struct group_member, link);

			if (m == until)
				return false;
			if (m->rank == until->rank)
				return true;
		}
	}
	return false;
}

unsigned int group_ranks(const struct group_table *table)
{
	unsigned int ranks = 0;

	LIST_FOR_EACH (l, &table->groups) {
		const struct group *g = CONTAINER_OF(l, struct group, link);

		LIST_FOR_EACH (k, &g->members) {
			if (!seen_before(table, g, CONTAINER_OF(k, struct group_member, link)))
				ranks++;
		}
	}
	return ranks;
}

/* FNV-1a: only has to tell the jobs of one node apart. */
uint64_t group_job_key(uid_t uid, const char *job)
{
	uint64_t key = 0xcbf29ce484222325ull;
	const unsigned char *bytes = (const unsigned char *)&uid;

	for (size_t i = 0; i < sizeof(uid); i++)
		key = (key ^ bytes[i]) * 0x100000001b3ull;
	for (; *job; job++)
		key = (key ^ (unsigned char)*job) * 0x100000001b3ull;
	return key;
}
