/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything as JSON, one object on a line for each daemon. Counters carry the names of their
 * declaration and its units; digests are strings of 16 hexadecimal digits.
 */
#include <inttypes.h>
#include <string.h>

#include "order/order.h"
#include "protocol/ring.h"
#include "text.h"
#include "view.h"

static void put_string(FILE *out, const char *key, const char *value)
{
	fprintf(out, ",\"%s\":", key);
	text_json(out, value);
}

static void put_number(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, key, value);
}

static void put_flag(FILE *out, const char *key, bool value)
{
	fprintf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void put_counters(
	FILE *out, const struct stats_counter *counters, unsigned int count, const uint64_t *values)
{
	fputs(",\"counters\":{", out);
	for (unsigned int i = 0; i < count; i++) {
		bool digest = !strcmp(counters[i].unit, "digest");

		fprintf(out, "%s\"%s\":", i ? "," : "", counters[i].name);
		fprintf(out, digest ? "\"%016" PRIx64 "\"" : "%" PRIu64, values[i]);
	}
	fputc('}', out);
}

static void put_units(
	FILE *out, const char *key, const struct stats_counter *counters, unsigned int count)
{
	fprintf(out, "\"%s\":{", key);
	for (unsigned int i = 0; i < count; i++) {
		const char *unit = counters[i].unit;

		fprintf(out, "%s\"%s\":\"%s\"", i ? "," : "", counters[i].name,
			strcmp(unit, "seconds_ns") ? unit : "ns");
	}
	fputc('}', out);
}

static const char *known(const char *word)
{
	return word ? word : "unknown";
}

static void put_lane(FILE *out, const struct stats_lane_record *r)
{
	fprintf(out, "{\"lane\":%" PRIu64, r->lane);
	put_string(out, "name", r->name);
	put_string(out, "job", r->job);
	put_number(out, "rank", r->rank);
	put_number(out, "world", r->world);
	put_number(out, "batch", r->batch);
	put_string(out, "state", ring_state_name(r->state));
	put_string(out, "order", known(order_kind_name((int)r->order)));
	put_string(out, "tail", known(order_tail_name((int)r->tail)));
	put_string(out, "bad", text_bad(r->bad));
	put_number(out, "accumulate", r->accumulate);
	put_string(out, "dataset", r->dataset);
	put_string(out, "client", r->client);
	put_number(out, "uid", r->uid);
	put_number(out, "pid", r->pid);
	put_counters(out, stats_lane_counters, STATS_LANE_COUNT, r->counters);
	fputc('}', out);
}

static void put_case(FILE *out, const struct stats_case *c)
{
	fprintf(out, "{\"lane\":%" PRIu64 ",\"sample\":%" PRIu64 ",\"epoch\":%" PRIu64, c->lane,
		c->id, c->epoch);
	put_string(out, "status", text_status(c->status));
	put_number(out, "times", c->count);
	put_string(out, "path", c->path);
	put_string(out, "reason", c->text);
	fputc('}', out);
}

static void put_header(FILE *out, const struct view *v)
{
	const struct stats_header *h = &v->now.header;

	fputs("{\"schema\":\"feeder-stat/1\"", out);
	put_string(out, "socket", v->socket);
	put_string(out, "version", h->version);
	put_string(out, "library_version", feeder_version());
	put_number(out, "pid", h->pid);
	put_number(out, "uid", h->daemon_uid);
	put_flag(out, "private", h->private_daemon != 0);
	put_flag(out, "draining", h->draining != 0);
	put_number(out, "snapshot_ns", h->snapshot_ns);
	put_string(out, "reader", h->reader);
	put_string(out, "reader_note", h->reader_note);
	put_string(out, "codec", h->codec);
	put_string(out, "simd", h->simd);
	put_string(out, "entropy", h->entropy);
}

static void put_view(FILE *out, const struct view *v)
{
	put_header(out, v);
	put_counters(out, stats_daemon_counters, STATS_DAEMON_COUNT, v->now.daemon);
	fputs(",\"lanes\":[", out);
	for (uint32_t i = 0; i < v->now.header.lane_count; i++) {
		fputs(i ? "," : "", out);
		put_lane(out, &v->now.lanes[i]);
	}
	fputs("],\"bad\":[", out);
	for (uint32_t i = 0; i < v->now.header.case_count; i++) {
		fputs(i ? "," : "", out);
		put_case(out, &v->now.cases[i]);
	}
	fputs("],\"units\":{", out);
	put_units(out, "daemon", stats_daemon_counters, STATS_DAEMON_COUNT);
	fputc(',', out);
	put_units(out, "lane", stats_lane_counters, STATS_LANE_COUNT);
	fputs("}}\n", out);
}

void json_print(FILE *out, const struct views *views)
{
	for (unsigned int i = 0; i < views->count; i++) {
		if (view_ok(&views->rows[i]))
			put_view(out, &views->rows[i]);
	}
}
