/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies on the socket. Events may stand between a request and its reply and are
 * handled in passing. A call that was given up (a signal, a time-out) leaves a reply behind: it
 * is undone when it arrives, a lane or dataset that nobody has a handle of is closed, and a seek
 * takes effect.
 */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"

int fdr_fail_forked(void)
{
	return fdr_fail(
		-ECHILD, "this connection was made before fork(): the child must make its own");
}

int fdr_fail_dead(struct feeder *f)
{
	if (f->dead == -EPROTO)
		return fdr_fail(-EPROTO,
			"the daemon at %s sent a malformed packet: version %s, "
			"this library has " FEEDER_VERSION,
			f->path, f->version[0] ? f->version : "unknown");
	if (f->draining)
		return fdr_fail(-EPIPE,
			"the daemon at %s was stopped and has published its last batch: connect "
			"again "
			"and open the lane at your cursor with reopen",
			f->path);
	return fdr_fail(-EPIPE,
		"the daemon at %s died: connect again and open the lane at your cursor with reopen",
		f->path);
}

int fdr_alive(struct feeder *f)
{
	if (f->forked)
		return fdr_fail_forked();
	return f->dead ? fdr_fail_dead(f) : 0;
}

static int fail_files(void)
{
	struct rlimit limit = { .rlim_cur = 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	return fdr_fail(-EMFILE,
		"the descriptors of the daemon's reply did not fit below this process's limit of "
		"%llu "
		"open files: raise it (ulimit -n)",
		(unsigned long long)limit.rlim_cur);
}

void fdr_send_close(struct feeder *f, uint32_t lane, uint32_t dataset)
{
	struct control_close body = { .size = sizeof(body), .lane = lane, .dataset = dataset };

	if (!f->dead)
		control_send(
			f->fd, CONTROL_CLOSE, ++f->serial, &body, sizeof(body), NULL, 0, NULL, 0);
}

int fdr_reply(
	struct feeder *f, void *ret, size_t size, const uint8_t **ret_tail, size_t *ret_tail_size)
{
	int r = control_body(f->packet, ret, size, ret_tail, ret_tail_size);

	if (r == -E2BIG)
		return fdr_fail(r,
			"the daemon at %s (version %s) uses what this library "
			"(" FEEDER_VERSION ") does not know: update the library",
			f->path, f->version);
	if (r < 0)
		return fdr_fail(r, "the daemon at %s sent a malformed reply", f->path);
	return 0;
}

int fdr_take_fd(struct feeder *f, unsigned int i)
{
	int fd = f->packet->fds[i];

	f->packet->fds[i] = -1;
	return fd;
}

static int error_code(int32_t code)
{
	return code < 0 && code >= -4095 ? code : -EPROTO;
}

static int fail_refused(struct feeder *f)
{
	struct control_error body;
	int r = fdr_reply(f, &body, sizeof(body), NULL, NULL);

	if (r < 0)
		return r;
	r = error_code(body.code);
	if (body.text[0] == '\0' || !control_string_ok(body.text, sizeof(body.text)))
		return fdr_fail(r, "the daemon at %s refused: %s", f->path, strerror(-r));
	return fdr_fail(r, "%s", body.text);
}

/* ---- packets that nobody waits for ---- */

/* The daemon has ended a lane; text, of an event, may lack its end. */
static void end_lane(
	struct feeder *f, uint32_t handle, int code, char *text, size_t size, const char *unsaid)
{
	struct feeder_lane *lane = fdr_lane_find(f, handle);

	text[size - 1] = '\0';
	if (lane)
		fdr_lane_fail(lane, code, text[0] ? text : unsaid);
}

static void lane_event(struct feeder *f)
{
	struct control_error body;

	if (control_body(f->packet, &body, sizeof(body), NULL, NULL) < 0)
		f->dead = -EPROTO;
	else
		end_lane(f, body.lane, error_code(body.code), body.text, sizeof(body.text),
			"the daemon ended the lane and did not say why");
}

static void lane_lost(struct feeder *f)
{
	struct control_lane_lost body;

	if (control_body(f->packet, &body, sizeof(body), NULL, NULL) < 0)
		f->dead = -EPROTO;
	else
		end_lane(f, body.lane, -ESTALE, body.text, sizeof(body.text),
			"a newer attach of this rank took the lane over");
}

static void settle_pending(struct feeder *f, uint32_t serial)
{
	LIST_FOR_EACH (pos, &f->lanes) {
		struct feeder_lane *lane = CONTAINER_OF(pos, struct feeder_lane, link);

		if (lane->pending == serial)
			lane->pending = 0;
	}
}

/* A seek's reply takes effect whether or not its caller is still there. */
static int apply_move(struct feeder *f)
{
	struct control_lane body;
	struct feeder_lane *lane;
	int r = fdr_reply(f, &body, sizeof(body), NULL, NULL);

	settle_pending(f, f->packet->header.serial);
	if (r < 0)
		return r;
	lane = fdr_lane_find(f, body.lane);
	return lane ? fdr_lane_moved(lane, &body) : 0;
}

static void undo_stale(struct feeder *f)
{
	struct control_lane lane;
	struct control_dataset dataset;

	switch (f->packet->header.type) {
	case CONTROL_OPEN_LANE | CONTROL_REPLY:
		if (control_body(f->packet, &lane, sizeof(lane), NULL, NULL) == 0)
			fdr_send_close(f, lane.lane, 0);
		break;
	case CONTROL_OPEN_DATASET | CONTROL_REPLY:
		if (control_body(f->packet, &dataset, sizeof(dataset), NULL, NULL) == 0)
			fdr_send_close(f, 0, dataset.dataset);
		break;
	case CONTROL_SEEK | CONTROL_REPLY:
	case CONTROL_SET_EPOCH | CONTROL_REPLY:
		apply_move(f);
		break;
	case CONTROL_ERROR:
		settle_pending(f, f->packet->header.serial);
		break;
	}
}

static void handle_other(struct feeder *f)
{
	if (f->packet->header.serial != 0) {
		undo_stale(f);
	} else if (f->packet->header.type == CONTROL_ERROR) {
		lane_event(f);
	} else if (f->packet->header.type == CONTROL_LANE_LOST) {
		lane_lost(f);
	} else if (f->packet->header.type == CONTROL_DRAINING) {
		f->draining = true;
	}
	/* other events are a newer daemon's, and may be ignored */
	control_packet_close(f->packet);
}

/* One packet: 1 in f->packet, 0 nothing there, else the connection is dead. -EMFILE passes. */
static int receive(struct feeder *f)
{
	int r = control_receive(f->fd, f->packet, MSG_DONTWAIT);

	if (r == 1 || r == -EMFILE)
		return r;
	if (r == -EAGAIN)
		return 0;
	f->dead = r == -EPROTO ? -EPROTO : -EPIPE;
	return f->dead;
}

void fdr_dispatch(struct feeder *f)
{
	while (!f->dead) {
		int r = receive(f);

		if (r == 0)
			return;
		if (r == 1 || r == -EMFILE)
			handle_other(f);
	}
}

int fdr_dispatch_wait(struct feeder *f, int timeout_ms)
{
	struct pollfd pollfd = { .fd = f->fd, .events = POLLIN };

	if (!f->dead && poll(&pollfd, 1, timeout_ms) < 0 && errno == EINTR)
		return -EINTR;
	fdr_dispatch(f);
	return 0;
}

/* ---- calls ---- */

/* Waits until the socket is ready for events: 0, -ETIMEDOUT, -EINTR. */
static int wait_socket(struct feeder *f, short events, uint64_t deadline)
{
	struct pollfd pollfd = { .fd = f->fd, .events = events };
	uint64_t now = now_ns();
	uint64_t left_ms = now < deadline ? (deadline - now + NS_PER_MS - 1) / NS_PER_MS : 0;

	if (left_ms == 0)
		return -ETIMEDOUT;
	if (poll(&pollfd, 1, left_ms > 60000 ? 60000 : (int)left_ms) < 0)
		return -errno;
	return 0;
}

static int send_request(struct feeder *f, const struct fdr_call *call, uint64_t deadline)
{
	for (;;) {
		int r = control_send(f->fd, call->type, f->serial, call->body, call->size, NULL, 0,
			call->fds, call->fd_count);

		if (r == -EPIPE || r == -ECONNRESET) {
			/* what the daemon said before it closed is still to be read */
			fdr_dispatch(f);
			f->dead = f->dead ? f->dead : -EPIPE;
			return fdr_fail_dead(f);
		}
		if (r == 0)
			return 0;
		if (r != -EAGAIN)
			return fdr_fail(
				r, "sending to the daemon at %s failed: %s", f->path, strerror(-r));
		r = wait_socket(f, POLLOUT, deadline);
		if (r < 0)
			return fdr_fail(r, "the daemon at %s does not read its socket", f->path);
	}
}

struct progress {
	uint64_t files;
	uint64_t directories;
};

/* Whether the report says something new; only then does the time-out start again. */
static bool report_progress(struct feeder *f, const struct fdr_call *call, struct progress *last)
{
	struct control_progress body;

	if (control_body(f->packet, &body, sizeof(body), NULL, NULL) < 0)
		return false;
	if (body.files == last->files && body.directories == last->directories)
		return false;
	last->files = body.files;
	last->directories = body.directories;
	if (call->progress)
		call->progress(call->context, body.files, body.directories);
	return true;
}

static int finish_reply(struct feeder *f, const struct fdr_call *call)
{
	int r = 0;

	if (f->packet->header.type == CONTROL_ERROR) {
		settle_pending(f, f->packet->header.serial);
		r = fail_refused(f);
	} else if (f->packet->header.type != (call->type | CONTROL_REPLY)) {
		r = fdr_fail(-EPROTO, "the daemon at %s answered with a message of type %u",
			f->path, f->packet->header.type);
	} else if (call->lane) {
		r = apply_move(f);
	}
	if (r < 0)
		control_packet_close(f->packet);
	return r;
}

static int fail_unanswered(struct feeder *f, const struct fdr_call *call, int code)
{
	if (code == -EINTR)
		return fdr_fail(code, "interrupted by a signal");
	return fdr_fail(code,
		"the daemon at %s gave no answer within %d ms: it is stopped or stuck", f->path,
		call->timeout_ms);
}

static int wait_reply(struct feeder *f, const struct fdr_call *call, uint64_t deadline)
{
	uint32_t serial = f->serial;
	struct progress last = { .files = UINT64_MAX };

	for (;;) {
		int r = receive(f);

		if (r == 0) {
			r = wait_socket(f, POLLIN, deadline);
			if (r < 0)
				return fail_unanswered(f, call, r);
		} else if (f->dead) {
			return fdr_fail_dead(f);
		} else if (f->packet->header.serial != serial) {
			handle_other(f);
		} else if (r == -EMFILE) {
			undo_stale(f);
			control_packet_close(f->packet);
			return fail_files();
		} else if (f->packet->header.type == CONTROL_PROGRESS) {
			if (report_progress(f, call, &last))
				deadline = now_ns() + (uint64_t)call->timeout_ms * NS_PER_MS;
			control_packet_close(f->packet);
		} else {
			return finish_reply(f, call);
		}
	}
}

int fdr_call(struct feeder *f, const struct fdr_call *call)
{
	uint64_t deadline = now_ns() + (uint64_t)call->timeout_ms * NS_PER_MS;
	int r = fdr_alive(f);

	if (r < 0)
		return r;
	if (++f->serial == 0)
		f->serial = 1;
	r = send_request(f, call, deadline);
	if (r < 0)
		return r;
	if (call->lane)
		call->lane->pending = f->serial;
	return wait_reply(f, call, deadline);
}
