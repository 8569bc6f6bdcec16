/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a statistics segment; records of other sizes (older, newer daemons) are fitted. */
#include "stat/snapshot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static int malformed(char *text, size_t size)
{
	snprintf(text, size, "the daemon's statistics are malformed or of another version");
	return -EPROTO;
}

static bool inside(uint64_t offset, uint64_t stride, uint64_t count, uint64_t total)
{
	return offset <= total && (count == 0 || stride <= (total - offset) / count);
}

/* Copies count records of `stride` bytes at offset into an array of `size`-byte records. */
static int take_records(
	int fd, uint64_t offset, uint32_t stride, uint32_t count, size_t size, void **ret)
{
	size_t part = stride < size ? stride : size;
	uint8_t *rows = calloc(count ? count : 1, size);

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (pread(fd, rows + i * size, part, (off_t)(offset + (uint64_t)i * stride)) !=
			(ssize_t)part) {
			free(rows);
			return -EPROTO;
		}
	}
	*ret = rows;
	return 0;
}

static int take(struct snapshot *s, int fd, char *text, size_t size)
{
	struct stats_header *h = &s->header;
	uint32_t counters;
	struct stat st;
	void *rows = NULL;

	if (fstat(fd, &st) < 0 || pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h))
		return malformed(text, size);
	if (h->magic != STATS_MAGIC || h->major != STATS_MAJOR ||
		!inside(h->daemon_offset, 8, h->daemon_count, (uint64_t)st.st_size) ||
		!inside(h->lane_offset, h->lane_size, h->lane_count, (uint64_t)st.st_size) ||
		!inside(h->case_offset, h->case_size, h->case_count, (uint64_t)st.st_size))
		return malformed(text, size);
	counters = h->daemon_count < STATS_DAEMON_COUNT ? h->daemon_count : STATS_DAEMON_COUNT;
	if (pread(fd, s->daemon, counters * sizeof(uint64_t), h->daemon_offset) !=
		(ssize_t)(counters * sizeof(uint64_t)))
		return malformed(text, size);
	if (take_records(
		    fd, h->lane_offset, h->lane_size, h->lane_count, sizeof(*s->lanes), &rows) < 0)
		return malformed(text, size);
	s->lanes = rows;
	if (take_records(
		    fd, h->case_offset, h->case_size, h->case_count, sizeof(*s->cases), &rows) < 0)
		return malformed(text, size);
	s->cases = rows;
	return 0;
}

int snapshot_take(struct snapshot *ret, struct feeder *f, char *text, size_t size)
{
	struct snapshot s = { .lanes = NULL };
	CLEANUP(fd_closep) int fd = -1;
	int r = feeder_stats(f, &fd);

	if (r < 0) {
		snprintf(text, size, "%s", feeder_last_error());
		return r;
	}
	r = take(&s, fd, text, size);
	if (r < 0) {
		snapshot_free(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	free(s->lanes);
	free(s->cases);
	s->lanes = NULL;
	s->cases = NULL;
}

const struct stats_lane_record *snapshot_lane(const struct snapshot *s, uint64_t lane)
{
	for (uint32_t i = 0; i < s->header.lane_count; i++) {
		if (s->lanes[i].lane == lane)
			return &s->lanes[i];
	}
	return NULL;
}
