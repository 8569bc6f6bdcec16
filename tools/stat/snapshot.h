/* SPDX-License-Identifier: Apache-2.0 */
/* A checked copy of a statistics segment (protocol/stats.h), for feeder-stat and feeder-bench. */
#ifndef STAT_SNAPSHOT_H
#define STAT_SNAPSHOT_H

#include "feeder/feeder.h"
#include "protocol/stats.h"

struct snapshot {
	struct stats_header header;
	uint64_t daemon[STATS_DAEMON_COUNT]; /* what an older daemon lacks is 0 */
	struct stats_lane_record *lanes;     /* header.lane_count; strings are terminated */
	struct stats_case *cases;            /* header.case_count */
};

/* 0, or a negative errno with a sentence in text. */
int snapshot_take(struct snapshot *ret, struct feeder *f, char *text, size_t size);
/* The same from a segment's descriptor, which stays the caller's. */
int snapshot_read(struct snapshot *ret, int fd, char *text, size_t size);
void snapshot_free(struct snapshot *s);
/* The record of a lane by its number in the daemon; NULL: not there. */
const struct stats_lane_record *snapshot_lane(const struct snapshot *s, uint64_t lane);

#endif
