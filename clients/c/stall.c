/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon was doing while a batch did not come: asked of the daemon itself. */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "protocol/stats.h"

#define ANSWER_MS 1000

/* A counter by its place in the snapshot; 0 where the daemon is older than it. */
static uint64_t counter(int fd, const struct stats_header *header, uint32_t index)
{
	uint64_t value = 0;

	if (index >= header->daemon_count ||
		pread(fd, &value, sizeof(value), header->daemon_offset + index * 8) !=
			sizeof(value))
		return 0;
	return value;
}

static void describe(struct feeder *f, char *ret, size_t size)
{
	CLEANUP(fd_closep) int fd = -1;
	struct control_stats body = { .size = sizeof(body) };
	struct fdr_call call = {
		.type = CONTROL_STATS,
		.body = &body,
		.size = sizeof(body),
		.timeout_ms = ANSWER_MS,
	};
	struct stats_header header;
	int r = fdr_call(f, &call);

	if (r == 0) {
		fd = fdr_take_fd(f, 0);
		control_packet_close(f->packet);
	}
	if (r < 0)
		snprintf(ret, size, "it does not answer (%s)",
			r == -ETIMEDOUT ? "stopped or stuck" : strerror(-r));
	else if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
		 header.magic != STATS_MAGIC)
		snprintf(ret, size, "it answers");
	else
		snprintf(ret, size,
			"it (pid %u) answers, with %llu reads in flight and %llu encoded bytes "
			"held by "
			"%llu workers",
			header.pid,
			(unsigned long long)counter(fd, &header, STATS_DAEMON_reads_in_flight),
			(unsigned long long)counter(fd, &header, STATS_DAEMON_readahead_bytes),
			(unsigned long long)counter(fd, &header, STATS_DAEMON_workers));
}

int fdr_fail_stalled(struct feeder_lane *lane, uint64_t waited_ns)
{
	uint32_t state = ring_load_acquire(&lane->words->state); /* E4 */
	char doing[256];

	describe(lane->f, doing, sizeof(doing));
	return fdr_fail(-ETIMEDOUT,
		"dataset %s: batch %llu of lane %s did not come within %llu ms; the lane is %s, "
		"the "
		"daemon at %s: %s",
		lane->path, (unsigned long long)lane->next, lane->name,
		(unsigned long long)(waited_ns / NS_PER_MS), ring_state_name(state), lane->f->path,
		doing);
}
