/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: one connected client. Packets in, packets out; what they mean is in request.c.
 *
 * A refusal at the door still reads the hello and answers it: closing a Unix socket with an
 * unread packet resets the connection, and the peer would see that and no sentence.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "control/state.h"

#define HELLO_NS      (10 * NS_PER_SEC)
#define PACKETS_ROUND 16 /* of one session before the others have their turn */

uint32_t session_handle(struct session *s)
{
	return ++s->last_handle ? s->last_handle : ++s->last_handle;
}

int session_send(struct session *s, uint32_t type, uint32_t serial, const void *body, size_t size,
	const void *tail, size_t tail_size, const int *fds, unsigned int fd_count)
{
	if (s->dead)
		return -EPIPE;
	int r = control_send(s->watch.fd, type, serial, body, size, tail, tail_size, fds, fd_count);
	if (r < 0) {
		if (r == -EAGAIN)
			log_warning("%s (pid %d, uid %u) does not read its socket; its session is "
				    "closed",
				s->client[0] ? s->client : "a client", (int)s->peer.pid,
				(unsigned int)s->peer.uid);
		session_kill(s);
	}
	return r;
}

void session_refuse(struct session *s, uint32_t serial, int code, const char *format, ...)
{
	struct control_error body = { .size = sizeof(body), .code = code };
	va_list ap;

	va_start(ap, format);
	vsnprintf(body.text, sizeof(body.text), format, ap);
	va_end(ap);
	s->control->refused++;
	log_info("refused: uid %u, pid %d: %s", (unsigned int)s->peer.uid, (int)s->peer.pid,
		body.text);
	session_send(s, CONTROL_ERROR, serial, &body, sizeof(body), NULL, 0, NULL, 0);
}

void session_refuse_stopping(struct session *s, uint32_t serial)
{
	session_refuse(s, serial, -ESHUTDOWN,
		"the daemon at %s is stopping: connect again when it is back",
		s->control->options.server->path);
}

void session_kill(struct session *s)
{
	struct control *c = s->control;

	if (s->dead)
		return;
	s->dead = true;
	loop_unwatch(&s->watch);
	timer_stop(&s->hello_timer);
	/* Seen as gone at once, freed when nobody up the stack uses it any more. */
	loop_timer(c->loop, &c->reap, 0, session_reap);
}

static void session_free(struct session *s)
{
	struct control *c = s->control;

	LIST_FOR_EACH_SAFE (l, tmp, &s->lanes)
		lane_close(CONTAINER_OF(l, struct lane_record, session_link));
	open_forget(s);
	loop_unwatch(&s->watch);
	timer_stop(&s->hello_timer);
	fd_close(s->watch.fd);
	list_remove(&s->link);
	if (s->served) {
		quota_give_session(c->quota, s->peer.uid);
		roots_leave(c->roots, s->peer.uid);
		c->session_count--;
		control_sessions_changed(c);
	} else {
		c->refused_count--;
	}
	peer_deinit(&s->peer);
	free(s);
}

void session_reap(struct timer *timer)
{
	struct control *c = CONTAINER_OF(timer, struct control, reap);

	LIST_FOR_EACH_SAFE (l, tmp, &c->sessions) {
		struct session *s = CONTAINER_OF(l, struct session, link);

		if (s->dead)
			session_free(s);
	}
}

void session_free_all(struct control *c)
{
	LIST_FOR_EACH_SAFE (l, tmp, &c->sessions)
		session_free(CONTAINER_OF(l, struct session, link));
	timer_stop(&c->reap);
}

/* The kernel cut descriptors off without telling the sender. */
static void descriptors_lost(struct session *s)
{
	session_refuse(s, s->control->packet.header.serial, -EMFILE,
		"descriptors were lost on the way: the daemon is at its limit of open files "
		"(LimitNOFILE=)");
}

static void malformed(struct session *s, int error)
{
	struct control *c = s->control;

	c->protocol_errors++;
	session_refuse(s, c->packet.header.serial, error,
		"the packet does not follow the protocol (%s); the session is closed",
		strerror(-error));
	session_kill(s);
}

static void ready(struct watch *watch, uint32_t events)
{
	struct session *s = CONTAINER_OF(watch, struct session, watch);
	struct control *c = s->control;

	(void)events; /* a hang-up is the end of the stream, after what was sent before */
	for (unsigned int i = 0; i < PACKETS_ROUND && !s->dead; i++) {
		c->packet.header = (struct control_header){ 0 };
		int r = control_receive(watch->fd, &c->packet, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return;
		if (r == 1 && s->refusal < 0) {
			session_refuse(
				s, c->packet.header.serial, s->refusal, "%s", s->refusal_text);
			session_kill(s);
		} else if (r == 1) {
			r = request_handle(s);
			if (r < 0)
				malformed(s, r);
		} else if (r == -EMFILE) {
			descriptors_lost(s);
		} else if (r == -EPROTO) {
			malformed(s, r);
		} else {
			session_kill(s);
		}
		control_packet_close(&c->packet);
	}
}

static void no_hello(struct timer *timer)
{
	session_kill(CONTAINER_OF(timer, struct session, hello_timer));
}

/* What the peer is refused for at the door: 0 or negative errno with text. Counts it if not. */
static int judge_peer(struct session *s, char *text, size_t size)
{
	struct control *c = s->control;
	int r = peer_read(&s->peer, s->watch.fd);

	if (r < 0) {
		snprintf(text, size, "the daemon cannot tell who you are: %s", strerror(-r));
		return r;
	}
	if (!roots_admit(c->roots, &s->peer)) {
		snprintf(text, size,
			"no root of this daemon admits uid %u (allow= of a [root] in feeder.conf)",
			(unsigned int)s->peer.uid);
		return -EACCES;
	}
	r = quota_take_session(c->quota, s->peer.uid, text, size);
	if (r < 0)
		return r;
	r = roots_enter(c->roots, &s->peer);
	if (r < 0) {
		quota_give_session(c->quota, s->peer.uid);
		snprintf(text, size, "the daemon is out of memory");
	}
	return r;
}

void session_new(struct control *c, int fd, int refusal, const char *text)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		fd_close(fd);
		return;
	}
	s->control = c;
	s->watch.fd = fd;
	list_init(&s->handles);
	list_init(&s->lanes);
	s->refusal = refusal;
	if (refusal < 0)
		snprintf(s->refusal_text, sizeof(s->refusal_text), "%s", text);
	else
		s->refusal = judge_peer(s, s->refusal_text, sizeof(s->refusal_text));
	s->served = s->refusal == 0;
	list_append(&c->sessions, &s->link);
	if (s->served)
		c->session_count++;
	else
		c->refused_count++;
	loop_timer(c->loop, &s->hello_timer, now_ns() + HELLO_NS, no_hello);
	if (loop_watch(c->loop, &s->watch, fd, EPOLLIN, ready) < 0)
		session_kill(s);
	if (s->served)
		control_sessions_changed(c);
}
