/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots by hand. */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fill_lane(struct stats_lane_record *r, unsigned int number)
{
	*r = (struct stats_lane_record){
		.lane = 7 + number,
		.uid = 1000,
		.pid = 4000 + number,
		.rank = number,
		.world = 2,
		.batch = 256,
		.order = 1,
		.tail = 1,
		.bad = 3,
		.accumulate = 1,
		.job = "slurm-17.0",
		.name = "train:/data/x:0",
		.dataset = "/data/x",
		.client = "python3",
	};
	r->counters[STATS_LANE_batches] = 100;
	r->counters[STATS_LANE_samples] = 25600;
	r->counters[STATS_LANE_consumed] = 97;
	r->counters[STATS_LANE_order_digest] = 0xfedcba9876543210ull;
	r->counters[STATS_LANE_pixel_digest] = 0x1f;
	r->counters[STATS_LANE_epoch] = 1;
	r->counters[STATS_LANE_step] = 99;
	r->counters[STATS_LANE_position] = 51200;
	r->counters[STATS_LANE_steps_epoch] = 625;
	r->counters[STATS_LANE_slots] = 4;
	r->counters[STATS_LANE_ready] = 3;
	r->counters[STATS_LANE_opened] = 50 * SAMPLE_SECOND;
	r->counters[STATS_LANE_opened_cpu] = 10 * SAMPLE_SECOND;
	r->counters[STATS_LANE_decode_cpu] = 1234567891;
}

void sample_new(struct snapshot *ret, unsigned int lanes)
{
	struct snapshot s = { .header = {
				      .magic = STATS_MAGIC,
				      .major = STATS_MAJOR,
				      .snapshot_ns = 1000 * SAMPLE_SECOND,
				      .lane_count = lanes,
				      .pid = 4242,
				      .version = "0.1.0",
				      .reader = "io_uring",
				      .codec = "libjpeg-turbo 2.1.5",
				      .simd = "avx2",
				      .entropy = "libjpeg",
			      } };

	s.daemon[STATS_DAEMON_uptime] = 100 * SAMPLE_SECOND;
	s.daemon[STATS_DAEMON_workers] = 2;
	s.daemon[STATS_DAEMON_worker_cpu] = 20 * SAMPLE_SECOND;
	s.daemon[STATS_DAEMON_process_cpu] = 22 * SAMPLE_SECOND;
	s.daemon[STATS_DAEMON_readahead_bytes] = 10 << 20;
	s.daemon[STATS_DAEMON_readahead_budget] = 256 << 20;
	s.daemon[STATS_DAEMON_reads_in_flight] = 5;
	s.daemon[STATS_DAEMON_sessions] = lanes;
	s.daemon[STATS_DAEMON_lanes] = lanes;
	s.lanes = calloc(lanes + 1, sizeof(*s.lanes));
	s.cases = calloc(16, sizeof(*s.cases));
	assert_true(s.lanes && s.cases);
	for (unsigned int i = 0; i < lanes; i++)
		fill_lane(&s.lanes[i], i);
	*ret = s;
}

void sample_later(struct snapshot *ret, const struct snapshot *s, uint64_t ns)
{
	struct snapshot later = *s;
	size_t lanes = (s->header.lane_count + 1) * sizeof(*s->lanes);

	later.lanes = malloc(lanes);
	later.cases = malloc(16 * sizeof(*s->cases));
	assert_true(later.lanes && later.cases);
	memcpy(later.lanes, s->lanes, lanes);
	memcpy(later.cases, s->cases, 16 * sizeof(*s->cases));
	later.header.snapshot_ns += ns;
	later.daemon[STATS_DAEMON_uptime] += ns;
	for (uint32_t i = 0; i < s->header.lane_count; i++)
		later.lanes[i].counters[STATS_LANE_opened] += ns;
	*ret = later;
}

void sample_add_case(struct snapshot *s, unsigned int lane, uint64_t id, int status,
	const char *path, const char *text)
{
	struct stats_case *c = &s->cases[s->header.case_count++];

	*c = (struct stats_case){
		.lane = s->lanes[lane].lane,
		.id = id,
		.epoch = 1,
		.status = (uint32_t)status,
		.count = 2,
	};
	snprintf(c->path, sizeof(c->path), "%s", path);
	snprintf(c->text, sizeof(c->text), "%s", text);
}

int sample_segment(const struct snapshot *s)
{
	struct stats_header h = s->header;
	int fd = memfd_create("stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t lanes = h.lane_count * sizeof(*s->lanes);
	size_t cases = h.case_count * sizeof(*s->cases);

	h.daemon_offset = sizeof(h);
	h.daemon_count = STATS_DAEMON_COUNT;
	h.lane_offset = (uint32_t)(h.daemon_offset + sizeof(s->daemon));
	h.lane_size = sizeof(*s->lanes);
	h.case_offset = (uint32_t)(h.lane_offset + lanes);
	h.case_size = sizeof(*s->cases);
	h.total_size = h.case_offset + cases;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
	assert_int_equal(write(fd, s->daemon, sizeof(s->daemon)), sizeof(s->daemon));
	assert_int_equal(write(fd, s->lanes, lanes), lanes);
	assert_int_equal(write(fd, s->cases, cases), cases);
	return fd;
}

void sample_views(struct views *ret)
{
	struct view *v = calloc(2, sizeof(*v));

	assert_non_null(v);
	snprintf(v[0].socket, sizeof(v[0].socket), "/run/feeder/feeder.sock");
	sample_new(&v[0].before, 2);
	sample_later(&v[0].now, &v[0].before, 2 * SAMPLE_SECOND);
	v[0].compared = true;
	v[0].cpus = 4;
	v[0].now.daemon[STATS_DAEMON_worker_cpu] += 3 * SAMPLE_SECOND;
	v[0].now.lanes[0].counters[STATS_LANE_batches] += 10;
	v[0].now.lanes[0].counters[STATS_LANE_samples] += 2560;
	v[0].now.lanes[0].counters[STATS_LANE_consumed] += 10;
	v[0].now.lanes[0].counters[STATS_LANE_consumer_wait] += SAMPLE_SECOND / 2;
	v[0].now.lanes[0].counters[STATS_LANE_wait_read] += SAMPLE_SECOND / 2;
	v[0].now.lanes[0].counters[STATS_LANE_bad_samples] = 3;
	snprintf(v[0].now.lanes[1].name, sizeof(v[0].now.lanes[1].name),
		"train:/data/\"q\\uo\nte\xff\xed\xa0\x80\x1b[2J\xc3\xa4:0");
	sample_add_case(&v[0].now, 0, 12, FEEDER_STATUS_TRUNCATED, "a/b\xff\"\\.jpg",
		"ends after 95 of 100 bytes");
	sample_add_case(&v[0].now, 0, 13, FEEDER_STATUS_TRUNCATED, "a/c.jpg", "ends early");
	sample_add_case(&v[0].now, 0, 14, FEEDER_STATUS_EMPTY, "a/d.jpg", "0 bytes");
	snprintf(v[1].socket, sizeof(v[1].socket), "/tmp/feeder-1000/0123456789abcdef.sock");
	sample_new(&v[1].now, 1);
	v[1].now.header.pid = 4343;
	v[1].now.header.private_daemon = 1;
	snprintf(v[1].now.header.reader, sizeof(v[1].now.header.reader), "pread");
	snprintf(v[1].now.header.reader_note, sizeof(v[1].now.header.reader_note),
		"io_uring is not permitted here");
	*ret = (struct views){ .rows = v, .count = 2 };
}
