/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: from the request to the ring's descriptors, and back to nothing.
 *
 * A record is made, its place in the group and its bytes are taken, and only then the ring is
 * made in the background; whatever happens meanwhile (the session ends, a takeover) finds the
 * record and marks it closed. Freeing waits for samples in decode, so it is in the background
 * too, and the place in the group is free at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "control/state.h"
#include "source/source.h"

/* ---- workers ---- */

void lane_set_workers(struct control *c)
{
	unsigned int ranks = group_ranks(&c->groups);
	unsigned int n = c->options.cpus > ranks ? c->options.cpus - ranks : 1;

	if (c->options.workers_literal || c->closing)
		return;
	pipeline_set_active_workers(c->pipeline, n < c->options.workers ? n : c->options.workers);
}

/* ---- the end ---- */

/* Nothing refers to the record but the caller, and it has no lane. */
static void record_free(struct lane_record *record)
{
	struct control *c = record->control;

	if (record->bytes > 0)
		quota_give_bytes(c->quota, record->uid, record->bytes);
	quota_give_lane(c->quota, record->uid);
	entry_drop(record->entry);
	list_remove(&record->link);
	for (unsigned int i = 0; i < 3; i++)
		fd_close(record->fds[i]);
	free(record);
	control_check_drained(c);
}

static void run_free(struct background_job *job)
{
	pipeline_lane_free(CONTAINER_OF(job, struct lane_record, job)->lane);
}

static void free_done(struct background_job *job)
{
	record_free(CONTAINER_OF(job, struct lane_record, job));
}

/* Closed for its session; a record whose opening runs is freed when that is done. */
static void detach(struct lane_record *record)
{
	list_remove(&record->session_link);
	group_leave(&record->member);
	record->session = NULL;
	loop_unwatch(&record->doorbell);
	lane_set_workers(record->control);
}

static void free_lane(struct lane_record *record)
{
	record->job.run = run_free;
	record->job.done = free_done;
	background_submit(record->control->lane_jobs, &record->job);
}

void lane_close(struct lane_record *record)
{
	if (!record->session)
		return;
	detach(record);
	if (record->lane)
		free_lane(record);
}

struct lane_record *lane_find(struct session *s, uint32_t handle)
{
	LIST_FOR_EACH (l, &s->lanes) {
		struct lane_record *record = CONTAINER_OF(l, struct lane_record, session_link);

		if (record->lane && record->handle == handle)
			return record;
	}
	return NULL;
}

/* ---- opening ---- */

static void doorbell(struct watch *watch, uint32_t events)
{
	(void)events;
	lane_doorbell(CONTAINER_OF(watch, struct lane_record, doorbell)->lane);
}

static struct lane_request make_request(const struct lane_record *record)
{
	return (struct lane_request){
		.open = &record->open,
		.dataset = entry_dataset(record->entry),
		.uid = record->uid,
		.job_key = record->job_key,
		.worker_share = record->worker_share,
	};
}

static void run_open(struct background_job *job)
{
	struct lane_record *record = CONTAINER_OF(job, struct lane_record, job);
	struct control *c = record->control;
	struct lane_request request = make_request(record);

	record->result = pipeline_lane_new(&record->made, c->pipeline, &request, &record->reply,
		record->fds, record->text, sizeof(record->text));
}

static void report_failure(struct lane_record *record)
{
	struct control_error body = { 0 };

	if (record->failed || !record->session || !record->lane || record->handle == 0 ||
		lane_error(record->lane, &body) == 0)
		return;
	record->failed = true;
	body.size = sizeof(body);
	body.lane = record->handle;
	log_warning("uid %u, pid %d, job \"%s\", lane \"%s\", rank %u failed: %s",
		(unsigned int)record->uid, (int)record->pid, record->open.job, record->open.name,
		record->open.rank, body.text);
	session_send(record->session, CONTROL_ERROR, 0, &body, sizeof(body), NULL, 0, NULL, 0);
}

static void answer_open(struct lane_record *record)
{
	struct session *s = record->session;

	record->handle = session_handle(s);
	record->reply.size = sizeof(record->reply);
	record->reply.lane = record->handle;
	if (loop_watch(s->control->loop, &record->doorbell, lane_doorbell_fd(record->lane),
		    EPOLLIN | EPOLLET, doorbell) < 0) {
		session_refuse(s, record->serial, -EMFILE, "the daemon cannot watch the lane");
		lane_close(record);
		return;
	}
	session_send(s, CONTROL_OPEN_LANE | CONTROL_REPLY, record->serial, &record->reply,
		sizeof(record->reply), NULL, 0, record->fds, 3);
	for (unsigned int i = 0; i < 3; i++)
		record->fds[i] = fd_close(record->fds[i]);
	report_failure(record); /* it may have failed before its session knew it */
}

static void open_done(struct background_job *job)
{
	struct lane_record *record = CONTAINER_OF(job, struct lane_record, job);
	struct control *c = record->control;
	struct session *s = record->session;

	record->lane = record->made;
	if (record->lane &&
		charge_watch(c->charges, record->uid, record->bytes, record->fds[0]) == 0)
		record->bytes = 0;
	else if (record->lane)
		log_warning(
			"inotify is not to be had (fs.inotify.max_user_watches): a closed lane's "
			"ring counts for its uid only until the daemon has freed it");
	if (s)
		s->pending--;
	if (!s || s->dead) {
		if (s)
			detach(record);
	} else if (record->result < 0) {
		session_refuse(s, record->serial, record->result, "%s",
			record->text[0] ? record->text : strerror(-record->result));
		detach(record);
	} else if (c->draining) {
		session_refuse_stopping(s, record->serial);
		detach(record);
	} else {
		answer_open(record);
		return;
	}
	if (record->lane)
		free_lane(record);
	else
		record_free(record);
}

/* ---- checks before ---- */

static void lose(struct lane_record *held, const struct session *to)
{
	struct control_lane_lost body = { .size = sizeof(body), .lane = held->handle };

	snprintf(body.text, sizeof(body.text),
		"rank %u of lane \"%s\" was taken over by a newer attach (pid %d)", held->open.rank,
		held->open.name, (int)to->peer.pid);
	log_info("uid %u: %s", (unsigned int)held->uid, body.text);
	if (held->lane) {
		lane_shut(held->lane);
		session_send(
			held->session, CONTROL_LANE_LOST, 0, &body, sizeof(body), NULL, 0, NULL, 0);
	} else {
		session_refuse(held->session, held->serial, -ESTALE, "%s", body.text);
		held->session->pending--;
	}
	lane_close(held);
}

/* The place in the group, taking it from its holder where asked to. */
static int take_place(struct session *s, struct lane_record *record,
	const struct lane_identity *identity, char *text, size_t size)
{
	struct control *c = s->control;
	const struct control_open_lane *open = &record->open;
	struct group_member *held;
	struct group_ask ask = {
		.uid = record->uid,
		.job = open->job,
		.name = open->name,
		.rank = open->rank,
		.part = open->part,
		.parts = open->parts ? open->parts : 1,
		.reopen = open->flags & CONTROL_LANE_REOPEN,
		.identity = identity,
	};
	int r = group_check(&c->groups, &ask, &held, text, size);

	if (r < 0)
		return r;
	if (r == 1) {
		struct lane_record *holder = CONTAINER_OF(held, struct lane_record, member);

		if (!(open->flags & CONTROL_LANE_TAKEOVER)) {
			snprintf(text, size,
				"rank %u (part %u) of lane \"%s\" of job \"%s\" is attached "
				"already, by "
				"%s, pid %d; takeover=1 lets the newer one win",
				open->rank, open->part, open->name, open->job,
				holder->client[0] ? holder->client : "a client", (int)holder->pid);
			return -EBUSY;
		}
		lose(holder, s);
	}
	r = group_join(&c->groups, &ask, &record->member);
	if (r < 0)
		snprintf(text, size, "the daemon is out of memory");
	return r;
}

/* Everything that can be refused without making the ring. */
static int prepare(struct session *s, struct lane_record *record, char *text, size_t size)
{
	struct control *c = s->control;
	struct lane_request request = make_request(record);
	struct lane_identity identity;
	uint64_t bytes = 0;
	int r = pipeline_lane_size(c->pipeline, &request, &bytes, text, size);

	if (r == 0)
		r = lane_request_identity(&request, &identity, text, size);
	if (r == 0)
		r = quota_take_bytes(c->quota, record->uid, bytes, text, size);
	if (r < 0)
		return r;
	record->bytes = bytes;
	return take_place(s, record, &identity, text, size);
}

static struct lane_record *record_new(
	struct session *s, const struct control_open_lane *body, struct dataset_entry *entry)
{
	struct control *c = s->control;
	struct lane_record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->control = c;
	record->session = s;
	record->serial = c->packet.header.serial;
	record->open = *body;
	record->uid = s->peer.uid;
	record->pid = s->peer.pid;
	memcpy(record->client, s->client, sizeof(record->client));
	record->job_key = group_job_key(s->peer.uid, body->job);
	record->worker_share = quota_workers_share(c->quota);
	record->entry = entry;
	entry_use(entry);
	for (unsigned int i = 0; i < 3; i++)
		record->fds[i] = -1;
	list_init(&record->member.link);
	list_append(&c->lanes, &record->link);
	list_append(&s->lanes, &record->session_link);
	return record;
}

void lane_open(struct session *s, const struct control_open_lane *body)
{
	struct control *c = s->control;
	uint32_t serial = c->packet.header.serial;
	struct dataset_entry *entry = open_find(s, body->dataset);
	char text[TEXT_SIZE] = "";

	if (!entry) {
		session_refuse(
			s, serial, -EBADF, "dataset %u is not open in this session", body->dataset);
		return;
	}
	if (s->pending >= PENDING_MAX) {
		session_refuse(s, serial, -EBUSY, "%u requests of this session are open already",
			s->pending);
		return;
	}
	int r = quota_take_lane(c->quota, s->peer.uid, text, sizeof(text));
	if (r < 0) {
		session_refuse(s, serial, r, "%s", text);
		return;
	}
	struct lane_record *record = record_new(s, body, entry);
	if (!record) {
		quota_give_lane(c->quota, s->peer.uid);
		session_refuse(s, serial, -ENOMEM, "the daemon is out of memory");
		return;
	}
	r = prepare(s, record, text, sizeof(text));
	if (r < 0) {
		session_refuse(s, serial, r, "%s", text[0] ? text : strerror(-r));
		detach(record);
		record_free(record);
		return;
	}
	lane_set_workers(c);
	s->pending++;
	record->job.run = run_open;
	record->job.done = open_done;
	background_submit(c->lane_jobs, &record->job);
}

/* ---- while open ---- */

void lane_move(struct session *s, uint32_t serial, struct lane_record *record, int result,
	struct control_lane *reply, const char *text)
{
	uint32_t type = s->control->packet.header.type | CONTROL_REPLY;

	if (result < 0) {
		session_refuse(s, serial, result, "%s", text[0] ? text : strerror(-result));
		return;
	}
	reply->size = sizeof(*reply);
	reply->lane = record->handle;
	session_send(s, type, serial, reply, sizeof(*reply), NULL, 0, NULL, 0);
}

void lane_events(struct watch *watch, uint32_t events)
{
	struct control *c = CONTAINER_OF(watch, struct control, lane_events);
	uint64_t count;

	(void)events;
	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	LIST_FOR_EACH (l, &c->lanes)
		report_failure(CONTAINER_OF(l, struct lane_record, link));
	control_check_drained(c);
}
