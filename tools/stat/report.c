/* SPDX-License-Identifier: Apache-2.0 */
/* The reports that people read: why, errors, digest, health. */
#include <inttypes.h>
#include <string.h>

#include "protocol/ring.h"
#include "text.h"
#include "view.h"
#include "why.h"

#define REASONS 32 /* statuses that are counted apart */

const char *view_lane_label(char ret[LANE_LABEL_MAX], const struct stats_lane_record *lane)
{
	char name[TEXT_MAX(CONTROL_NAME_MAX)];

	snprintf(ret, LANE_LABEL_MAX, "%s rank %u", text_clean(name, sizeof(name), lane->name),
		lane->rank);
	return ret;
}

/* With several daemons each one's lines stand under its socket. */
static void put_heading(FILE *out, const struct views *views, const struct view *v)
{
	char socket[TEXT_MAX(SOCKET_MAX)];

	if (views->count > 1)
		fprintf(out, "# %s pid %u\n", text_clean(socket, sizeof(socket), v->socket),
			v->now.header.pid);
}

/* ---- why ---- */

static void put_verdict_json(FILE *out, const struct verdict *why)
{
	fprintf(out, "\"limit\":\"%s\"", why_word(why->kind));
	if (why->kind == WHY_TRAINER || why->kind == WHY_THROTTLED)
		fprintf(out, ",\"number\":%.6g", why->number);
	else
		fprintf(out, ",\"waited\":%.6g,\"share\":%.6g,\"full\":%.6g", why->waited,
			why->share, why->full);
	fputs(",\"sentence\":", out);
	text_json(out, why->text);
	fputc('}', out);
}

static void why_json(FILE *out, const struct view *v)
{
	struct verdict why, all[WHY_DAEMON_MAX];
	unsigned int count = why_daemon(all, view_before(v), &v->now, v->cpus);

	fputs("{\"schema\":\"feeder-stat-why/1\",\"socket\":", out);
	text_json(out, v->socket);
	fputs(",\"lanes\":[", out);
	for (uint32_t i = 0; i < v->now.header.lane_count; i++) {
		const struct stats_lane_record *lane = &v->now.lanes[i];

		why_lane(&why, view_before(v), &v->now, i, v->cpus);
		fprintf(out, "%s{\"lane\":%" PRIu64 ",\"name\":", i ? "," : "", lane->lane);
		text_json(out, lane->name);
		fprintf(out, ",\"rank\":%u,", lane->rank);
		put_verdict_json(out, &why);
	}
	fputs("],\"daemon\":[", out);
	for (unsigned int i = 0; i < count; i++) {
		fputs(i ? ",{" : "{", out);
		put_verdict_json(out, &all[i]);
	}
	fputs("]}\n", out);
}

static void why_text(FILE *out, const struct views *views, const struct view *v)
{
	struct verdict why, all[WHY_DAEMON_MAX];
	unsigned int count = why_daemon(all, view_before(v), &v->now, v->cpus);
	char label[LANE_LABEL_MAX];

	if (v->now.header.lane_count > 0 || count > 0)
		put_heading(out, views, v);
	for (uint32_t i = 0; i < v->now.header.lane_count; i++) {
		why_lane(&why, view_before(v), &v->now, i, v->cpus);
		fprintf(out, "%s: %s\n", view_lane_label(label, &v->now.lanes[i]), why.text);
	}
	for (unsigned int i = 0; i < count; i++)
		fprintf(out, "daemon: %s\n", all[i].text);
}

void why_print(FILE *out, const struct views *views, bool json)
{
	for (unsigned int i = 0; i < views->count; i++) {
		if (!view_ok(&views->rows[i]))
			continue;
		if (json)
			why_json(out, &views->rows[i]);
		else
			why_text(out, views, &views->rows[i]);
	}
}

/* ---- errors ---- */

/* "train:/x:0 rank 0: 12 of 4096 places asked for a bad sample; files: 2 truncated, 1 empty" */
static void put_summary(FILE *out, const struct snapshot *s, const struct stats_lane_record *lane)
{
	/* a batch that ended its lane was judged and not delivered */
	uint64_t bad = lane->counters[STATS_LANE_bad_samples],
		 places = lane->counters[STATS_LANE_samples];
	unsigned int reasons[REASONS] = { 0 };
	const char *between = "; files: ";
	char label[LANE_LABEL_MAX];

	for (uint32_t i = 0; i < s->header.case_count; i++) {
		if (s->cases[i].lane == lane->lane)
			reasons[s->cases[i].status < REASONS ? s->cases[i].status : REASONS - 1]++;
	}
	fprintf(out, "%s: %" PRIu64 " of %" PRIu64 " places asked for a bad sample",
		view_lane_label(label, lane), bad, places > bad ? places : bad);
	for (unsigned int i = 0; i < REASONS; i++) {
		if (reasons[i] == 0)
			continue;
		fprintf(out, "%s%u %s", between, reasons[i], text_status(i));
		between = ", ";
	}
	fputc('\n', out);
}

static void put_case(FILE *out, const struct snapshot *s, const struct stats_case *c)
{
	const struct stats_lane_record *lane = snapshot_lane(s, c->lane);
	char label[LANE_LABEL_MAX], path[TEXT_MAX(sizeof(c->path))],
		text[TEXT_MAX(sizeof(c->text))];

	if (lane)
		view_lane_label(label, lane);
	else
		snprintf(label, sizeof(label), "lane %" PRIu64, c->lane);
	fprintf(out, "%s: sample %" PRIu64 " %s: %s: %s (%u time%s, first in epoch %" PRIu64 ")\n",
		label, c->id, text_clean(path, sizeof(path), c->path), text_status(c->status),
		text_clean(text, sizeof(text), c->text), c->count, c->count == 1 ? "" : "s",
		c->epoch);
}

static void errors_text(FILE *out, const struct views *views, const struct view *v)
{
	const struct snapshot *s = &v->now;

	put_heading(out, views, v);
	for (uint32_t i = 0; i < s->header.lane_count; i++)
		put_summary(out, s, &s->lanes[i]);
	for (uint32_t i = 0; i < s->header.case_count; i++)
		put_case(out, s, &s->cases[i]);
}

static void errors_json(FILE *out, const struct view *v)
{
	fputs("{\"schema\":\"feeder-stat-errors/1\",\"socket\":", out);
	text_json(out, v->socket);
	fputs(",\"bad\":[", out);
	for (uint32_t i = 0; i < v->now.header.case_count; i++) {
		const struct stats_case *c = &v->now.cases[i];
		const struct stats_lane_record *lane = snapshot_lane(&v->now, c->lane);

		fprintf(out, "%s{\"lane\":%" PRIu64 ",\"name\":", i ? "," : "", c->lane);
		text_json(out, lane ? lane->name : "");
		fprintf(out, ",\"sample\":%" PRIu64 ",\"path\":", c->id);
		text_json(out, c->path);
		fprintf(out, ",\"status\":\"%s\",\"reason\":", text_status(c->status));
		text_json(out, c->text);
		fprintf(out, ",\"times\":%u,\"epoch\":%" PRIu64 "}", c->count, c->epoch);
	}
	fputs("]}\n", out);
}

void errors_print(FILE *out, const struct views *views, bool json)
{
	for (unsigned int i = 0; i < views->count; i++) {
		if (!view_ok(&views->rows[i]))
			continue;
		if (json)
			errors_json(out, &views->rows[i]);
		else
			errors_text(out, views, &views->rows[i]);
	}
}

/* ---- digest ---- */

void digest_print(FILE *out, const struct views *views)
{
	char label[LANE_LABEL_MAX];

	for (unsigned int i = 0; i < views->count; i++) {
		const struct view *v = &views->rows[i];

		if (!view_ok(v))
			continue;
		put_heading(out, views, v);
		for (uint32_t k = 0; k < v->now.header.lane_count; k++) {
			const uint64_t *c = v->now.lanes[k].counters;

			fprintf(out,
				"%s: order %016" PRIx64 " pixels %016" PRIx64 " epoch %" PRIu64
				" step %" PRIu64 " position %" PRIu64 "\n",
				view_lane_label(label, &v->now.lanes[k]),
				c[STATS_LANE_order_digest], c[STATS_LANE_pixel_digest],
				c[STATS_LANE_epoch], c[STATS_LANE_step], c[STATS_LANE_position]);
		}
	}
}

/* ---- health ---- */

static bool find_illness(char *ret, size_t size, const struct view *v)
{
	char label[LANE_LABEL_MAX];

	if (!view_ok(v)) {
		snprintf(ret, size, "%s", v->problem);
		return true;
	}
	if (v->now.header.draining) {
		snprintf(ret, size, "the daemon is draining");
		return true;
	}
	for (uint32_t i = 0; i < v->now.header.lane_count; i++) {
		if (v->now.lanes[i].state == RING_FAILED) {
			snprintf(ret, size, "lane %s failed",
				view_lane_label(label, &v->now.lanes[i]));
			return true;
		}
	}
	return false;
}

static void put_reader(FILE *out, const struct stats_header *h)
{
	char note[TEXT_MAX(sizeof(h->reader_note))];

	fprintf(out, "reader %s", h->reader);
	if (h->reader_note[0])
		fprintf(out, " (%s)", text_clean(note, sizeof(note), h->reader_note));
}

unsigned int health_print(FILE *out, const struct views *views, const char *library)
{
	unsigned int unwell = 0;

	for (unsigned int i = 0; i < views->count; i++) {
		const struct view *v = &views->rows[i];
		const struct stats_header *h = &v->now.header;
		char why[LANE_LABEL_MAX + 64], socket[TEXT_MAX(SOCKET_MAX)];
		bool ill = find_illness(why, sizeof(why), v);

		unwell += ill;
		fprintf(out, "%s%s; library %s, ", ill ? "unwell: " : "ok", ill ? why : "",
			library);
		if (view_ok(v)) {
			fprintf(out, "daemon %s at %s pid %u, ", h->version,
				text_clean(socket, sizeof(socket), v->socket), h->pid);
			put_reader(out, h);
			fprintf(out, ", %u lane%s\n", h->lane_count, h->lane_count == 1 ? "" : "s");
		} else {
			fprintf(out, "daemon at %s\n",
				text_clean(socket, sizeof(socket), v->socket));
		}
	}
	return unwell;
}
