/* SPDX-License-Identifier: Apache-2.0 */
/* The table: a line for each daemon, a row for each lane, rates from two snapshots. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "delta.h"
#include "text.h"
#include "view.h"
#include "why.h"

#define MIB           1048576.0
#define JOB_COLUMNS   10
#define OTHER_COLUMNS 73 /* of a row without its lane's name */
#define NAME_MIN      7
#define NAME_MAX_WIDE 60

struct table {
	FILE *out;
	unsigned int columns; /* 0: no limit */
	unsigned int left;    /* lines; only where limited */
	bool limited;
};

/* One line, cut at the terminal's width; false when no line is left. */
static bool put(struct table *t, const char *line)
{
	unsigned int column = 0;

	if (t->limited && t->left == 0)
		return false;
	for (; *line; line++) {
		if (((unsigned char)*line & 0xc0) != 0x80 && t->columns && column++ == t->columns)
			break;
		fputc(*line, t->out);
	}
	/* on a terminal what an earlier, longer line left there goes away */
	fputs(t->limited ? "\033[K\n" : "\n", t->out);
	t->left--;
	return true;
}

static const char *age(char ret[32], uint64_t ns)
{
	uint64_t s = ns / NS_PER_SEC;

	if (s >= 86400)
		snprintf(ret, 32, "%" PRIu64 "d %02" PRIu64 ":%02" PRIu64, s / 86400, s / 3600 % 24,
			s / 60 % 60);
	else
		snprintf(ret, 32, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60,
			s % 60);
	return ret;
}

static void put_daemon(struct table *t, const struct view *v)
{
	const struct stats_header *h = &v->now.header;
	const uint64_t *g = v->now.daemon;
	char socket[TEXT_MAX(SOCKET_MAX)], up[32], line[1024];
	struct daemon_delta d;
	double s, busy;

	daemon_delta(&d, view_before(v), &v->now);
	s = (double)d.ns / (double)NS_PER_SEC;
	busy = (double)d.d[STATS_DAEMON_worker_cpu] / (double)d.ns;
	snprintf(line, sizeof(line),
		"feederd %s %s  pid %u  up %s  %s%" PRIu64 " session%s  %.1f CPUs", h->version,
		text_clean(socket, sizeof(socket), v->socket), h->pid,
		age(up, g[STATS_DAEMON_uptime]), h->draining ? "DRAINING  " : "",
		g[STATS_DAEMON_sessions], g[STATS_DAEMON_sessions] == 1 ? "" : "s",
		(double)d.d[STATS_DAEMON_process_cpu] / (double)d.ns);
	put(t, line);
	snprintf(line, sizeof(line),
		"  %" PRIu64 " workers %.0f %% busy  %s %.1f MB/s  read-ahead %.0f of %.0f MiB  "
		"rings %.0f MiB  throttled %.0f %%",
		g[STATS_DAEMON_workers],
		g[STATS_DAEMON_workers] ? 100 * busy / (double)g[STATS_DAEMON_workers] : 0.0,
		h->reader, (double)d.d[STATS_DAEMON_read_bytes] / 1e6 / s,
		(double)g[STATS_DAEMON_readahead_bytes] / MIB,
		(double)g[STATS_DAEMON_readahead_budget] / MIB,
		(double)g[STATS_DAEMON_ring_bytes] / MIB,
		100 * (double)d.d[STATS_DAEMON_throttled] / (double)d.ns);
	put(t, line);
}

/* Text padded to a width in columns; printf counts bytes. */
static void pad(char *ret, size_t size, const char *text, unsigned int columns)
{
	unsigned int have = text_columns(text);

	snprintf(ret, size, "%s%*s", text, have < columns ? (int)(columns - have) : 0, "");
}

static void put_lane(struct table *t, const struct view *v, uint32_t lane, unsigned int width)
{
	const struct stats_lane_record *r = &v->now.lanes[lane];
	const uint64_t *c = r->counters;
	char job[TEXT_MAX(CONTROL_JOB_MAX)], name[TEXT_MAX(CONTROL_NAME_MAX)];
	char jobs[sizeof(job) + JOB_COLUMNS], names[sizeof(name) + NAME_MAX_WIDE];
	char rank[24], step[44], ready[44], line[3072];
	struct verdict why;
	struct lane_delta d;

	lane_delta(&d, view_before(v), &v->now, lane);
	why_lane(&why, view_before(v), &v->now, lane, v->cpus);
	pad(jobs, sizeof(jobs), text_fit(job, sizeof(job), r->job, JOB_COLUMNS), JOB_COLUMNS);
	pad(names, sizeof(names), text_fit(name, sizeof(name), r->name, width), width);
	snprintf(rank, sizeof(rank), "%u/%u", r->rank, r->world);
	snprintf(step, sizeof(step), "%" PRIu64 "/%" PRIu64, c[STATS_LANE_step],
		c[STATS_LANE_steps_epoch]);
	snprintf(ready, sizeof(ready), "%" PRIu64 "/%" PRIu64, c[STATS_LANE_ready],
		c[STATS_LANE_slots]);
	snprintf(line, sizeof(line), "%s %s %5s %5" PRIu64 " %11s %8.0f %5s %5.1f %-9s %6" PRIu64,
		jobs, names, rank, c[STATS_LANE_epoch], step,
		(double)d.d[STATS_LANE_samples] * (double)NS_PER_SEC / (double)d.ns, ready,
		100 * why.waited, why_word(why.kind), c[STATS_LANE_bad_samples]);
	put(t, line);
}

static unsigned int name_width(const struct views *views, unsigned int columns)
{
	unsigned int widest = NAME_MIN;
	char name[TEXT_MAX(CONTROL_NAME_MAX)];

	for (unsigned int i = 0; i < views->count; i++) {
		for (uint32_t k = 0; k < views->rows[i].now.header.lane_count; k++) {
			unsigned int have = text_columns(
				text_clean(name, sizeof(name), views->rows[i].now.lanes[k].name));

			widest = have > widest ? have : widest;
		}
	}
	if (widest > NAME_MAX_WIDE)
		widest = NAME_MAX_WIDE;
	if (columns && widest + OTHER_COLUMNS > columns)
		widest = columns > OTHER_COLUMNS + NAME_MIN ? columns - OTHER_COLUMNS : NAME_MIN;
	return widest;
}

static void put_head(struct table *t, unsigned int width)
{
	char line[256];

	snprintf(line, sizeof(line), "%-*s %-*s %5s %5s %11s %8s %5s %5s %-9s %6s", JOB_COLUMNS,
		"JOB", (int)width, "LANE", "RANK", "EPOCH", "STEP", "IMAGES/S", "READY", "WAIT%",
		"LIMIT", "BAD");
	put(t, line);
}

void top_print(FILE *out, const struct views *views, unsigned int columns, unsigned int rows)
{
	struct table t = { .out = out, .columns = columns, .left = rows, .limited = rows > 0 };
	unsigned int width = name_width(views, columns);

	for (unsigned int i = 0; i < views->count; i++) {
		const struct view *v = &views->rows[i];

		if (!view_ok(v)) {
			put(&t, v->problem);
			continue;
		}
		put_daemon(&t, v);
		if (v->now.header.lane_count > 0)
			put_head(&t, width);
		for (uint32_t k = 0; k < v->now.header.lane_count; k++)
			put_lane(&t, v, k, width);
		if (i + 1 < views->count)
			put(&t, "");
	}
	if (views->count == 0)
		put(&t, "no daemon is running");
}
