/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections are as short as the question. A private daemon lives by its sessions, and somebody
 * who watches must not be what keeps it.
 */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delta.h"
#include "sockets.h"
#include "text.h"

#define ANSWER_MS 500

/* 0, or negative with the sentence in v->problem. */
static int look(struct view *v)
{
	struct feeder_connect_options options;
	struct feeder *f;
	char text[1024];
	int r;

	feeder_connect_options_init(&options);
	options.socket = v->socket;
	options.timeout_ms = ANSWER_MS;
	r = feeder_connect(&f, &options);
	if (r < 0) {
		text_clean(v->problem, sizeof(v->problem), feeder_last_error());
		return r;
	}
	r = snapshot_take(&v->now, f, text, sizeof(text));
	feeder_disconnect(f);
	if (r < 0) {
		text_clean(v->problem, sizeof(v->problem), text);
		return r;
	}
	v->cpus = (unsigned int)v->now.daemon[STATS_DAEMON_cpus];
	return 0;
}

static void pair(struct view *v, struct views *earlier)
{
	for (unsigned int i = 0; earlier && i < earlier->count; i++) {
		struct view *e = &earlier->rows[i];

		if (strcmp(e->socket, v->socket) || !view_ok(e) || !e->now.lanes ||
			!delta_follows(&e->now, &v->now))
			continue;
		v->before = e->now;
		v->compared = true;
		e->now.lanes = NULL;
		e->now.cases = NULL;
	}
}

static bool refuses_us(int r)
{
	return r == -EACCES || r == -EPERM || r == -ECONNREFUSED || r == -ENOENT;
}

static int find(struct socket_list *ret, const char *socket, char *text, size_t size)
{
	struct socket_places places;
	int r;

	socket_places_init(&places);
	r = socket ? sockets_one(ret, socket) : sockets_find(ret, &places);
	if (r < 0)
		snprintf(text, size, "%s: %s", socket ? socket : "looking for daemons",
			strerror(-r));
	return r;
}

int collect(struct views *ret, const char *socket, struct views *earlier, char *text, size_t size)
{
	struct views views = { .rows = NULL };
	struct socket_list list;
	int r = find(&list, socket, text, size);

	if (r < 0)
		return r;
	views.rows = calloc(list.count ? list.count : 1, sizeof(*views.rows));
	if (!views.rows)
		r = -ENOMEM;
	for (unsigned int i = 0; i < list.count && r == 0; i++) {
		struct view *v = &views.rows[views.count];

		/* stale sockets, and others' daemons, are nobody's news */
		if (!socket && !socket_alive(list.paths[i]))
			continue;
		memset(v, 0, sizeof(*v));
		memcpy(v->socket, list.paths[i], sizeof(v->socket));
		r = look(v);
		if (r == 0)
			pair(v, earlier);
		else if (socket && !socket_alive(socket))
			break; /* nobody is there */
		else if (!socket && refuses_us(r))
			v = NULL;
		views.count += v != NULL;
		r = 0;
	}
	sockets_free(&list);
	if (r < 0) {
		snprintf(text, size, "%s",
			r == -ENOMEM || !views.rows ? strerror(-r) : views.rows[0].problem);
		views_free(&views);
		return r;
	}
	*ret = views;
	return (int)views.count;
}

void views_free(struct views *views)
{
	for (unsigned int i = 0; i < views->count; i++) {
		snapshot_free(&views->rows[i].now);
		snapshot_free(&views->rows[i].before);
	}
	free(views->rows);
	*views = (struct views){ .rows = NULL };
}
