/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a statistics segment; records of other sizes (older, newer daemons) are fitted, and
 * nothing in it is believed: offsets, counts and strings are those of another process.
 */
#include "snapshot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define LANES_MAX        65536u
#define CASES_MAX        (1u << 20)

#define TERMINATE(array) ((array)[sizeof(array) - 1] = '\0')

static int malformed(char *text, size_t size)
{
	snprintf(text, size, "the daemon's statistics are malformed or of another version");
	return -EPROTO;
}

static bool inside(uint64_t offset, uint64_t stride, uint64_t count, uint64_t total)
{
	return offset <= total && (count == 0 || stride <= (total - offset) / count);
}

static bool fits(const struct stats_header *h, uint64_t total)
{
	return h->magic == STATS_MAGIC && h->major == STATS_MAJOR &&
	       inside(h->daemon_offset, 8, h->daemon_count, total) &&
	       inside(h->lane_offset, h->lane_size, h->lane_count, total) &&
	       inside(h->case_offset, h->case_size, h->case_count, total) &&
	       h->lane_count <= LANES_MAX && h->case_count <= CASES_MAX &&
	       (h->lane_count == 0 || h->lane_size > 0) && (h->case_count == 0 || h->case_size > 0);
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

/* The daemon's words about itself are ASCII: what else stands there is not shown to a terminal. */
static void make_plain(char *text)
{
	for (; *text; text++) {
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
	}
}

static void terminate(struct snapshot *s)
{
	TERMINATE(s->header.version);
	TERMINATE(s->header.reader);
	TERMINATE(s->header.reader_note);
	TERMINATE(s->header.codec);
	TERMINATE(s->header.simd);
	TERMINATE(s->header.entropy);
	make_plain(s->header.version);
	make_plain(s->header.reader);
	make_plain(s->header.reader_note);
	make_plain(s->header.codec);
	make_plain(s->header.simd);
	make_plain(s->header.entropy);
	for (uint32_t i = 0; i < s->header.lane_count; i++) {
		TERMINATE(s->lanes[i].job);
		TERMINATE(s->lanes[i].name);
		TERMINATE(s->lanes[i].dataset);
		TERMINATE(s->lanes[i].client);
	}
	for (uint32_t i = 0; i < s->header.case_count; i++) {
		TERMINATE(s->cases[i].path);
		TERMINATE(s->cases[i].text);
	}
}

int snapshot_read(struct snapshot *ret, int fd, char *text, size_t size)
{
	struct snapshot s = { .lanes = NULL };
	struct stats_header *h = &s.header;
	uint32_t counters;
	void *rows = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h) ||
		!fits(h, (uint64_t)st.st_size))
		return malformed(text, size);
	counters = h->daemon_count < STATS_DAEMON_COUNT ? h->daemon_count : STATS_DAEMON_COUNT;
	if (pread(fd, s.daemon, counters * sizeof(uint64_t), h->daemon_offset) !=
		(ssize_t)(counters * sizeof(uint64_t)))
		return malformed(text, size);
	r = take_records(fd, h->lane_offset, h->lane_size, h->lane_count, sizeof(*s.lanes), &rows);
	if (r == 0) {
		s.lanes = rows;
		r = take_records(
			fd, h->case_offset, h->case_size, h->case_count, sizeof(*s.cases), &rows);
	}
	if (r < 0) {
		snapshot_free(&s);
		snprintf(text, size, "%s", strerror(-r));
		return r == -EPROTO ? malformed(text, size) : r;
	}
	s.cases = rows;
	terminate(&s);
	*ret = s;
	return 0;
}

int snapshot_take(struct snapshot *ret, struct feeder *f, char *text, size_t size)
{
	CLEANUP(fd_closep) int fd = -1;
	int r = feeder_stats(f, &fd);

	if (r < 0) {
		snprintf(text, size, "%s", feeder_last_error());
		return r;
	}
	return snapshot_read(ret, fd, text, size);
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
