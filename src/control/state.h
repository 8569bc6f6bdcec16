/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the control, its sessions, datasets and lanes. */
#ifndef CONTROL_STATE_H
#define CONTROL_STATE_H

#include "base/background.h"
#include "base/list.h"
#include "base/loop.h"
#include "control/charge.h"
#include "control/control.h"
#include "control/group.h"
#include "control/peer.h"
#include "control/quota.h"
#include "control/roots.h"
#include "pipeline/pipeline.h"
#include "protocol/control.h"

#define HANDLES_MAX 1024 /* datasets of one session */
#define PENDING_MAX 64   /* requests of one session on background threads */
#define TEXT_SIZE   CONTROL_TEXT_MAX

struct control {
	/* constant after start */
	struct loop *loop;
	struct control_options options;
	struct pipeline *pipeline;
	struct roots *roots;
	struct background *dataset_jobs;
	struct background *lane_jobs;
	uint64_t start_ns;
	uint64_t idle_exit_ns; /* CONFIG_FOREVER: never */

	/* owned by the loop's thread */
	struct quota *quota;
	struct charges *charges;
	struct group_table groups;
	struct list sessions;
	struct list datasets; /* struct dataset_entry */
	struct list opens;    /* struct dataset_open that runs */
	struct list lanes;    /* struct lane_record */
	struct watch accepting;
	struct watch lane_events;
	struct timer accept_again;
	struct timer reap; /* frees dead sessions */
	struct timer idle;
	struct timer drain;
	struct timer save;
	unsigned int session_count; /* those that are served */
	unsigned int refused_count; /* connections that only wait for their refusal */
	int reserve_fd;             /* given up to answer at the descriptor limit */
	bool draining;
	bool closing; /* control_free runs */
	uint64_t drain_until_ns;
	uint64_t refused;
	uint64_t protocol_errors;
	struct control_packet packet; /* the one being handled */

	/* constant after start; written from any thread */
	int event_fd;
};

struct session {
	struct list link;
	struct control *control;
	struct watch watch;
	struct timer hello_timer;
	struct peer peer;
	bool served;  /* counted in its uid's quota */
	bool greeted; /* hello done */
	bool dead;    /* waits for the reaper: nothing is sent any more */
	int refusal;  /* negative errno: the hello is answered with it */
	char refusal_text[TEXT_SIZE];
	char client[32];
	uint32_t last_handle;
	unsigned int pending;
	unsigned int handle_count;
	struct list handles; /* struct dataset_handle */
	struct list lanes;   /* struct lane_record, by session_link */
};

/* ---- session.c ---- */

/* Starts a connection; refusal < 0: only to answer its hello with text. Takes fd over. */
void session_new(struct control *c, int fd, int refusal, const char *text);
/* Ends it from anywhere: it is freed when the loop is back. */
void session_kill(struct session *s);
void session_reap(struct timer *timer);
void session_free_all(struct control *c);
int session_send(struct session *s, uint32_t type, uint32_t serial, const void *body, size_t size,
	const void *tail, size_t tail_size, const int *fds, unsigned int fd_count);
/* Answers a request of a draining daemon. */
void session_refuse_stopping(struct session *s, uint32_t serial);
/* Answers a request with an error. */
void session_refuse(struct session *s, uint32_t serial, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
uint32_t session_handle(struct session *s);

/* ---- request.c ---- */

/* Handles c->packet; an error means that the peer does not speak the protocol. */
int request_handle(struct session *s);

/* ---- open.c ---- */

/* A dataset that is open, shared by sessions that may read the same roots. */
struct dataset_entry;
struct dataset;

void open_dataset(struct session *s, const struct control_open_dataset *body);
/* NULL: no such handle. */
struct dataset_entry *open_find(struct session *s, uint32_t handle);
struct dataset *entry_dataset(struct dataset_entry *entry);
void entry_use(struct dataset_entry *entry);
void entry_drop(struct dataset_entry *entry);
bool open_close(struct session *s, uint32_t handle);
/* The session is going: its handles, and the opens that it waits for. */
void open_forget(struct session *s);
void open_stop_all(struct control *c);
void open_save_verdicts(struct timer *timer);

/* ---- lanes.c ---- */

struct lane_record {
	struct list link;         /* control's */
	struct list session_link; /* session's; unlinked once the session is gone */
	struct background_job job;
	struct control *control;
	struct session *session; /* NULL: closed; nobody is answered */
	struct dataset_entry *entry;
	struct lane *lane; /* NULL until open */
	struct watch doorbell;
	struct group_member member;
	uint32_t handle;
	uint32_t serial; /* of the open request */
	uid_t uid;
	pid_t pid;
	uint64_t bytes; /* charged, not yet given to the charges */
	uint64_t job_key;
	uint32_t worker_share;
	bool failed; /* its error has been sent */
	char client[32];
	struct control_open_lane open;

	/* owned by the background thread while the job runs */
	struct lane *made; /* becomes `lane` when the job is done */
	int result;
	char text[TEXT_SIZE];
	struct control_lane reply;
	int fds[3];
};

void lane_open(struct session *s, const struct control_open_lane *body);
struct lane_record *lane_find(struct session *s, uint32_t handle);
/* Leaves its group at once and is freed in the background. */
void lane_close(struct lane_record *record);
void lane_events(struct watch *watch, uint32_t events);
void lane_move(struct session *s, uint32_t serial, struct lane_record *record, int result,
	struct control_lane *reply, const char *text);
/* Workers that may work, from the ranks attached. */
void lane_set_workers(struct control *c);

/* ---- stats.c ---- */

void stats_answer(struct session *s, uint32_t serial);

/* ---- control.c ---- */

/* The number of sessions changed. */
void control_sessions_changed(struct control *c);
void control_check_drained(struct control *c);

#endif
