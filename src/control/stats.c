/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CONTROL_STATS: a snapshot as a sealed memfd (protocol/stats.h). A uid sees its own lanes; root
 * and the daemon's own uid see all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fd.h"
#include "control/state.h"
#include "feeder/version.h"
#include "protocol/stats.h"
#include "source/source.h"

#define CASES_MAX 256 /* of one lane */

static bool sees(const struct session *s, const struct lane_record *record)
{
	return s->peer.uid == 0 || s->peer.uid == geteuid() || s->peer.uid == record->uid;
}

static unsigned int count_lanes(const struct control *c)
{
	unsigned int count = 0;

	LIST_FOR_EACH (l, &c->lanes)
		count += CONTAINER_OF(l, struct lane_record, link)->session != NULL;
	return count;
}

static void put_header(struct control *c, struct stats_header *ret)
{
	struct pipeline_facts facts;

	pipeline_facts(c->pipeline, &facts);
	*ret = (struct stats_header){
		.magic = STATS_MAGIC,
		.major = STATS_MAJOR,
		.minor = STATS_MINOR,
		.header_size = sizeof(*ret),
		.snapshot_ns = now_ns(),
		.daemon_offset = sizeof(*ret),
		.daemon_count = STATS_DAEMON_COUNT,
		.lane_offset = sizeof(*ret) + STATS_DAEMON_COUNT * sizeof(uint64_t),
		.lane_size = sizeof(struct stats_lane_record),
		.case_size = sizeof(struct stats_case),
		.pid = (uint32_t)getpid(),
		.private_daemon = c->options.private_daemon,
		.version = FEEDER_VERSION,
		.entropy = "libjpeg",
		.draining = c->draining,
		.daemon_uid = geteuid(),
	};
	snprintf(ret->reader, sizeof(ret->reader), "%s", facts.reader ? facts.reader : "");
	snprintf(ret->reader_note, sizeof(ret->reader_note), "%s",
		facts.reader_note ? facts.reader_note : "");
	snprintf(ret->codec, sizeof(ret->codec), "%s", facts.codec ? facts.codec : "");
	snprintf(ret->simd, sizeof(ret->simd), "%s", facts.simd ? facts.simd : "");
}

static void put_counters(struct control *c, uint64_t ret[STATS_DAEMON_COUNT])
{
	struct cgroup_limits limits;
	struct pipeline_facts facts;

	memset(ret, 0, STATS_DAEMON_COUNT * sizeof(*ret));
	pipeline_facts(c->pipeline, &facts);
	cgroup_limits_read("", &limits);
	ret[STATS_DAEMON_uptime] = now_ns() - c->start_ns;
	ret[STATS_DAEMON_workers] = facts.workers;
	ret[STATS_DAEMON_process_cpu] = process_cpu_ns();
	ret[STATS_DAEMON_ring_bytes] = quota_ring_bytes(c->quota);
	ret[STATS_DAEMON_sessions] = c->session_count;
	ret[STATS_DAEMON_lanes] = count_lanes(c);
	ret[STATS_DAEMON_refused] = c->refused;
	ret[STATS_DAEMON_protocol_errors] = c->protocol_errors;
	ret[STATS_DAEMON_throttled] = limits.throttled_ns;
	ret[STATS_DAEMON_cpus] = c->options.cpus;
	pipeline_counters(c->pipeline, ret);
}

/* The end of a path is what tells it apart. */
static void put_tail(char *ret, size_t size, const char *text)
{
	size_t length = strlen(text);

	snprintf(ret, size, "%s", length < size ? text : text + (length - size + 1));
}

static void put_lane(struct lane_record *record, struct stats_lane_record *ret)
{
	const struct control_open_lane *open = &record->open;

	memset(ret, 0, sizeof(*ret));
	ret->lane = lane_id(record->lane);
	ret->uid = record->uid;
	ret->pid = (uint32_t)record->pid;
	ret->rank = open->rank;
	ret->world = open->world;
	ret->batch = open->batch;
	ret->order = open->order;
	ret->tail = open->tail;
	ret->bad = open->bad;
	ret->accumulate = open->accumulate;
	memcpy(ret->job, open->job, sizeof(ret->job));
	memcpy(ret->name, open->name, sizeof(ret->name));
	put_tail(ret->dataset, sizeof(ret->dataset), dataset_display(entry_dataset(record->entry)));
	memcpy(ret->client, record->client, sizeof(ret->client));
	lane_counters(record->lane, ret->counters, &ret->state);
}

/* Lanes shown: open, and visible to the session. */
static bool shown(const struct session *s, const struct lane_record *record)
{
	return record->session && record->lane && record->handle && sees(s, record);
}

/* Header, counters, lanes, cases, in one piece of memory. */
static int make_snapshot(struct session *s, uint8_t **ret, size_t *ret_size)
{
	struct control *c = s->control;
	struct stats_header header;
	uint32_t lanes = 0, cases = 0;

	LIST_FOR_EACH (l, &c->lanes)
		lanes += shown(s, CONTAINER_OF(l, struct lane_record, link));
	put_header(c, &header);
	size_t case_offset = header.lane_offset + lanes * sizeof(struct stats_lane_record);
	uint8_t *memory =
		malloc(case_offset + (size_t)lanes * CASES_MAX * sizeof(struct stats_case));
	if (!memory)
		return -ENOMEM;
	put_counters(c, (void *)(memory + header.daemon_offset));
	LIST_FOR_EACH (l, &c->lanes) {
		struct lane_record *record = CONTAINER_OF(l, struct lane_record, link);
		struct stats_lane_record *at =
			(void *)(memory + header.lane_offset + header.lane_count * sizeof(*at));

		if (!shown(s, record))
			continue;
		put_lane(record, at);
		header.lane_count++;
		cases += lane_cases(record->lane,
			(void *)(memory + case_offset + cases * sizeof(struct stats_case)),
			CASES_MAX);
	}
	header.case_offset = (uint32_t)case_offset;
	header.case_count = cases;
	header.total_size = case_offset + cases * sizeof(struct stats_case);
	memcpy(memory, &header, sizeof(header));
	*ret = memory;
	*ret_size = header.total_size;
	return 0;
}

static int seal(const uint8_t *memory, size_t size, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = memfd_create("feeder-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, memory + done, size - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_fd = fd_steal(&fd);
	return 0;
}

void stats_answer(struct session *s, uint32_t serial)
{
	struct control_stats_reply reply = { .size = sizeof(reply) };
	uint8_t *memory CLEANUP(freep) = NULL;
	CLEANUP(fd_closep) int fd = -1;
	size_t size = 0;
	int r = make_snapshot(s, &memory, &size);

	if (r == 0)
		r = seal(memory, size, &fd);
	if (r < 0) {
		session_refuse(
			s, serial, r, "the statistics cannot be put together: %s", strerror(-r));
		return;
	}
	reply.bytes = size;
	session_send(
		s, CONTROL_STATS | CONTROL_REPLY, serial, &reply, sizeof(reply), NULL, 0, &fd, 1);
}
