/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of snapshots. */
#include "delta.h"

bool delta_follows(const struct snapshot *before, const struct snapshot *now)
{
	return before->header.pid == now->header.pid &&
	       before->header.snapshot_ns < now->header.snapshot_ns &&
	       before->daemon[STATS_DAEMON_uptime] <= now->daemon[STATS_DAEMON_uptime];
}

static void subtract(uint64_t *ret, const uint64_t *before, const uint64_t *now,
	const struct stats_counter *counters, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t earlier = before && counters[i].kind == STATS_COUNTER ? before[i] : 0;

		ret[i] = now[i] > earlier ? now[i] - earlier : 0;
	}
}

void lane_delta(struct lane_delta *ret, const struct snapshot *before, const struct snapshot *now,
	uint32_t lane)
{
	const struct stats_lane_record *record = &now->lanes[lane];
	const struct stats_lane_record *earlier =
		before ? snapshot_lane(before, record->lane) : NULL;

	ret->whole = !earlier;
	if (earlier)
		ret->ns = now->header.snapshot_ns - before->header.snapshot_ns;
	else
		ret->ns = record->counters[STATS_LANE_opened];
	if (ret->ns == 0)
		ret->ns = 1;
	subtract(ret->d, earlier ? earlier->counters : NULL, record->counters, stats_lane_counters,
		STATS_LANE_COUNT);
}

void daemon_delta(
	struct daemon_delta *ret, const struct snapshot *before, const struct snapshot *now)
{
	ret->whole = !before;
	if (before)
		ret->ns = now->header.snapshot_ns - before->header.snapshot_ns;
	else
		ret->ns = now->daemon[STATS_DAEMON_uptime];
	if (ret->ns == 0)
		ret->ns = 1;
	subtract(ret->d, before ? before->daemon : NULL, now->daemon, stats_daemon_counters,
		STATS_DAEMON_COUNT);
}
