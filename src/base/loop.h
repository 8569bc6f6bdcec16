/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread's event loop: epoll for descriptors, a sorted list for timers, all on
 * CLOCK_MONOTONIC. Everything here belongs to the thread that runs the loop. A watch or timer may
 * be removed at any time, also by its own callback; it is then not called again, even if its
 * event had already been fetched.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"

struct loop;

/* A descriptor that is waited for; embedded in its owner, zeroed before loop_watch. */
struct watch {
	struct loop *loop; /* NULL: not watched */
	int fd;            /* the owner's: closed by it, after loop_unwatch */
	void (*ready)(struct watch *watch, uint32_t events);
};

struct timer {
	struct list link;  /* in the loop's list while armed */
	struct loop *loop; /* NULL: never armed */
	uint64_t at_ns;
	void (*fire)(struct timer *timer);
};

/* 0, -EMFILE, -ENOMEM. */
int loop_new(struct loop **ret);
/* All watches and timers must have been removed. */
void loop_free(struct loop *loop);

int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
	void (*ready)(struct watch *watch, uint32_t events));
/* Changes the events waited for. */
int watch_events(struct watch *watch, uint32_t events);
void loop_unwatch(struct watch *watch);

/* Arms (or arms anew) for the time at_ns; fires once. */
void loop_timer(
	struct loop *loop, struct timer *timer, uint64_t at_ns, void (*fire)(struct timer *timer));
void timer_stop(struct timer *timer);
bool timer_armed(const struct timer *timer);

/* Runs until loop_stop; returns its code, or a negative errno of epoll. */
int loop_run(struct loop *loop);
/* One round: waits up to timeout_ms (-1: for ever) and dispatches. For tests. */
int loop_once(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop, int code);

#endif
