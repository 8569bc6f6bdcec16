/* SPDX-License-Identifier: Apache-2.0 */
/* control: start, accepting, reload, draining, idle exit, end. */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "control/state.h"

#define DATASET_THREADS 2
#define LANE_THREADS    2
#define REFUSED_MAX     64                /* connections that wait for their refusal */
#define PAUSE_NS        (100 * NS_PER_MS) /* of accepting, at the descriptor limit */
#define FIRST_NS        (10 * NS_PER_SEC) /* a private daemon waits for its first session */
#define LAST_NS         (500 * NS_PER_MS) /* and for a next one */
#define DRAIN_NS        (9 * NS_PER_SEC)
#define DRAIN_LOOK_NS   (20 * NS_PER_MS)

/* ---- accepting ---- */

static void accept_ready(struct watch *watch, uint32_t events);

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_again(struct timer *timer)
{
	struct control *c = CONTAINER_OF(timer, struct control, accept_again);

	if (c->reserve_fd < 0)
		c->reserve_fd = open_reserve();
	if (c->options.server->fd < 0 || c->accepting.loop)
		return;
	if (loop_watch(c->loop, &c->accepting, c->options.server->fd, EPOLLIN, accept_ready) < 0)
		loop_timer(c->loop, &c->accept_again, now_ns() + PAUSE_NS, accept_again);
}

/* Out of descriptors: whoever waits is told so with the one kept in reserve. */
static void accept_at_limit(struct control *c)
{
	log_warning("the limit of open files is reached (LimitNOFILE=): connections are refused");
	if (c->reserve_fd >= 0) {
		c->reserve_fd = fd_close(c->reserve_fd);
		int fd = accept4(c->options.server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			session_new(c, fd, -EMFILE,
				"the daemon is at its limit of open files (LimitNOFILE=)");
	}
	loop_unwatch(&c->accepting);
	loop_timer(c->loop, &c->accept_again, now_ns() + PAUSE_NS, accept_again);
}

static void accept_ready(struct watch *watch, uint32_t events)
{
	struct control *c = CONTAINER_OF(watch, struct control, accepting);

	(void)events;
	for (unsigned int i = 0; i < 16; i++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			accept_at_limit(c);
			return;
		}
		if (fd < 0)
			return; /* nobody, or somebody who left again */
		if (c->refused_count >= REFUSED_MAX)
			fd_close(fd);
		else
			session_new(c, fd, 0, "");
	}
}

/* ---- idle exit ---- */

static void idle(struct timer *timer)
{
	struct control *c = CONTAINER_OF(timer, struct control, idle);

	if (c->accepting.loop)
		accept_ready(&c->accepting, EPOLLIN); /* who is in the queue is not turned away */
	if (c->session_count > 0)
		return;
	server_close(c->options.server);
	log_info("no session: exit");
	loop_stop(c->loop, 0);
}

void control_sessions_changed(struct control *c)
{
	uint64_t wait = c->options.private_daemon ? LAST_NS : c->idle_exit_ns;

	if (c->session_count > 0 || c->closing)
		timer_stop(&c->idle);
	else if (wait != CONFIG_FOREVER)
		loop_timer(c->loop, &c->idle, now_ns() + wait, idle);
}

/* ---- draining ---- */

static void look_drained(struct timer *timer)
{
	control_check_drained(CONTAINER_OF(timer, struct control, drain));
}

void control_check_drained(struct control *c)
{
	bool all = true;

	if (!c->draining || c->closing)
		return;
	LIST_FOR_EACH (l, &c->lanes) {
		struct lane_record *record = CONTAINER_OF(l, struct lane_record, link);

		/* One that is being opened is refused and freed when that is done. */
		if (record->session && record->lane && !lane_drained(record->lane))
			all = false;
	}
	if (!all && now_ns() < c->drain_until_ns) {
		loop_timer(c->loop, &c->drain, now_ns() + DRAIN_LOOK_NS, look_drained);
		return;
	}
	log_info(all ? "drained: exit" : "lanes were not drained in time: exit");
	loop_stop(c->loop, 0);
}

void control_drain(struct control *c)
{
	if (c->draining)
		return;
	c->draining = true;
	c->drain_until_ns = now_ns() + DRAIN_NS;
	loop_unwatch(&c->accepting);
	timer_stop(&c->accept_again);
	timer_stop(&c->idle);
	server_close(c->options.server);
	open_stop_all(c);
	LIST_FOR_EACH (l, &c->lanes) {
		struct lane_record *record = CONTAINER_OF(l, struct lane_record, link);

		if (record->session && record->lane && record->handle)
			lane_drain(record->lane);
	}
	LIST_FOR_EACH (l, &c->sessions) {
		struct session *s = CONTAINER_OF(l, struct session, link);

		if (s->greeted)
			session_send(s, CONTROL_DRAINING, 0, NULL, 0, NULL, 0, NULL, 0);
	}
	control_check_drained(c);
}

bool control_draining(const struct control *c)
{
	return c->draining;
}

/* ---- callbacks of the pipeline ---- */

void control_lane_event(void *context, uint64_t lane_id)
{
	struct control *c = context;
	uint64_t one = 1;

	(void)lane_id; /* an event is rare: the loop looks at every lane */
	/* A full counter means that the loop is yet to look. */
	if (write(c->event_fd, &one, sizeof(one)) < 0)
		return;
}

int control_open_outside(void *context, uint32_t uid, int dirfd, const char *path, int flags)
{
	struct control *c = context;

	return roots_open_outside(c->roots, uid, dirfd, path, flags);
}

/* ---- start and end ---- */

static int start_parts(
	struct control *c, const struct control_options *options, char *text, size_t size)
{
	const struct config *config = options->config;
	bool everything = options->private_daemon && config->root_count == 0;
	int r = roots_new(&c->roots, config, everything, text, size);

	if (r < 0)
		return r;
	snprintf(text, size, "starting the control thread's parts failed");
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->reserve_fd = open_reserve();
	if (c->event_fd < 0 || c->reserve_fd < 0)
		return -errno;
	r = quota_new(&c->quota, &config->limits, options->memory);
	if (r == 0)
		r = charges_new(&c->charges, c->loop, c->quota);
	if (r == 0)
		r = loop_watch(c->loop, &c->lane_events, c->event_fd, EPOLLIN, lane_events);
	if (r == 0)
		r = background_new(&c->dataset_jobs, c->loop, "opener", DATASET_THREADS);
	if (r == 0)
		r = background_new(&c->lane_jobs, c->loop, "lanes", LANE_THREADS);
	return r;
}

int control_new(
	struct control **ret, const struct control_options *options, char *text, size_t size)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	c->loop = options->loop;
	c->options = *options;
	c->options.config = NULL;
	c->idle_exit_ns = options->config->idle_exit_ns;
	c->start_ns = now_ns();
	c->event_fd = -1;
	c->reserve_fd = -1;
	group_table_init(&c->groups);
	list_init(&c->sessions);
	list_init(&c->datasets);
	list_init(&c->opens);
	list_init(&c->lanes);
	int r = start_parts(c, options, text, size);
	if (r < 0) {
		control_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int control_serve(struct control *c, struct pipeline *pipeline, char *text, size_t size)
{
	struct server *server = c->options.server;

	c->pipeline = pipeline;
	lane_set_workers(c);
	int r = server->lock_fd >= 0 ? server_listen(server, text, size) : 0;
	if (r < 0)
		return r;
	r = loop_watch(c->loop, &c->accepting, server->fd, EPOLLIN, accept_ready);
	if (r < 0) {
		snprintf(text, size, "watching the socket: %s", strerror(-r));
		return r;
	}
	open_save_verdicts(&c->save);
	if (c->options.private_daemon)
		loop_timer(c->loop, &c->idle, now_ns() + FIRST_NS, idle);
	else if (c->idle_exit_ns != CONFIG_FOREVER)
		loop_timer(c->loop, &c->idle, now_ns() + c->idle_exit_ns, idle);
	return 0;
}

int control_reload(struct control *c, const struct config *config, char *text, size_t size)
{
	int r = roots_reload(c->roots, config, text, size);

	if (r < 0)
		return r;
	quota_set_limits(c->quota, &config->limits);
	server_open_to_all(c->options.server, config_admits_others(config));
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	c->closing = true;
	server_close(c->options.server);
	loop_unwatch(&c->accepting);
	open_stop_all(c);
	session_free_all(c);
	/* Lanes are freed, then what they used of the datasets; each waits for the one before. */
	background_free(c->lane_jobs);
	background_free(c->dataset_jobs);
	timer_stop(&c->accept_again);
	timer_stop(&c->idle);
	timer_stop(&c->drain);
	timer_stop(&c->save);
	loop_unwatch(&c->lane_events);
	charges_free(c->charges);
	quota_free(c->quota);
	roots_free(c->roots);
	fd_close(c->event_fd);
	fd_close(c->reserve_fd);
	free(c);
}
