/* SPDX-License-Identifier: Apache-2.0 */
/* One read on its way. */
#include "reader/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "reader/backend.h"
#include "reader/faults.h"

#define READ_MAX    (1u << 30) /* the kernel gives at most 2 GiB - 4 KiB a call */
#define SPINS_MAX   32
#define DELAY_NS    (10 * NS_PER_MS) /* before the first repetition; four times as much each time */
#define DELAY_MAX   NS_PER_SEC
#define REOPENS_MAX 1

void operation_begin(struct operation *op, struct read_request *req, uint64_t now)
{
	size_t length = strlen(req->path);

	op->request = req;
	op->cancelled = false;
	op->outside = false;
	op->deadline_ns = req->deadline_ns;
	op->started_ns = now;
	op->tree = req->tree;
	op->bytes = req->bytes;
	op->offset = req->offset;
	op->length = req->length;
	op->file_size = req->file_size;
	op->mtime_ns = req->mtime_ns;
	op->dirfd = req->tree->dirfd;
	op->self = length == 0;
	op->how = (struct open_how){
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	op->stage = OPERATION_OPEN;
	op->opened_ns = 0;
	op->fd = -1;
	op->got = 0;
	op->steps = op->spins = op->retries = op->reopens = op->shortened = 0;
	op->cancel_sent = op->blocking = op->plain = false;
	op->stuck = op->was_stuck = op->held = false;
	fault_set(&op->fault, FEEDER_STATUS_OK, 0, "%s", "");
	if (op->self) {
		snprintf(op->path, sizeof(op->path), "/proc/self/fd/%d", op->dirfd);
		op->dirfd = AT_FDCWD;
		op->how.resolve = 0;
	} else if (length < sizeof(op->path)) {
		memcpy(op->path, req->path, length + 1);
	} else {
		fault_set(&op->fault, FEEDER_STATUS_MISSING, ENAMETOOLONG, "the path has %zu bytes",
			length);
		op->stage = OPERATION_DONE;
	}
	if (op->bytes->capacity < op->length) {
		fault_set(&op->fault, FEEDER_STATUS_INTERNAL, EINVAL,
			"a buffer of %zu bytes for a read of %" PRIu64, op->bytes->capacity,
			op->length);
		op->stage = OPERATION_DONE;
	}
	if (op->thread->reader->config.faults)
		op->fault_key = faults_key(op->thread->reader->config.faults, req);
}

size_t operation_want(const struct operation *op)
{
	uint64_t left = op->length - op->got;
	size_t want = left < READ_MAX ? (size_t)left : READ_MAX;
	const struct reader_faults *faults = op->thread->reader->config.faults;

	return faults ? faults_shorten(faults, op, want) : want;
}

void *operation_target(const struct operation *op)
{
	return op->bytes->data + op->got;
}

ssize_t operation_call(struct operation *op)
{
	ssize_t rc;

	if (op->stage == OPERATION_OPEN)
		rc = syscall(SYS_openat2, op->dirfd, op->path, &op->how, sizeof(op->how));
	else
		rc = pread(op->fd, operation_target(op), operation_want(op),
			(off_t)(op->offset + op->got));
	return rc < 0 ? -errno : rc;
}

static void close_file(struct operation *op)
{
	if (op->fd >= 0)
		op->thread->open_files--;
	op->fd = fd_close(op->fd);
}

/* Whether nobody waits for the bytes any more. */
static bool withdrawn(struct operation *op)
{
	struct reader *r = op->thread->reader;

	pthread_mutex_lock(&r->lock);
	bool gone = !op->request || op->cancelled;
	pthread_mutex_unlock(&r->lock);
	return gone;
}

static int status_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return FEEDER_STATUS_MISSING;
	case EACCES:
	case EPERM:
		return FEEDER_STATUS_NO_PERMISSION;
	case EXDEV:
		return FEEDER_STATUS_OUTSIDE_ROOT;
	case ENXIO: /* a socket, or a device without a driver */
	case ENODEV:
	case EISDIR:
		return FEEDER_STATUS_NOT_REGULAR;
	default:
		return FEEDER_STATUS_READ_ERROR;
	}
}

static bool is_transient(int error)
{
	switch (error) {
	case EINTR: /* these three only after SPINS_MAX repetitions */
	case EAGAIN:
	case ECANCELED:
	case EIO:
	case ESTALE:
	case ENFILE:
	case EMFILE:
	case ETIMEDOUT:
	case ENOMEM:
		return true;
	default:
		return false;
	}
}

static void wait_for(struct operation *op, uint64_t delay, enum operation_stage resume)
{
	op->due_ns = now_ns() + delay;
	op->resume = resume;
	op->stage = OPERATION_WAIT;
	op->spins = 0;
}

static void give_up(struct operation *op, int error, const char *verb)
{
	const char *name = strerrorname_np(error);
	char number[16];

	if (!name) {
		snprintf(number, sizeof(number), "error %d", error);
		name = number;
	}
	if (op->retries > 0)
		fault_set(&op->fault, status_of(error), error, "%s when %s, after %u %s", name,
			verb, op->retries, op->retries == 1 ? "repetition" : "repetitions");
	else
		fault_set(&op->fault, status_of(error), error, "%s when %s", name, verb);
	op->stage = OPERATION_DONE;
}

/*
 * The call of the stage failed: again at once, again after a delay, or never. A file that went
 * stale (replaced on a file server) is opened anew and read from its start, so what is delivered
 * always comes from one file.
 */
static void fail(struct operation *op, int error)
{
	const char *verb = op->stage == OPERATION_OPEN ? "opening" : "reading";
	bool files = error == EMFILE || error == ENFILE;

	if (error == EAGAIN || error == EINTR || error == ECANCELED) {
		op->blocking = error == EAGAIN;
		if (op->spins++ < SPINS_MAX) {
			if (withdrawn(op))
				op->stage = OPERATION_DONE;
			return;
		}
	}
	if (error == ESTALE && op->fd >= 0 && op->reopens < REOPENS_MAX) {
		op->reopens++;
		op->retries++;
		op->got = 0;
		close_file(op);
		op->stage = OPERATION_OPEN;
		return;
	}
	/* Too many open files while others of ours are open: these will be closed soon. */
	if (files && op->thread->open_files > 0) {
		wait_for(op, DELAY_NS, OPERATION_OPEN);
		return;
	}
	if (is_transient(error) && op->retries < op->thread->reader->config.retries) {
		uint64_t delay = DELAY_NS << (op->retries < 8 ? 2 * op->retries : 16);

		op->retries++;
		wait_for(op, delay < DELAY_MAX ? delay : DELAY_MAX, op->stage);
		return;
	}
	give_up(op, error, verb);
}

/* Whether the opened file is the one that was indexed; sets the fault if not. */
static bool check_file(struct operation *op)
{
	struct stat st;
	int64_t mtime;

	if (fstat(op->fd, &st) < 0) {
		fail(op, errno);
		return false;
	}
	mtime = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec;
	op->stage = OPERATION_DONE;
	if (!S_ISREG(st.st_mode)) {
		fault_set(&op->fault, FEEDER_STATUS_NOT_REGULAR, 0, "it is a %s",
			S_ISDIR(st.st_mode)    ? "directory"
			: S_ISFIFO(st.st_mode) ? "FIFO"
			: S_ISCHR(st.st_mode)  ? "character device"
			: S_ISBLK(st.st_mode)  ? "block device"
					       : "socket");
	} else if (st.st_size == 0 || op->length == 0) {
		fault_set(&op->fault, FEEDER_STATUS_EMPTY, 0,
			st.st_size == 0 ? "it has 0 bytes" : "a sample of 0 bytes");
	} else if (op->mtime_ns != INT64_MIN && (uint64_t)st.st_size != op->file_size) {
		fault_set(&op->fault, FEEDER_STATUS_CHANGED, 0,
			"it has %" PRIu64 " bytes and was indexed with %" PRIu64,
			(uint64_t)st.st_size, op->file_size);
	} else if (op->mtime_ns != INT64_MIN && mtime != op->mtime_ns) {
		fault_set(&op->fault, FEEDER_STATUS_CHANGED, 0,
			"it was modified after it was indexed");
	} else {
		return true;
	}
	return false;
}

/* The path meets a link that leaves the tree: the tree's owner says where it may end. */
static ssize_t open_outside(struct operation *op, ssize_t refused)
{
	struct reader *r = op->thread->reader;
	const struct read_tree *tree = NULL;
	ssize_t fd = refused;

	pthread_mutex_lock(&r->lock);
	if (op->request && !op->cancelled && op->tree->open_outside) {
		tree = op->tree;
		op->outside = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (!tree)
		return refused;
	fd = tree->open_outside(tree, op->path);
	pthread_mutex_lock(&r->lock);
	op->outside = false;
	pthread_mutex_unlock(&r->lock);
	return fd;
}

/* The tree's descriptor is the file itself and cannot be opened again (no /proc, other rights). */
static ssize_t duplicate_self(const struct operation *op, ssize_t refused)
{
	int dirfd = -1, flags;

	if (sscanf(op->path, "/proc/self/fd/%d", &dirfd) != 1)
		return refused;
	flags = fcntl(dirfd, F_GETFL);
	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY)
		return refused;
	dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	return dirfd < 0 ? -errno : dirfd;
}

static void step_open(struct operation *op, ssize_t result)
{
	bool shared = false;

	if (!op->self && (result == -EXDEV || result == -ELOOP)) {
		result = open_outside(op, result);
	} else if (op->self && (result == -ENOENT || result == -EACCES)) {
		result = duplicate_self(op, result);
		shared = result >= 0;
	}
	if (result < 0) {
		fail(op, (int)-result);
		return;
	}
	op->fd = (int)result;
	op->thread->open_files++;
	op->opened_ns = now_ns();
	op->spins = 0;
	if (!check_file(op)) {
		if (op->stage != OPERATION_DONE)
			close_file(op);
		return;
	}
	/*
	 * O_NONBLOCK was for FIFOs. Left on, io_uring takes it that no read of the file waits: on
	 * file systems where that is wrong one read would hold up the ring, or get EAGAIN.
	 */
	if (!shared)
		(void)fcntl(op->fd, F_SETFL, 0);
	op->stage = withdrawn(op) ? OPERATION_DONE : OPERATION_READ;
}

static void step_read(struct operation *op, ssize_t result)
{
	if (result < 0) {
		fail(op, (int)-result);
		return;
	}
	op->spins = 0;
	if (result == 0) {
		fault_set(&op->fault, FEEDER_STATUS_SHORT_FILE, 0,
			"ends after %" PRIu64 " of %" PRIu64 " bytes", op->got, op->length);
		op->stage = OPERATION_DONE;
		return;
	}
	op->got += (uint64_t)result;
	if (op->got >= op->length) {
		op->stage = OPERATION_DONE;
		return;
	}
	op->shortened++;
	if (withdrawn(op))
		op->stage = OPERATION_DONE;
}

void operation_step(struct operation *op, ssize_t result)
{
	op->steps++;
	if (op->stage == OPERATION_OPEN)
		step_open(op, result);
	else
		step_read(op, result);
}

void operation_finish(struct operation *op)
{
	close_file(op);
	if (op->fault.status == FEEDER_STATUS_OK && op->got == op->length)
		memset(op->bytes->data + op->length, 0, BYTES_TAIL);
	reader_finish(op);
}
