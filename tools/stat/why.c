/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts. The thresholds are those of a person reading the numbers: under 1 % nobody looks for
 * the cause of a wait, and workers that are busy 80 % of the time have no slack worth naming.
 */
#include "why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "delta.h"
#include "protocol/ring.h"

#define WAIT_MATTERS  0.01
#define FULL_MATTERS  0.50
#define BUSY_MATTERS  0.80
#define QUOTA_MATTERS 0.01
#define CROWD_MATTERS 0.25 /* of their time, that workers could run and got no CPU */
#define CPU_MATTERS   0.10 /* CPUs by which the workers take what the ranks need */
#define MIB           1048576.0

/* What the verdicts on lanes need of the daemon. */
struct facts {
	unsigned int cpus;
	uint64_t workers;
	double busy;   /* CPUs that the workers used */
	double part;   /* of their time */
	double wanted; /* the same with the time that they waited for a CPU; negative: not known */
	double read_mb_s;
	const uint64_t *gauges;
	uint64_t others; /* lanes besides this one */
};

const char *why_word(enum why_kind kind)
{
	static const char *const words[] = {
		[WHY_NONE] = "none",
		[WHY_CONSUMER] = "consumer",
		[WHY_DECODE] = "decode",
		[WHY_TRANSFORM] = "transform",
		[WHY_READ] = "read",
		[WHY_ORDER] = "order",
		[WHY_STARTING] = "starting",
		[WHY_STALLED] = "stalled",
		[WHY_IDLE] = "idle",
		[WHY_DRAINING] = "draining",
		[WHY_FAILED] = "failed",
		[WHY_CLOSED] = "closed",
		[WHY_TRAINER] = "trainer-cpu",
		[WHY_THROTTLED] = "cpu-quota",
	};

	return words[kind];
}

static double ratio(double a, double b)
{
	return b > 0 && a > 0 ? (a < b ? a / b : 1.0) : 0.0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SEC;
}

/* "34 %", "0.4 %" */
static const char *percent(char ret[16], double part)
{
	snprintf(ret, 16, part < 0.0995 && part > 0 ? "%.1f %%" : "%.0f %%", part * 100);
	return ret;
}

static void add(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + used, size - used, format, ap);
	va_end(ap);
}

#define SAY(v, ...) add((v)->text, sizeof((v)->text), __VA_ARGS__)

static void facts_of(struct facts *ret, const struct snapshot *before, const struct snapshot *now,
	const struct lane_delta *lane, const struct stats_lane_record *record, unsigned int cpus)
{
	struct daemon_delta d;
	uint64_t cpu, ns;

	daemon_delta(&d, before, now);
	cpu = d.d[STATS_DAEMON_worker_cpu];
	ns = d.ns;
	if (d.whole) {
		/* the daemon may be much older than the lane: what it used since that opened */
		uint64_t opened = record->counters[STATS_LANE_opened_cpu];
		uint64_t used = now->daemon[STATS_DAEMON_process_cpu];

		cpu = used > opened ? used - opened : 0;
		ns = lane->ns;
	}
	*ret = (struct facts){
		.cpus = cpus,
		.workers = now->daemon[STATS_DAEMON_workers],
		.busy = (double)cpu / (double)ns,
		.read_mb_s = (double)d.d[STATS_DAEMON_read_bytes] / 1e6 / seconds(d.ns),
		.gauges = now->daemon,
		.others = now->daemon[STATS_DAEMON_lanes] > 1 ? now->daemon[STATS_DAEMON_lanes] - 1
							      : 0,
	};
	ret->part = ratio(ret->busy, (double)ret->workers);
	/* idle time is counted from the daemon's start: of a younger lane it says nothing */
	ret->wanted = -1.0;
	if (!d.whole)
		ret->wanted = 1.0 - ratio((double)d.d[STATS_DAEMON_worker_idle],
					    (double)ret->workers * (double)d.ns);
}

/* ---- who is short ---- */

static void say_workers(struct verdict *v, const struct facts *f)
{
	char busy[16];

	SAY(v, "; %llu worker%s %s %s busy", (unsigned long long)f->workers,
		f->workers == 1 ? "" : "s", f->workers == 1 ? "was" : "were",
		percent(busy, f->part));
	if (f->others > 0)
		SAY(v, ", for %llu other lane%s too", (unsigned long long)f->others,
			f->others == 1 ? "" : "s");
}

static void say_cpu_remedy(struct verdict *v, const struct facts *f)
{
	char wanted[16];

	say_workers(v, f);
	if (f->part >= BUSY_MATTERS && f->cpus > f->workers)
		SAY(v, ": more workers (%u CPUs are allowed, or a larger CPU quota) would help",
			f->cpus);
	else if (f->part >= BUSY_MATTERS)
		SAY(v, ": more workers (or a larger CPU quota) would help");
	else if (f->wanted - f->part > CROWD_MATTERS || f->wanted >= BUSY_MATTERS)
		SAY(v,
			", and wanted a CPU for %s of the time: other processes, or a quota, keep "
			"the "
			"CPUs from them",
			percent(wanted, f->wanted));
	else if (f->wanted < 0)
		SAY(v, ": they had time to spare, or other processes kept the CPUs from them");
	else
		SAY(v, ": they had time to spare, so single slow samples hold batches up: more "
		       "slots "
		       "(--set slots=N) would help");
}

static void say_read_remedy(struct verdict *v, const struct facts *f)
{
	double held = (double)f->gauges[STATS_DAEMON_readahead_bytes];
	double budget = (double)f->gauges[STATS_DAEMON_readahead_budget];

	SAY(v, "; %.1f MB/s with %llu reads in flight", f->read_mb_s,
		(unsigned long long)f->gauges[STATS_DAEMON_reads_in_flight]);
	if (budget > 0 && held >= 0.9 * budget)
		SAY(v,
			", and the read-ahead holds %.0f of its %.0f MiB: a larger budget, or "
			"faster "
			"storage, would help",
			held / MIB, budget / MIB);
	else
		SAY(v, ": faster storage would help");
}

static void judge_wait(struct verdict *v, const struct lane_delta *d, const struct facts *f)
{
	static const struct {
		enum stats_lane counter;
		enum why_kind kind;
		const char *limit;
		const char *doing;
	} stages[] = {
		{ STATS_LANE_wait_decode, WHY_DECODE, "decoding", "decoding" },
		{ STATS_LANE_wait_read, WHY_READ, "reading", "reading" },
		{ STATS_LANE_wait_transform, WHY_TRANSFORM, "transforming", "resize and store" },
		{ STATS_LANE_wait_order, WHY_ORDER, "the permutation", "the epoch's order" },
	};
	char waited[16], share[16];
	double sum = 0;
	size_t most = 0;

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		sum += (double)d->d[stages[i].counter];
		if (d->d[stages[i].counter] > d->d[stages[most].counter])
			most = i;
	}
	percent(waited, v->waited);
	if (sum <= 0) {
		/* the daemon splits a wait when the next batch is published */
		v->kind = WHY_STALLED;
		SAY(v, "the consumer waited %s of the time, for a stage that is not known yet",
			waited);
		say_workers(v, f);
		return;
	}
	v->kind = stages[most].kind;
	v->share = (double)d->d[stages[most].counter] / sum;
	SAY(v, "%s is the limit: the consumer waited %s of the time, %s of that for %s",
		stages[most].limit, waited, percent(share, v->share), stages[most].doing);
	if (v->kind == WHY_READ)
		say_read_remedy(v, f);
	else if (v->kind == WHY_ORDER)
		SAY(v, ": it is computed once an epoch, and order=feistel needs none");
	else
		say_cpu_remedy(v, f);
}

static void judge_full(struct verdict *v)
{
	char full[16], waited[16];

	percent(full, v->full);
	percent(waited, v->waited);
	if (v->full >= FULL_MATTERS) {
		v->kind = WHY_CONSUMER;
		SAY(v,
			"the consumer is the limit: every slot was ready for %s of the time, and "
			"it "
			"waited %s",
			full, waited);
	} else {
		v->kind = WHY_NONE;
		SAY(v,
			"nothing is short: the consumer waited %s of the time, and every slot was "
			"ready "
			"for %s",
			waited, full);
	}
}

/* ---- nothing moves ---- */

/* What a batch that does not come is waiting for. */
static void say_cause(struct verdict *v, const struct facts *f)
{
	uint64_t reads = f->gauges[STATS_DAEMON_reads_in_flight];

	if (f->part >= 0.5)
		say_workers(v, f);
	else if (reads > 0)
		SAY(v, "; it waits for %llu read%s in flight", (unsigned long long)reads,
			reads == 1 ? "" : "s");
	else
		SAY(v, "; nothing is being read, and the workers are idle");
}

static bool nothing_in_work(const struct facts *f)
{
	return f->gauges[STATS_DAEMON_reads_in_flight] == 0 && f->part < 0.02;
}

static void judge_full_and_still(
	struct verdict *v, const struct stats_lane_record *lane, const struct lane_delta *d)
{
	const uint64_t *c = lane->counters;

	v->kind = WHY_IDLE;
	if (c[STATS_LANE_consumed] == 0 && c[STATS_LANE_batches] <= c[STATS_LANE_slots])
		SAY(v, "idle: nobody has asked for a batch for %.1f s, since the lane was opened",
			seconds(c[STATS_LANE_opened]));
	else
		SAY(v, "idle: nobody asked for a batch for %.1f s", seconds(d->ns));
	SAY(v, "; all %llu slots are ready", (unsigned long long)c[STATS_LANE_slots]);
}

static void judge_still(struct verdict *v, const struct stats_lane_record *lane,
	const struct lane_delta *d, const struct facts *f)
{
	const uint64_t *c = lane->counters;
	unsigned long long ready = c[STATS_LANE_ready], slots = c[STATS_LANE_slots];

	if (c[STATS_LANE_batches] == 0) {
		v->kind = WHY_STARTING;
		SAY(v, "starting: no batch yet, %.1f s after the lane was opened",
			seconds(c[STATS_LANE_opened]));
		say_cause(v, f);
	} else if (ready >= slots) {
		judge_full_and_still(v, lane, d);
	} else if (d->d[STATS_LANE_batches] > 0) {
		v->kind = WHY_STARTING;
		SAY(v,
			"starting: %llu of %llu slots are ready, and none was taken yet, %.1f s "
			"after "
			"the lane was opened",
			ready, slots, seconds(c[STATS_LANE_opened]));
	} else if (nothing_in_work(f)) {
		v->kind = WHY_IDLE;
		SAY(v,
			"idle: no batch was asked for or prepared for %.1f s; %llu of %llu slots "
			"are "
			"ready",
			seconds(d->ns), ready, slots);
	} else {
		v->kind = WHY_STALLED;
		SAY(v,
			"stalled: no batch came for %.1f s, though only %llu of %llu slots are "
			"ready",
			seconds(d->ns), ready, slots);
		say_cause(v, f);
	}
}

/* Whether its consumer has taken a batch, be it one that does not count them. */
static bool was_asked(const uint64_t *c)
{
	return c[STATS_LANE_consumed] > 0 || c[STATS_LANE_batches] > c[STATS_LANE_slots];
}

static bool judge_state(struct verdict *v, uint32_t state)
{
	switch (state) {
	case RING_DRAINING:
		v->kind = WHY_DRAINING;
		SAY(v, "draining: the daemon stops, and what is published may still be read");
		return true;
	case RING_FAILED:
		v->kind = WHY_FAILED;
		SAY(v, "failed: the daemon ended this lane; its client was told why, and "
		       "`feeder-stat "
		       "errors` lists the bad samples");
		return true;
	case RING_CLOSED:
		v->kind = WHY_CLOSED;
		SAY(v, "closed: a newer attach of this rank took it over");
		return true;
	default:
		return false;
	}
}

void why_lane(struct verdict *ret, const struct snapshot *before, const struct snapshot *now,
	uint32_t lane, unsigned int cpus)
{
	const struct stats_lane_record *record = &now->lanes[lane];
	struct lane_delta d;
	struct facts f;

	lane_delta(&d, before, now, lane);
	facts_of(&f, before, now, &d, record, cpus);
	*ret = (struct verdict){
		.waited = ratio((double)d.d[STATS_LANE_consumer_wait], (double)d.ns),
		.full = ratio((double)d.d[STATS_LANE_ring_full], (double)d.ns),
	};
	if (judge_state(ret, record->state))
		return;
	if (d.d[STATS_LANE_batches] == 0 || !was_asked(record->counters))
		judge_still(ret, record, &d, &f);
	else if (ret->waited >= WAIT_MATTERS)
		judge_wait(ret, &d, &f);
	else
		judge_full(ret);
}

/* ---- the daemon as a whole ---- */

unsigned int why_ranks(const struct snapshot *now)
{
	unsigned int ranks = 0;

	for (uint32_t i = 0; i < now->header.lane_count; i++) {
		const struct stats_lane_record *a = &now->lanes[i];
		bool counted = a->state == RING_CLOSED;

		for (uint32_t k = 0; k < i && !counted; k++) {
			const struct stats_lane_record *b = &now->lanes[k];

			counted = a->uid == b->uid && a->rank == b->rank &&
				  !strcmp(a->job, b->job) && b->state != RING_CLOSED;
		}
		ranks += !counted;
	}
	return ranks;
}

static void judge_trainer(
	struct verdict *v, double busy, uint64_t workers, unsigned int cpus, unsigned int ranks)
{
	unsigned int room = cpus > ranks ? cpus - ranks : 1;

	*v = (struct verdict){ .kind = WHY_TRAINER, .number = busy };
	SAY(v,
		"feeder's own CPU use may delay the trainer: %llu worker%s kept %.1f of %u CPU%s "
		"busy, "
		"and %u rank%s one each",
		(unsigned long long)workers, workers == 1 ? "" : "s", busy, cpus,
		cpus == 1 ? "" : "s", ranks, ranks == 1 ? " needs" : "s need");
	if (workers > room)
		SAY(v, ": feederd --workers %u would leave room", room);
	else
		SAY(v, ": more CPUs would help");
}

unsigned int why_daemon(struct verdict ret[WHY_DAEMON_MAX], const struct snapshot *before,
	const struct snapshot *now, unsigned int cpus)
{
	unsigned int count = 0, ranks = why_ranks(now);
	struct daemon_delta d;
	double busy, stopped;
	char text[16];

	daemon_delta(&d, before, now);
	busy = (double)d.d[STATS_DAEMON_worker_cpu] / (double)d.ns;
	stopped = ratio((double)d.d[STATS_DAEMON_throttled], (double)d.ns);
	if (cpus > 0 && ranks > 0 && busy > (double)cpus - (double)ranks + CPU_MATTERS)
		judge_trainer(&ret[count++], busy, now->daemon[STATS_DAEMON_workers], cpus, ranks);
	if (stopped >= QUOTA_MATTERS) {
		struct verdict *v = &ret[count++];

		*v = (struct verdict){ .kind = WHY_THROTTLED, .number = stopped };
		SAY(v,
			"the cgroup's CPU quota stopped the daemon for %s of the time: a larger "
			"quota "
			"(cpu.max) or fewer workers would help",
			percent(text, stopped));
	}
	return count;
}
