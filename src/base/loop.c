/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop. */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define EVENTS_MAX 64

struct loop {
	int epoll_fd;
	struct list timers;                    /* sorted by at_ns */
	struct epoll_event events[EVENTS_MAX]; /* of this round; .data.ptr NULL once unwatched */
	int event_count;
	bool stopped;
	int code;
};

int loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	list_init(&loop->timers);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int error = errno;

		free(loop);
		return -error;
	}
	*ret = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	fd_close(loop->epoll_fd);
	free(loop);
}

int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
	void (*ready)(struct watch *watch, uint32_t events))
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	watch->loop = loop;
	watch->fd = fd;
	watch->ready = ready;
	return 0;
}

int watch_events(struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(watch->loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) < 0 ? -errno : 0;
}

void loop_unwatch(struct watch *watch)
{
	struct loop *loop = watch->loop;

	if (!loop)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	for (int i = 0; i < loop->event_count; i++) {
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
	}
	watch->loop = NULL;
}

void loop_timer(
	struct loop *loop, struct timer *timer, uint64_t at_ns, void (*fire)(struct timer *timer))
{
	struct list *pos;

	timer_stop(timer);
	pos = loop->timers.next;
	timer->loop = loop;
	timer->at_ns = at_ns;
	timer->fire = fire;
	while (pos != &loop->timers && CONTAINER_OF(pos, struct timer, link)->at_ns <= at_ns)
		pos = pos->next;
	list_add_before(&timer->link, pos);
}

void timer_stop(struct timer *timer)
{
	if (timer_armed(timer))
		list_remove(&timer->link);
	else
		assert(!timer->link.next || list_empty(&timer->link));
	timer->loop = NULL;
}

bool timer_armed(const struct timer *timer)
{
	return timer->loop != NULL;
}

/* Milliseconds until the first timer, rounded up, within limit_ms (-1: none). */
static int wait_ms(const struct loop *loop, int limit_ms)
{
	if (list_empty(&loop->timers))
		return limit_ms;
	uint64_t now = now_ns();
	uint64_t at = CONTAINER_OF(loop->timers.next, struct timer, link)->at_ns;
	uint64_t ms = at <= now ? 0 : (at - now + NS_PER_MS - 1) / NS_PER_MS;
	if (limit_ms >= 0 && ms > (uint64_t)limit_ms)
		return limit_ms;
	return ms > 3600000 ? 3600000 : (int)ms;
}

/* Timers that are due now; those armed by callbacks wait for the next round. */
static void fire_timers(struct loop *loop)
{
	uint64_t now = now_ns();
	struct list due;

	list_init(&due);
	while (!list_empty(&loop->timers)) {
		struct timer *timer = CONTAINER_OF(loop->timers.next, struct timer, link);

		if (timer->at_ns > now)
			break;
		list_remove(&timer->link);
		list_append(&due, &timer->link);
	}
	for (struct list *l = list_pop(&due); l; l = list_pop(&due)) {
		struct timer *timer = CONTAINER_OF(l, struct timer, link);

		timer->loop = NULL;
		timer->fire(timer);
	}
}

int loop_once(struct loop *loop, int timeout_ms)
{
	int n = epoll_wait(loop->epoll_fd, loop->events, EVENTS_MAX, wait_ms(loop, timeout_ms));

	if (n < 0 && errno != EINTR)
		return -errno;
	loop->event_count = n < 0 ? 0 : n;
	for (int i = 0; i < loop->event_count; i++) {
		struct watch *watch = loop->events[i].data.ptr;

		if (watch)
			watch->ready(watch, loop->events[i].events);
	}
	loop->event_count = 0;
	fire_timers(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	loop->stopped = false;
	while (!loop->stopped) {
		int r = loop_once(loop, -1);

		if (r < 0)
			return r;
	}
	return loop->code;
}

void loop_stop(struct loop *loop, int code)
{
	loop->stopped = true;
	loop->code = code;
}
