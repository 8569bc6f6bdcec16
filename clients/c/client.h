/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libfeeder's objects know of one another. Nothing here is public; names are fdr_.
 *
 * A connection is a socket, a list of lanes and the packet that was received last. A lane is a
 * mapped ring, a doorbell and what the consumer holds. Threads: one at a time per connection, so
 * nothing is locked but the process-wide registry (registry.c), which fork() and lane names need.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "feeder/feeder.h"
#include "protocol/control.h"
#include "protocol/ring.h"

struct feeder {
	/* constant after connect */
	char *path; /* of the socket */
	char job[CONTROL_JOB_MAX];
	char version[32]; /* of the daemon */
	bool private_daemon;

	/* owned by the calling thread */
	int fd;
	int dead; /* 0, or the negative errno with which the connection ended */
	bool draining;
	uint32_t serial; /* of the last request */
	struct list lanes;
	struct control_packet *packet; /* received last */

	/* guarded by the registry's lock */
	struct list link;
	bool forked; /* set once, in the child of a fork, before any call there */
};

/* A published batch that the caller has. */
struct fdr_held {
	uint64_t number; /* 0: the slot is not held */
	struct ring_extent extents[RING_FIELDS_MAX];
};

/* One page of the dataset's paths, as the daemon sent it. */
struct fdr_paths {
	uint64_t first;
	uint32_t count;
	size_t bytes;
	uint8_t *records;
};

struct fdr_dataset {
	struct control_dataset reply;
	char *class_bytes;  /* names, NUL-terminated, one after the other */
	char **class_names; /* reply.class_count pointers into it */
	struct fdr_paths paths;
};

struct feeder_lane {
	/* constant after open */
	struct feeder *f;
	struct ring_map map;
	const struct ring_words *words;
	struct ring_field fields[RING_FIELDS_MAX]; /* checked copies */
	uint32_t field_count;
	uint32_t images; /* which field */
	uint32_t labels;
	uint64_t image_bytes; /* of one place */
	uint32_t handle;
	char name[CONTROL_NAME_MAX];
	char *path; /* of the dataset, as the caller gave it */
	int timeout_ms;
	bool moved;

	/* owned by the calling thread */
	struct fdr_dataset dataset;
	int doorbell;
	uint64_t next; /* number of the batch that feeder_next gives next */
	uint32_t generation;
	uint64_t steps;
	uint64_t steps_epoch;
	bool at_start; /* the lane stands at the beginning of at_epoch */
	uint64_t at_epoch;
	uint8_t cursor[RING_CURSOR_MAX];
	uint32_t cursor_size;
	uint64_t order_digest;
	uint64_t pixel_digest;
	uint64_t wait_ns; /* E5: copies of the telemetry words */
	uint64_t consumed;
	uint64_t last;       /* number of the lane's last batch; 0: they do not end */
	uint64_t stalled_ns; /* waited since the last batch, over calls */
	uint32_t pending;    /* serial of a seek or set epoch whose reply is still to come */
	int error;           /* of an event or a malformed ring; error_text says it */
	char error_text[CONTROL_TEXT_MAX];
	struct list link;      /* in f->lanes */
	struct fdr_held *held; /* one for each slot */

	/* guarded by the registry's lock */
	struct list name_link;
};

/* ---- error.c: the calling thread's last sentence ---- */

/* Sets the sentence and returns code. */
int fdr_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fdr_fail_memory(void);
/* A struct of the caller that begins with its size: into a copy that already holds defaults. */
int fdr_struct_in(void *copy, size_t known, const void *given, const char *what);
/* The way back: fills at most the caller's size, zeroes what this library does not know. */
int fdr_struct_out(void *given, const void *full, size_t known, const char *what);

/* ---- registry.c: what the process has open ---- */

int fdr_registry_add(struct feeder *f);
void fdr_registry_remove(struct feeder *f);
/* Finds the lowest free number for kind and path, writes and registers the lane's name. */
void fdr_name_take(struct feeder_lane *lane, const char *kind, const char *path);
void fdr_name_give(struct feeder_lane *lane);

/* ---- job.c ---- */

void fdr_job_find(char ret[CONTROL_JOB_MAX], const char *argument);
uint64_t fdr_hash(uint64_t seed, const void *bytes, size_t size);
#define FDR_HASH_SEED 0xcbf29ce484222325ull

/* ---- connect.c, private.c, spawn.c ---- */

/* "/run/feeder/feeder.sock"; tests point it elsewhere. */
extern const char *fdr_system_socket;

/* A connected, non-blocking socket, or a negative errno without a sentence. */
int fdr_socket_connect(const char *path);
/* Makes ret a connection over fd (consumed) and says hello. */
int fdr_hello(struct feeder **ret, int fd, const char *path, const char *job,
	const struct feeder_connect_options *options);
int fdr_private_connect(
	struct feeder **ret, const char *job, const struct feeder_connect_options *options);
int fdr_sleep_ms(unsigned int ms); /* 0, -EINTR */

struct fdr_spawn {
	const char *path;
	char *const *argv;
	char *const *envp;
	const void *cpu_mask;
	size_t cpu_mask_size;
};
/*
 * Starts a process that is nobody's child here: 0, or the negative errno of clone or exec. The
 * pidfd is -1 where the kernel or a sandbox gives none.
 */
int fdr_spawn(const struct fdr_spawn *spawn, pid_t *ret_pid, int *ret_pidfd);

/* ---- rpc.c ---- */

struct fdr_call {
	uint32_t type;
	const void *body;
	size_t size;
	const int *fds;
	unsigned int fd_count;
	int timeout_ms;           /* restarts whenever the daemon reports progress */
	struct feeder_lane *lane; /* whose generation the reply changes, or NULL */
	void (*progress)(void *context, uint64_t files, uint64_t directories);
	void *context;
};

/* 0 with the reply in f->packet, its descriptors included; else a negative errno and sentence. */
int fdr_call(struct feeder *f, const struct fdr_call *call);
/* The reply's struct; with tail, what follows it. -EPROTO. */
int fdr_reply(
	struct feeder *f, void *ret, size_t size, const uint8_t **ret_tail, size_t *ret_tail_size);
/* Descriptor i of the reply, now the caller's; -1 if it came without. */
int fdr_take_fd(struct feeder *f, unsigned int i);
/* Handles what waits on the socket, without blocking. Afterwards f->dead tells. */
void fdr_dispatch(struct feeder *f);
/* The same, after waiting up to timeout_ms for something to come. 0, -EINTR. */
int fdr_dispatch_wait(struct feeder *f, int timeout_ms);
/* Sends CONTROL_CLOSE and does not wait. */
void fdr_send_close(struct feeder *f, uint32_t lane, uint32_t dataset);
/* -ECHILD in a forked child, -EPIPE after the daemon's end, 0. */
int fdr_alive(struct feeder *f);
int fdr_fail_forked(void);
int fdr_fail_dead(struct feeder *f);

/* ---- dataset.c, config.c, lane.c, cursor.c ---- */

int fdr_dataset_open(struct fdr_dataset *ret, struct feeder *f, const char *path,
	const struct feeder_lane_config *config);
void fdr_dataset_deinit(struct fdr_dataset *dataset);
/* The operations, parameters and numbers of the open-lane message; not names, not handles. */
int fdr_config_message(struct control_open_lane *ret, const struct feeder_lane_config *config);
/* The answer to seek and set epoch: drops what was prefetched. -EPROTO. */
int fdr_lane_moved(struct feeder_lane *lane, const struct control_lane *reply);
/* Ends the lane: keeps code and sentence for later calls; returns code. */
int fdr_lane_fail(struct feeder_lane *lane, int code, const char *text);
struct feeder_lane *fdr_lane_find(struct feeder *f, uint32_t handle);

/* ---- next.c, wait.c, stall.c ---- */

/* 1: batch lane->next is published; 0: not yet; -EPROTO: the word is impossible. */
int fdr_available(struct feeder_lane *lane);
/* Waits for lane->next: 1, or a negative errno with its sentence. */
int fdr_wait(struct feeder_lane *lane, int timeout_ms, uint64_t *ret_wait_ns);
/* Gives batch number back to the daemon, whether the caller has seen it or not. */
void fdr_give_back(struct feeder_lane *lane, uint64_t number);
void fdr_doorbell(struct feeder_lane *lane);
/* -ETIMEDOUT with a sentence that says what the daemon was doing. */
int fdr_fail_stalled(struct feeder_lane *lane, uint64_t waited_ns);

#endif
