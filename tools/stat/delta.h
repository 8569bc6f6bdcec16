/* SPDX-License-Identifier: Apache-2.0 */
/* What happened between two snapshots of one daemon. Pure: no clock, no I/O. */
#ifndef STAT_DELTA_H
#define STAT_DELTA_H

#include <stdbool.h>

#include "snapshot.h"

/* Counters are differences that never go below 0; gauges are the newer value. */
struct lane_delta {
	uint64_t ns; /* at least 1 */
	bool whole;  /* since the lane was opened: it was not in the earlier snapshot */
	uint64_t d[STATS_LANE_COUNT];
};

struct daemon_delta {
	uint64_t ns;
	bool whole; /* since the daemon started */
	uint64_t d[STATS_DAEMON_COUNT];
};

/* Whether the two are of one run of one daemon, in that order. */
bool delta_follows(const struct snapshot *before, const struct snapshot *now);
/* before NULL: from the beginning. lane is an index into now->lanes. */
void lane_delta(struct lane_delta *ret, const struct snapshot *before, const struct snapshot *now,
	uint32_t lane);
void daemon_delta(
	struct daemon_delta *ret, const struct snapshot *before, const struct snapshot *now);

#endif
