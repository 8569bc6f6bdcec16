/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's double for tests of the client: a thread that speaks protocol/control.h on a Unix
 * socket and owns rings. Batches are numbered patterns, slots are poisoned before reuse, and
 * every reply, header and descriptor can be bent by a hook before it is sent.
 *
 * Hooks run on the fake's thread. Everything else about a running fake is changed by fake_run,
 * which executes a function there.
 */
#ifndef FAKE_DAEMON_H
#define FAKE_DAEMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "protocol/ring.h"

#define FAKE_SESSIONS 8
#define FAKE_LANES    8
#define FAKE_CURSOR   24 /* "FAKE", version, epoch, step */
#define FAKE_SAMPLES  1000
#define FAKE_POISON   0xdb

struct fake;

struct fake_lane {
	bool used;
	int session;
	uint64_t id; /* unique in the process */
	uint32_t handle;
	uint32_t generation;
	uint64_t published;
	uint64_t allowed; /* publishes no further than this number */
	uint64_t epoch;
	uint64_t step;
	int payload_fd;
	int control_fd;
	int doorbell;
	struct ring_header header;
	uint8_t *payload;
	uint8_t *control;
	struct control_open_lane open; /* what the client asked for */
	uint64_t bells;
};

struct fake_config {
	uint32_t slots;    /* 0: 4 */
	uint32_t capacity; /* 0: 4 */
	uint32_t side;     /* of an image, pixels; 0: 8 */
	uint64_t steps;    /* of an epoch; 0: 5 */
	bool manual;       /* nothing is published until fake_allow */
	bool shared_map;   /* the client uses the fake's mapping: see shared-map.c */
	/* 1: the packet was answered (or not), 0: as usual, -1: close the session */
	int (*on_packet)(
		struct fake *fake, int fd, const struct control_packet *packet, void *context);
	void (*on_header)(struct ring_header *header, void *context);
	void (*on_field)(struct ring_field *field, unsigned int i, void *context);
	void (*on_reply)(struct control_lane *reply, void *context);
	void (*on_descriptor)(struct ring_descriptor *descriptor, void *context);
	void *context;
};

struct fake {
	/* constant after start */
	struct fake_config config;
	char path[108];
	int listener;
	int command;
	pthread_t thread;

	/* owned by the fake's thread */
	int sessions[FAKE_SESSIONS];
	struct fake_lane lanes[FAKE_LANES];
	struct control_packet *packet;
	bool frozen; /* serves nothing, as if stopped */
	bool stop;
	unsigned int opened; /* lanes ever */
	unsigned int closed; /* lanes closed by the client */
	unsigned int datasets_closed;
	unsigned int attached; /* sessions ever */
	unsigned int moves;    /* seeks and set epochs */
	uint64_t ids_count;
	int64_t ids_sum;

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t done;
	void (*job)(struct fake *fake, void *argument);
	void *argument;
};

/* Listens on path (NULL: a new one under /tmp). */
struct fake *fake_start(const char *path, const struct fake_config *config);
void fake_stop(struct fake *fake);
/* Runs fn on the fake's thread and waits for it. */
void fake_run(struct fake *fake, void (*fn)(struct fake *fake, void *argument), void *argument);

/* Shorthands for fake_run. */
void fake_set(struct fake *fake, void *to, const void *from, size_t size); /* a hook's context */
unsigned int fake_count(struct fake *fake, const unsigned int *counter);   /* a member of *fake */
unsigned int fake_lanes_open(struct fake *fake);
void fake_allow(struct fake *fake, uint64_t batches); /* more batches of every lane */
void fake_die(struct fake *fake);                     /* every session is closed */
void fake_freeze(struct fake *fake, bool frozen);
void fake_set_state(struct fake *fake, uint32_t state); /* of every ring, sleepers woken */
void fake_lane_error(struct fake *fake, int code, const char *text); /* event to every lane */
void fake_event(struct fake *fake, uint32_t type, const void *body, size_t size);

/* What batch n's place i holds. */
uint8_t fake_pixel(uint64_t n, uint32_t i);
int64_t fake_label(uint64_t n, uint32_t i);

/* The mapping of the ring with that lane id, for shared-map.c. */
bool fake_mapping(uint64_t id, uint8_t **ret_payload, uint8_t **ret_control);

int fake_send_error(int fd, uint32_t serial, int code, const char *text);

#endif
