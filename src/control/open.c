/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets: opened on background threads, shared by sessions.
 *
 * The key of an open is what the descriptor *is* (device, inode), the options, and the set of
 * roots that its uid may read: sessions with equal keys would see the same files, so those that
 * ask while an open runs, or just after, share its result. Any later open looks at the disk
 * again, and shares the memory when it finds the same fingerprint.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/relaxed.h"
#include "base/stop.h"
#include "control/state.h"
#include "source/source.h"

#define FRESH_NS    (2 * NS_PER_SEC) /* an entry is given out again unlooked-at for this long */
#define PROGRESS_NS NS_PER_SEC
#define SAVE_NS     (60 * NS_PER_SEC)

struct open_key {
	uint64_t dev, ino;
	uint64_t dir_dev, dir_ino; /* of a list file's directory, else 0 */
	uint64_t mask;
	uint32_t generation;
	uint32_t flags;
};

struct dataset_entry {
	struct list link; /* in the control's; unlinked by entry_drop */
	struct open_key key;
	struct dataset *dataset;
	int classes_fd;     /* sealed memfd of the class names; -1: there are none */
	unsigned int users; /* handles and lanes */
	uint64_t opened_ns; /* when the disk was looked at last, at the latest */
};

struct dataset_handle {
	struct list link;
	uint32_t number;
	struct dataset_entry *entry;
};

/* A session that waits for an open. */
struct waiter {
	struct list link;
	struct session *session;
	uint32_t serial;
};

struct dataset_open {
	struct background_job job;
	struct list link;
	struct control *control;
	struct list waiters;
	struct timer progress;
	struct open_key key;
	uint64_t started_ns;

	/* constant while the job runs */
	uid_t uid;
	int fd;
	int dirfd;
	char path[CONTROL_PATH_MAX];

	/* atomic (relaxed): set by the job for the progress events, read by the loop */
	uint64_t files;
	uint64_t directories;
	/* atomic: see base/stop.h */
	atomic_bool stop;

	/* the job's until it is done */
	int result;
	char text[TEXT_SIZE];
	struct dataset *dataset;
	int classes_fd;
};

/* ---- entries ---- */

struct dataset *entry_dataset(struct dataset_entry *entry)
{
	return entry->dataset;
}

void entry_use(struct dataset_entry *entry)
{
	entry->users++;
}

struct save_job {
	struct background_job job;
	struct dataset *dataset;
};

static void run_save(struct background_job *job)
{
	struct dataset *dataset = CONTAINER_OF(job, struct save_job, job)->dataset;
	int r = dataset_save_verdicts(dataset);

	if (r < 0)
		log_warning("the verdicts of %s could not be saved: %s", dataset_display(dataset),
			strerror(-r));
	dataset_unref(dataset);
}

static void save_done(struct background_job *job)
{
	free(CONTAINER_OF(job, struct save_job, job));
}

/* So that verdicts survive a killed daemon: lanes save them when they end. */
static void save(struct control *c, struct dataset *dataset)
{
	struct save_job *save = calloc(1, sizeof(*save));

	if (!save)
		return; /* they are found again */
	save->dataset = dataset_ref(dataset);
	save->job.run = run_save;
	save->job.done = save_done;
	background_submit(c->dataset_jobs, &save->job);
}

void entry_drop(struct dataset_entry *entry)
{
	if (--entry->users > 0)
		return;
	list_remove(&entry->link);
	dataset_unref(entry->dataset);
	fd_close(entry->classes_fd);
	free(entry);
}

void open_save_verdicts(struct timer *timer)
{
	struct control *c = CONTAINER_OF(timer, struct control, save);

	LIST_FOR_EACH (l, &c->datasets)
		save(c, CONTAINER_OF(l, struct dataset_entry, link)->dataset);
	loop_timer(c->loop, &c->save, now_ns() + SAVE_NS, open_save_verdicts);
}

/* ---- handles ---- */

static struct dataset_handle *find_handle(struct session *s, uint32_t number)
{
	LIST_FOR_EACH (l, &s->handles) {
		struct dataset_handle *handle = CONTAINER_OF(l, struct dataset_handle, link);

		if (handle->number == number)
			return handle;
	}
	return NULL;
}

struct dataset_entry *open_find(struct session *s, uint32_t number)
{
	struct dataset_handle *handle = find_handle(s, number);

	return handle ? handle->entry : NULL;
}

static void close_handle(struct session *s, struct dataset_handle *handle)
{
	list_remove(&handle->link);
	s->handle_count--;
	entry_drop(handle->entry);
	free(handle);
}

bool open_close(struct session *s, uint32_t number)
{
	struct dataset_handle *handle = find_handle(s, number);

	if (handle)
		close_handle(s, handle);
	return handle != NULL;
}

/* Gives the session a handle and answers its request. */
static void answer(struct session *s, uint32_t serial, struct dataset_entry *entry)
{
	const struct dataset *d = entry->dataset;
	struct dataset_handle *handle = calloc(1, sizeof(*handle));

	if (!handle) {
		session_refuse(s, serial, -ENOMEM, "the daemon is out of memory");
		return;
	}
	handle->number = session_handle(s);
	handle->entry = entry;
	entry_use(entry);
	list_append(&s->handles, &handle->link);
	s->handle_count++;
	struct control_dataset reply = {
		.size = sizeof(reply),
		.dataset = handle->number,
		.samples = dataset_length(d),
		.class_count = dataset_class_count(d),
		.index_used = dataset_index_used(d),
	};
	memcpy(reply.fingerprint, dataset_fingerprint(d), sizeof(reply.fingerprint));
	snprintf(reply.format, sizeof(reply.format), "%s", dataset_format(d));
	session_send(s, CONTROL_OPEN_DATASET | CONTROL_REPLY, serial, &reply, sizeof(reply), NULL,
		0, &entry->classes_fd, entry->classes_fd >= 0 ? 1 : 0);
}

/* ---- the job ---- */

/* The class names, NUL-terminated, in a memfd that nobody can change. */
static int make_classes(struct dataset_open *open)
{
	uint32_t count = dataset_class_count(open->dataset);
	CLEANUP(fd_closep) int fd = -1;

	if (count == 0)
		return 0;
	fd = memfd_create("feeder-classes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *f = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
	if (!f)
		return -errno;
	for (uint32_t i = 0; i < count; i++) {
		const char *name = dataset_class_name(open->dataset, i);

		fwrite(name, 1, strlen(name) + 1, f);
	}
	if (fclose(f) != 0 || fcntl(fd, F_ADD_SEALS,
				      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	open->classes_fd = fd_steal(&fd);
	return 0;
}

static bool on_progress(void *context, uint64_t files, uint64_t directories)
{
	struct dataset_open *open = context;

	relaxed_store_u64(&open->files, files);
	relaxed_store_u64(&open->directories, directories);
	return stop_asked(&open->stop);
}

static int on_outside(void *context, int dirfd, const char *path, int flags)
{
	struct dataset_open *open = context;

	return roots_open_outside(open->control->roots, open->uid, dirfd, path, flags);
}

static void on_warning(void *context, const char *sentence)
{
	(void)context;
	log_warning("%s", sentence);
}

static bool is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static void run_open(struct background_job *job)
{
	struct dataset_open *open = CONTAINER_OF(job, struct dataset_open, job);
	struct dataset_options options = {
		.hidden = open->key.flags & CONTROL_DATASET_HIDDEN,
		.allow_empty = open->key.flags & CONTROL_DATASET_ALLOW_EMPTY,
		.rebuild = open->key.flags & CONTROL_DATASET_REBUILD,
		.cache_dir = open->control->options.cache_dir,
		.open_outside = on_outside,
		.progress = on_progress,
		.warning = on_warning,
		.context = open,
	};

	open->result = roots_judge(open->control->roots, open->uid, open->fd, open->dirfd,
		open->path, open->text, sizeof(open->text));
	if (open->result < 0)
		return;
	int dirfd = is_directory(open->fd) ? -1 : open->dirfd;
	open->result = dataset_open(&open->dataset, open->fd, dirfd, open->path, &options,
		open->text, sizeof(open->text));
	if (open->result < 0)
		return;
	open->result = make_classes(open);
	if (open->result < 0)
		snprintf(open->text, sizeof(open->text), "the memfd of class names: %s",
			strerror(-open->result));
}

/* ---- its end ---- */

static bool same_key(const struct open_key *a, const struct open_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The entry of the dataset just opened: one that is already there if it is equal. */
static struct dataset_entry *find_or_make_entry(struct dataset_open *open)
{
	struct control *c = open->control;

	LIST_FOR_EACH (l, &c->datasets) {
		struct dataset_entry *entry = CONTAINER_OF(l, struct dataset_entry, link);

		if (same_key(&entry->key, &open->key) &&
			!memcmp(dataset_fingerprint(entry->dataset),
				dataset_fingerprint(open->dataset), FINGERPRINT_SIZE)) {
			entry->opened_ns = open->started_ns;
			return entry;
		}
	}
	struct dataset_entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = open->key;
	entry->dataset = dataset_ref(open->dataset);
	entry->classes_fd = fd_steal(&open->classes_fd);
	entry->opened_ns = open->started_ns;
	list_append(&c->datasets, &entry->link);
	return entry;
}

static void answer_waiters(struct dataset_open *open, struct dataset_entry *entry)
{
	for (struct list *l = list_pop(&open->waiters); l; l = list_pop(&open->waiters)) {
		struct waiter *waiter = CONTAINER_OF(l, struct waiter, link);

		waiter->session->pending--;
		if (entry)
			answer(waiter->session, waiter->serial, entry);
		else if (open->result < 0)
			session_refuse(waiter->session, waiter->serial, open->result, "%s",
				open->text[0] ? open->text : strerror(-open->result));
		else
			session_refuse(waiter->session, waiter->serial, -ENOMEM,
				"the daemon is out of memory");
		free(waiter);
	}
}

static void open_done(struct background_job *job)
{
	struct dataset_open *open = CONTAINER_OF(job, struct dataset_open, job);
	struct dataset_entry *entry = NULL;

	timer_stop(&open->progress);
	list_remove(&open->link);
	open->key.flags &= ~CONTROL_DATASET_REBUILD; /* how it was found, not what it is */
	if (open->result == 0)
		entry = find_or_make_entry(open);
	if (entry)
		entry_use(entry); /* until all are answered, or for nobody */
	answer_waiters(open, entry);
	if (entry)
		entry_drop(entry);
	dataset_unref(open->dataset);
	fd_close(open->classes_fd);
	fd_close(open->fd);
	fd_close(open->dirfd);
	free(open);
}

static void send_progress(struct timer *timer)
{
	struct dataset_open *open = CONTAINER_OF(timer, struct dataset_open, progress);
	struct control_progress body = {
		.size = sizeof(body),
		.files = relaxed_load_u64(&open->files),
		.directories = relaxed_load_u64(&open->directories),
	};

	LIST_FOR_EACH (l, &open->waiters) {
		struct waiter *waiter = CONTAINER_OF(l, struct waiter, link);

		session_send(waiter->session, CONTROL_PROGRESS, waiter->serial, &body, sizeof(body),
			NULL, 0, NULL, 0);
	}
	loop_timer(open->control->loop, &open->progress, now_ns() + PROGRESS_NS, send_progress);
}

/* ---- requests ---- */

/* What the descriptor is, without asking a server that may not answer. */
static int identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return -errno;
	*ret_dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	*ret_ino = st.stx_ino;
	return 0;
}

static int make_key(struct session *s, uint32_t flags, struct open_key *ret)
{
	const struct control_packet *packet = &s->control->packet;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = identify(packet->fds[0], &ret->dev, &ret->ino);
	if (r == 0 && packet->fd_count > 1)
		r = identify(packet->fds[1], &ret->dir_dev, &ret->dir_ino);
	ret->mask = roots_mask(s->control->roots, s->peer.uid);
	ret->generation = roots_generation(s->control->roots);
	ret->flags = flags;
	return r;
}

static struct dataset_entry *find_fresh(struct control *c, const struct open_key *key)
{
	LIST_FOR_EACH (l, &c->datasets) {
		struct dataset_entry *entry = CONTAINER_OF(l, struct dataset_entry, link);

		if (same_key(&entry->key, key) && now_ns() - entry->opened_ns < FRESH_NS)
			return entry;
	}
	return NULL;
}

static struct dataset_open *find_running(struct control *c, const struct open_key *key)
{
	LIST_FOR_EACH (l, &c->opens) {
		struct dataset_open *open = CONTAINER_OF(l, struct dataset_open, link);

		if (same_key(&open->key, key) && !stop_asked(&open->stop))
			return open;
	}
	return NULL;
}

static struct dataset_open *start_open(
	struct session *s, const struct open_key *key, const char *path)
{
	struct control *c = s->control;
	struct dataset_open *open = calloc(1, sizeof(*open));

	if (!open)
		return NULL;
	open->control = c;
	open->key = *key;
	open->uid = s->peer.uid;
	open->started_ns = now_ns();
	open->fd = fd_steal(&c->packet.fds[0]);
	open->dirfd = c->packet.fd_count > 1 ? fd_steal(&c->packet.fds[1]) : -1;
	open->classes_fd = -1;
	snprintf(open->path, sizeof(open->path), "%s", path);
	list_init(&open->waiters);
	list_append(&c->opens, &open->link);
	loop_timer(c->loop, &open->progress, now_ns() + PROGRESS_NS, send_progress);
	open->job.run = run_open;
	open->job.done = open_done;
	background_submit(c->dataset_jobs, &open->job);
	return open;
}

static bool room_for_open(struct session *s, uint32_t serial)
{
	if (s->pending >= PENDING_MAX)
		session_refuse(s, serial, -EBUSY, "%u requests of this session are open already",
			s->pending);
	else if (s->handle_count + s->pending >= HANDLES_MAX)
		session_refuse(
			s, serial, -EMFILE, "this session has %u datasets open", s->handle_count);
	else
		return true;
	return false;
}

void open_dataset(struct session *s, const struct control_open_dataset *body)
{
	static const uint32_t known =
		CONTROL_DATASET_HIDDEN | CONTROL_DATASET_ALLOW_EMPTY | CONTROL_DATASET_REBUILD;
	struct control *c = s->control;
	uint32_t serial = c->packet.header.serial;
	bool rebuild = body->flags & CONTROL_DATASET_REBUILD;
	struct open_key key;

	if (body->flags & ~known) {
		session_refuse(s, serial, -EINVAL, "%s: unknown dataset flags 0x%x", body->path,
			body->flags & ~known);
		return;
	}
	if (!room_for_open(s, serial))
		return;
	int r = make_key(s, body->flags, &key);
	if (r < 0) {
		session_refuse(s, serial, r, "%s: %s", body->path, strerror(-r));
		return;
	}
	struct dataset_entry *entry = rebuild ? NULL : find_fresh(c, &key);
	if (entry) {
		answer(s, serial, entry);
		return;
	}
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	struct dataset_open *open = waiter ? find_running(c, &key) : NULL;
	if (waiter && !open)
		open = start_open(s, &key, body->path);
	if (!open) {
		free(waiter);
		session_refuse(s, serial, -ENOMEM, "the daemon is out of memory");
		return;
	}
	waiter->session = s;
	waiter->serial = serial;
	s->pending++;
	list_append(&open->waiters, &waiter->link);
}

void open_forget(struct session *s)
{
	LIST_FOR_EACH (l, &s->control->opens) {
		struct dataset_open *open = CONTAINER_OF(l, struct dataset_open, link);

		LIST_FOR_EACH_SAFE (k, tmp, &open->waiters) {
			struct waiter *waiter = CONTAINER_OF(k, struct waiter, link);

			if (waiter->session != s)
				continue;
			list_remove(&waiter->link);
			free(waiter);
		}
		if (list_empty(&open->waiters))
			stop_ask(&open->stop);
	}
	LIST_FOR_EACH_SAFE (l, tmp, &s->handles)
		close_handle(s, CONTAINER_OF(l, struct dataset_handle, link));
}

void open_stop_all(struct control *c)
{
	LIST_FOR_EACH (l, &c->opens)
		stop_ask(&CONTAINER_OF(l, struct dataset_open, link)->stop);
}
