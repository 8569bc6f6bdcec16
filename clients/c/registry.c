/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process has open: connections, so that fork() can kill them in the child, and the
 * names of lanes, so that each gets the lowest free number.
 *
 * The child of a fork must hold neither the socket (the daemon would not see its client die) nor
 * the doorbell; rings are not mapped there (MADV_DONTFORK). The handles' memory stays, so that
 * calls on them can answer -ECHILD.
 */
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list connections = LIST_INIT(connections);
static struct list names = LIST_INIT(names);

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	struct list *node;

	while ((node = list_pop(&connections))) {
		struct feeder *f = CONTAINER_OF(node, struct feeder, link);

		f->forked = true;
		f->fd = fd_close(f->fd);
		LIST_FOR_EACH (pos, &f->lanes) {
			struct feeder_lane *lane = CONTAINER_OF(pos, struct feeder_lane, link);

			lane->doorbell = fd_close(lane->doorbell);
		}
	}
	while (list_pop(&names))
		;
	pthread_mutex_unlock(&lock);
}

static int atfork_error;

static void install(void)
{
	atfork_error = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int fdr_registry_add(struct feeder *f)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	if (atfork_error)
		return -atfork_error;
	pthread_mutex_lock(&lock);
	list_append(&connections, &f->link);
	pthread_mutex_unlock(&lock);
	return 0;
}

void fdr_registry_remove(struct feeder *f)
{
	pthread_mutex_lock(&lock);
	list_remove(&f->link);
	pthread_mutex_unlock(&lock);
}

static bool name_taken(const char *name)
{
	LIST_FOR_EACH (pos, &names) {
		if (strcmp(CONTAINER_OF(pos, struct feeder_lane, name_link)->name, name) == 0)
			return true;
	}
	return false;
}

/* Longest path that a name holds whole, beside kind, number and separators. */
#define NAME_PATH_MAX 290

void fdr_name_take(struct feeder_lane *lane, const char *kind, const char *path)
{
	char shown[NAME_PATH_MAX + 1];
	size_t length = strlen(path);

	if (length <= NAME_PATH_MAX)
		snprintf(shown, sizeof(shown), "%s", path);
	else
		snprintf(shown, sizeof(shown), "#%016llx…%s",
			(unsigned long long)fdr_hash(FDR_HASH_SEED, path, length),
			path + length - (NAME_PATH_MAX - 20));
	pthread_mutex_lock(&lock);
	for (unsigned int k = 0;; k++) {
		snprintf(lane->name, sizeof(lane->name), "%s:%s:%u", kind, shown, k);
		if (!name_taken(lane->name))
			break;
	}
	list_append(&names, &lane->name_link);
	pthread_mutex_unlock(&lock);
}

void fdr_name_give(struct feeder_lane *lane)
{
	pthread_mutex_lock(&lock);
	list_remove(&lane->name_link);
	pthread_mutex_unlock(&lock);
}
