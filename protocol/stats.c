/* SPDX-License-Identifier: Apache-2.0 */
/* The counters' names, units and prose, from the one list that declares them. */
#include "protocol/stats.h"

#define STATS_ROW(name, unit, kind, line, paragraph) { #name, unit, STATS_##kind, line, paragraph },

const struct stats_counter stats_daemon_counters[STATS_DAEMON_COUNT] = { STATS_DAEMON_LIST(
	STATS_ROW) };

const struct stats_counter stats_lane_counters[STATS_LANE_COUNT] = { STATS_LANE_LIST(STATS_ROW) };
