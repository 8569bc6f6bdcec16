/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMetrics 1.0 text, from the counters' declarations. A family is written once, with the
 * samples of all daemons and lanes. Nanoseconds are exported as seconds. Only the base units
 * (seconds, bytes) are named as units: the others are in the families' names anyway. Digests are
 * left out: 64-bit sums are no numbers to a metrics store.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "text.h"
#include "view.h"

struct family {
	char name[96];
	const char *unit; /* "seconds", "bytes" or NULL */
	const struct stats_counter *counter;
};

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

static void family_of(struct family *ret, const char *prefix, const struct stats_counter *counter)
{
	const char *unit = counter->unit;
	bool named;

	ret->counter = counter;
	ret->unit = NULL;
	if (!strcmp(unit, "ns") || !strcmp(unit, "seconds_ns"))
		ret->unit = "seconds";
	else if (!strcmp(unit, "bytes"))
		ret->unit = "bytes";
	named = !ret->unit || ends_with(counter->name, ret->unit);
	snprintf(ret->name, sizeof(ret->name), "%s%s%s%s", prefix, counter->name, named ? "" : "_",
		named ? "" : ret->unit);
}

static void put_metadata(FILE *out, const struct family *f)
{
	fprintf(out, "# TYPE %s %s\n", f->name,
		f->counter->kind == STATS_COUNTER ? "counter" : "gauge");
	if (f->unit)
		fprintf(out, "# UNIT %s %s\n", f->name, f->unit);
	fprintf(out, "# HELP %s ", f->name);
	for (const char *p = f->counter->line; *p; p++) {
		if (*p == '\\' || *p == '"')
			fputc('\\', out);
		fputc(*p, out);
	}
	fputc('\n', out);
}

static void put_value(FILE *out, const struct family *f, uint64_t value)
{
	if (f->unit && !strcmp(f->unit, "seconds"))
		fprintf(out, " %.17g\n", (double)value / (double)NS_PER_SEC);
	else
		fprintf(out, " %" PRIu64 "\n", value);
}

static void put_name(FILE *out, const struct family *f)
{
	fputs(f->name, out);
	if (f->counter->kind == STATS_COUNTER)
		fputs("_total", out);
}

/* Two lanes of a daemon may share job, name and rank (parts of a batch): the number tells. */
static void put_lane_labels(FILE *out, const struct view *v, const struct stats_lane_record *lane)
{
	fputs("{socket=", out);
	text_label(out, v->socket);
	fputs(",job=", out);
	text_label(out, lane->job);
	fputs(",lane=", out);
	text_label(out, lane->name);
	fprintf(out, ",rank=\"%u\",id=\"%" PRIu64 "\"}", lane->rank, lane->lane);
}

static void put_daemon_family(FILE *out, const struct views *views, unsigned int counter)
{
	struct family f;

	family_of(&f, "feeder_", &stats_daemon_counters[counter]);
	put_metadata(out, &f);
	for (unsigned int i = 0; i < views->count; i++) {
		if (!view_ok(&views->rows[i]))
			continue;
		put_name(out, &f);
		fputs("{socket=", out);
		text_label(out, views->rows[i].socket);
		fputc('}', out);
		put_value(out, &f, views->rows[i].now.daemon[counter]);
	}
}

/* A family over all lanes; counter STATS_LANE_COUNT: their state. */
static void put_lanes(FILE *out, const struct views *views, struct family *f, unsigned int counter)
{
	put_metadata(out, f);
	for (unsigned int i = 0; i < views->count; i++) {
		const struct view *v = &views->rows[i];

		for (uint32_t k = 0; k < v->now.header.lane_count; k++) {
			const struct stats_lane_record *lane = &v->now.lanes[k];

			put_name(out, f);
			put_lane_labels(out, v, lane);
			put_value(out, f,
				counter < STATS_LANE_COUNT ? lane->counters[counter] : lane->state);
		}
	}
}

static void put_lane_family(FILE *out, const struct views *views, unsigned int counter)
{
	struct family f;

	if (!strcmp(stats_lane_counters[counter].unit, "digest"))
		return;
	family_of(&f, "feeder_lane_", &stats_lane_counters[counter]);
	put_lanes(out, views, &f, counter);
}

static void put_state(FILE *out, const struct views *views)
{
	static const struct stats_counter state = { "state", "state", STATS_GAUGE,
		"0 running, 1 draining, 2 failed, 3 closed", "" };
	struct family f;

	family_of(&f, "feeder_lane_", &state);
	put_lanes(out, views, &f, STATS_LANE_COUNT);
}

static void put_build(FILE *out, const struct views *views)
{
	fputs("# TYPE feeder_build info\n# HELP feeder_build what the daemon runs on\n", out);
	for (unsigned int i = 0; i < views->count; i++) {
		const struct stats_header *h = &views->rows[i].now.header;

		if (!view_ok(&views->rows[i]))
			continue;
		fputs("feeder_build_info{socket=", out);
		text_label(out, views->rows[i].socket);
		fputs(",version=", out);
		text_label(out, h->version);
		fputs(",reader=", out);
		text_label(out, h->reader);
		fputs(",codec=", out);
		text_label(out, h->codec);
		fputs(",simd=", out);
		text_label(out, h->simd);
		fputs("} 1\n", out);
	}
}

void metrics_print(FILE *out, const struct views *views)
{
	put_build(out, views);
	for (unsigned int i = 0; i < STATS_DAEMON_COUNT; i++)
		put_daemon_family(out, views, i);
	for (unsigned int i = 0; i < STATS_LANE_COUNT; i++)
		put_lane_family(out, views, i);
	put_state(out, views);
	fputs("# EOF\n", out);
}
