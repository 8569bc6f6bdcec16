/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: sessions, datasets, lanes, quotas, statistics; everything between the socket and the
 * pipeline. It runs on one thread, the loop's, and never waits there: what may take long goes to
 * background threads. main wires it:
 *
 *	control_new → pipeline_new (callbacks below, context = the control) → control_serve →
 *	loop_run → control_free → pipeline_free
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "control/config.h"
#include "control/server.h"

struct control;
struct pipeline;

struct control_options {
	struct loop *loop;
	const struct config *config; /* looked at by control_new only */
	struct server *server;       /* bound; control listens on it and closes it */
	bool private_daemon;
	const char *cache_dir; /* of indexes; NULL: none is writable, they stay in memory */
	unsigned int cpus;     /* CPUs allowed */
	unsigned int workers;  /* threads of the pipeline */
	bool workers_literal;  /* all of them work, however many ranks are attached */
	uint64_t memory;       /* bytes that the daemon may use */
};

/* -errno with a sentence. */
int control_new(
	struct control **ret, const struct control_options *options, char *text, size_t size);
/* Accepts from now on. */
int control_serve(struct control *c, struct pipeline *pipeline, char *text, size_t size);
/* New roots and limits for what is asked from now on; on failure the old ones stay. */
int control_reload(struct control *c, const struct config *config, char *text, size_t size);
/*
 * Stops: no new tickets, what is in flight is published, clients are told. Ends the loop with 0
 * when all lanes are drained, or after 9 s.
 */
void control_drain(struct control *c);
bool control_draining(const struct control *c);
/* Closes every session and lane, and waits for them (bounded). */
void control_free(struct control *c);

/* The pipeline's callbacks: any thread. */
void control_lane_event(void *context, uint64_t lane_id);
int control_open_outside(void *context, uint32_t uid, int dirfd, const char *path, int flags);

#endif
