/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of this, older, newer and hostile daemons. */
#include "sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/stat/delta.h"

static int read_segment(struct snapshot *ret, int fd)
{
	char text[256] = "";
	int r = snapshot_read(ret, fd, text, sizeof(text));

	assert_true((r < 0) == (text[0] != '\0'));
	return r;
}

static void what_was_written_is_read(void **state)
{
	struct snapshot s, copy;
	int fd;

	(void)state;
	sample_new(&s, 3);
	sample_add_case(&s, 1, 5, FEEDER_STATUS_EMPTY, "x.jpg", "0 bytes");
	fd = sample_segment(&s);
	assert_int_equal(read_segment(&copy, fd), 0);
	assert_memory_equal(copy.daemon, s.daemon, sizeof(s.daemon));
	assert_int_equal(copy.header.lane_count, 3);
	assert_memory_equal(copy.lanes, s.lanes, 3 * sizeof(*s.lanes));
	assert_memory_equal(copy.cases, s.cases, sizeof(*s.cases));
	assert_ptr_equal(snapshot_lane(&copy, 8), &copy.lanes[1]);
	assert_null(snapshot_lane(&copy, 100));
	close(fd);
	snapshot_free(&s);
	snapshot_free(&copy);
}

/* Rewrites a segment as one of a daemon whose records have other sizes. */
static int resized(const struct snapshot *s, uint32_t counters, uint32_t lane_size)
{
	struct stats_header h = s->header;
	int fd = sample_segment(s);
	uint8_t *record = calloc(1, lane_size);

	assert_non_null(record);
	memset(record, 0xee, lane_size);
	memcpy(record, s->lanes, lane_size < sizeof(*s->lanes) ? lane_size : sizeof(*s->lanes));
	h.header_size = sizeof(h);
	h.daemon_offset = sizeof(h);
	h.daemon_count = counters;
	h.lane_offset = (uint32_t)(h.daemon_offset + 64 * sizeof(uint64_t));
	h.lane_size = lane_size;
	h.lane_count = 1;
	h.case_offset = 0;
	h.case_count = 0;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(
		pwrite(fd, s->daemon, sizeof(s->daemon), h.daemon_offset), sizeof(s->daemon));
	assert_int_equal(pwrite(fd, record, lane_size, h.lane_offset), lane_size);
	free(record);
	return fd;
}

static void records_of_other_versions_are_fitted(void **state)
{
	struct snapshot s, copy;
	int fd;

	(void)state;
	sample_new(&s, 1);
	fd = resized(&s, 2, offsetof(struct stats_lane_record, counters) + 8);
	assert_int_equal(read_segment(&copy, fd), 0);
	assert_int_equal(copy.daemon[STATS_DAEMON_workers], 2);
	assert_int_equal(copy.daemon[STATS_DAEMON_worker_cpu], 0); /* an older daemon lacks it */
	assert_int_equal(copy.lanes[0].counters[STATS_LANE_batches], 100);
	assert_int_equal(copy.lanes[0].counters[STATS_LANE_samples], 0);
	snapshot_free(&copy);
	close(fd);
	fd = resized(&s, STATS_DAEMON_COUNT + 5, sizeof(struct stats_lane_record) + 80);
	assert_int_equal(read_segment(&copy, fd), 0);
	assert_memory_equal(copy.lanes, s.lanes, sizeof(*s.lanes));
	snapshot_free(&copy);
	close(fd);
	snapshot_free(&s);
}

static void strings_without_an_end_get_one(void **state)
{
	struct snapshot s, copy;
	int fd;

	(void)state;
	sample_new(&s, 1);
	memset(s.lanes[0].name, 'x', sizeof(s.lanes[0].name));
	memset(s.header.version, 'v', sizeof(s.header.version));
	fd = sample_segment(&s);
	assert_int_equal(read_segment(&copy, fd), 0);
	assert_int_equal(strlen(copy.lanes[0].name), sizeof(s.lanes[0].name) - 1);
	assert_int_equal(strlen(copy.header.version), sizeof(s.header.version) - 1);
	close(fd);
	snapshot_free(&s);
	snapshot_free(&copy);
}

static void refuse(const struct snapshot *s, void (*bend)(struct stats_header *h))
{
	int fd = sample_segment(s);
	struct stats_header h;
	struct snapshot copy;

	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	bend(&h);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(read_segment(&copy, fd), -EPROTO);
	close(fd);
}

static void bend_magic(struct stats_header *h)
{
	h->magic++;
}

static void bend_major(struct stats_header *h)
{
	h->major++;
}

static void bend_offset(struct stats_header *h)
{
	h->daemon_offset = UINT32_MAX;
}

static void bend_lanes(struct stats_header *h)
{
	h->lane_count++;
	h->case_count = 0;
	h->lane_offset += 8;
}

static void bend_stride(struct stats_header *h)
{
	h->lane_size = 0; /* any number of lanes would fit */
	h->lane_count = 1000;
}

static void bend_cases(struct stats_header *h)
{
	h->case_size = 1;
	h->case_count = UINT32_MAX;
}

static void malformed_segments_are_refused(void **state)
{
	struct snapshot s, copy;
	int fd;

	(void)state;
	sample_new(&s, 1);
	refuse(&s, bend_magic);
	refuse(&s, bend_major);
	refuse(&s, bend_offset);
	refuse(&s, bend_lanes);
	refuse(&s, bend_stride);
	refuse(&s, bend_cases);
	fd = sample_segment(&s);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(read_segment(&copy, fd), -EPROTO);
	close(fd);
	snapshot_free(&s);
}

static void differences_never_go_below_zero(void **state)
{
	struct snapshot before, now;
	struct daemon_delta d;
	struct lane_delta l;

	(void)state;
	sample_new(&before, 1);
	sample_later(&now, &before, 250);
	now.daemon[STATS_DAEMON_reads] = 7;
	before.daemon[STATS_DAEMON_worker_cpu] += 5;
	now.lanes[0].counters[STATS_LANE_batches] = 130;
	assert_true(delta_follows(&before, &now));
	assert_false(delta_follows(&now, &before));
	daemon_delta(&d, &before, &now);
	assert_int_equal(d.ns, 250);
	assert_int_equal(d.d[STATS_DAEMON_reads], 7);
	assert_int_equal(d.d[STATS_DAEMON_worker_cpu], 0);
	assert_int_equal(d.d[STATS_DAEMON_workers], 2); /* a gauge: as it is */
	lane_delta(&l, &before, &now, 0);
	assert_int_equal(l.ns, 250);
	assert_int_equal(l.d[STATS_LANE_batches], 30);
	assert_int_equal(l.d[STATS_LANE_slots], 4);
	now.header.pid++; /* another daemon behind the same socket */
	assert_false(delta_follows(&before, &now));
	snapshot_free(&before);
	snapshot_free(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(records_of_other_versions_are_fitted),
		cmocka_unit_test(strings_without_an_end_get_one),
		cmocka_unit_test(malformed_segments_are_refused),
		cmocka_unit_test(differences_never_go_below_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
