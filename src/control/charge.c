/* SPDX-License-Identifier: Apache-2.0 */
/* Charges that outlive their lanes. */
#include "control/charge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"

struct charge {
	struct list link;
	int wd;
	uid_t uid;
	uint64_t bytes;
};

struct charges {
	struct watch watch;
	int fd; /* inotify; -1: not to be had */
	int error;
	struct quota *quota;
	struct list held;
};

static void give_back(struct charges *charges, int wd)
{
	LIST_FOR_EACH (l, &charges->held) {
		struct charge *charge = CONTAINER_OF(l, struct charge, link);

		if (charge->wd != wd)
			continue;
		list_remove(&charge->link);
		quota_give_bytes(charges->quota, charge->uid, charge->bytes);
		free(charge);
		return;
	}
}

static void ready(struct watch *watch, uint32_t events)
{
	struct charges *charges = CONTAINER_OF(watch, struct charges, watch);
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t length;

	(void)events;
	while ((length = read(charges->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < length;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			/* After it no event with this number can come. */
			if (event->mask & IN_IGNORED)
				give_back(charges, event->wd);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

int charges_new(struct charges **ret, struct loop *loop, struct quota *quota)
{
	struct charges *charges = calloc(1, sizeof(*charges));

	if (!charges)
		return -ENOMEM;
	list_init(&charges->held);
	charges->quota = quota;
	charges->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (charges->fd < 0)
		charges->error = -errno;
	else
		charges->error = loop_watch(loop, &charges->watch, charges->fd, EPOLLIN, ready);
	*ret = charges;
	return 0;
}

void charges_free(struct charges *charges)
{
	if (!charges)
		return;
	LIST_FOR_EACH_SAFE (l, tmp, &charges->held) {
		list_remove(l);
		free(CONTAINER_OF(l, struct charge, link));
	}
	loop_unwatch(&charges->watch);
	fd_close(charges->fd);
	free(charges);
}

int charge_watch(struct charges *charges, uid_t uid, uint64_t bytes, int fd)
{
	char path[32];

	if (charges->error < 0)
		return charges->error;
	struct charge *charge = calloc(1, sizeof(*charge));
	if (!charge)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	charge->wd = inotify_add_watch(charges->fd, path, IN_DELETE_SELF);
	if (charge->wd < 0) {
		int error = errno;

		free(charge);
		return -error;
	}
	charge->uid = uid;
	charge->bytes = bytes;
	list_append(&charges->held, &charge->link);
	return 0;
}
