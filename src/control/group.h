/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: the lanes of equal (uid, job, lane name) train one model together. They must see the
 * same permutation dealt the same way, or ranks would repeat and miss samples of each other
 * without anyone noticing; so a lane that disagrees is refused with the value and both numbers.
 * A place in the group, (rank, part), is taken before its lane is made, so that of two that come
 * at once one is refused. Control thread.
 */
#ifndef CONTROL_GROUP_H
#define CONTROL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "pipeline/pipeline.h"

struct group;

/* One lane's place in its group; embedded in the lane's record. */
struct group_member {
	struct list link;
	struct group *group; /* NULL: in none */
	uint32_t rank;
	uint32_t part;
	uint32_t parts;
};

struct group_table {
	struct list groups;
};

struct group_ask {
	uid_t uid;
	const char *job;
	const char *name;
	uint32_t rank;
	uint32_t part;
	uint32_t parts;
	bool reopen;
	const struct lane_identity *identity;
};

void group_table_init(struct group_table *table);

/*
 * Checks without taking: 0; 1 the place is held by *ret_held, all else agrees; -EEXIST (ranks
 * disagree) with a sentence that names the value.
 */
int group_check(const struct group_table *table, const struct group_ask *ask,
	struct group_member **ret_held, char *text, size_t size);
/* Takes the place, which must be free and agree. -ENOMEM. */
int group_join(struct group_table *table, const struct group_ask *ask, struct group_member *member);
/* The last member takes the group with it. A member of none is fine. */
void group_leave(struct group_member *member);

/* Distinct (uid, job, rank) of all groups: the ranks attached. */
unsigned int group_ranks(const struct group_table *table);
/* The same for all lanes of one (uid, job): the scheduler's unit. */
uint64_t group_job_key(uid_t uid, const char *job);

#endif
