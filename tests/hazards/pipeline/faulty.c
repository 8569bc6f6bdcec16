/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline whose reader has faults. */
#include "hazards/pipeline/faulty.h"

static const struct reader_faults *next_faults;

int __real_reader_new(
	struct reader **ret, const struct reader_config *config, char *text, size_t size);
int __wrap_reader_new(
	struct reader **ret, const struct reader_config *config, char *text, size_t size);

int __wrap_reader_new(
	struct reader **ret, const struct reader_config *config, char *text, size_t size)
{
	struct reader_config with = *config;

	with.faults = next_faults;
	return __real_reader_new(ret, &with, text, size);
}

void faulty_next(const struct reader_faults *faults)
{
	next_faults = faults;
}

uint64_t daemon_counter(struct pipeline *p, enum stats_daemon which)
{
	uint64_t counters[STATS_DAEMON_COUNT] = { 0 };

	pipeline_counters(p, counters);
	return counters[which];
}

uint64_t lane_counter(struct lane *lane, enum stats_lane which)
{
	uint64_t counters[STATS_LANE_COUNT];
	uint32_t state;

	lane_counters(lane, counters, &state);
	return counters[which];
}
