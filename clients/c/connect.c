/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which daemon: a socket that was named is waited for and never replaced by another; else the
 * node's service; else the private daemon of the job (private.c).
 */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"

const char *fdr_system_socket = "/run/feeder/feeder.sock";

void feeder_connect_options_init(struct feeder_connect_options *options)
{
	*options = (struct feeder_connect_options){
		.size = sizeof(*options),
		.timeout_ms = 30000,
	};
}

int fdr_sleep_ms(unsigned int ms)
{
	struct timespec time = {
		.tv_sec = ms / 1000,
		.tv_nsec = (long)(ms % 1000) * (long)NS_PER_MS,
	};

	return nanosleep(&time, NULL) < 0 ? -errno : 0;
}

int fdr_socket_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: the listener's backlog is full */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return fd_steal(&fd);
}

/* ---- hello ---- */

static void connection_free(struct feeder *f)
{
	if (!f)
		return;
	fdr_registry_remove(f);
	fd_close(f->fd);
	free(f->packet);
	free(f->path);
	free(f);
}

static int connection_new(struct feeder **ret, int fd, const char *path, const char *job)
{
	struct feeder *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		fd_close(fd);
		return fdr_fail_memory();
	}
	f->fd = fd;
	list_init(&f->lanes);
	list_init(&f->link);
	snprintf(f->job, sizeof(f->job), "%s", job);
	f->path = strdup(path);
	f->packet = calloc(1, sizeof(*f->packet));
	r = f->path && f->packet ? fdr_registry_add(f) : -ENOMEM;
	if (r < 0) {
		connection_free(f);
		return fdr_fail_memory();
	}
	*ret = f;
	return 0;
}

static int hello(struct feeder *f, const struct feeder_connect_options *options)
{
	struct control_hello body = {
		.size = sizeof(body),
		.major = CONTROL_MAJOR,
		.minor = CONTROL_MINOR,
		.version = FEEDER_VERSION,
	};
	struct fdr_call call = {
		.type = CONTROL_HELLO,
		.body = &body,
		.size = sizeof(body),
		.timeout_ms = options->timeout_ms,
	};
	const char *program = options->program ? options->program : program_invocation_short_name;
	int r;

	snprintf(body.program, sizeof(body.program), "%s", program);
	r = fdr_call(f, &call);
	if (r < 0)
		return r;
	r = fdr_reply(f, &body, sizeof(body), NULL, NULL);
	control_packet_close(f->packet);
	if (r < 0)
		return r;
	body.version[sizeof(body.version) - 1] = '\0';
	if (body.major != CONTROL_MAJOR)
		return fdr_fail(-EPROTO,
			"the daemon at %s (version %s) speaks protocol %u.%u, this library "
			"(" FEEDER_VERSION ") speaks %u.x: use versions of the same major",
			f->path, body.version, body.major, body.minor, CONTROL_MAJOR);
	snprintf(f->version, sizeof(f->version), "%s", body.version);
	f->private_daemon = body.private_daemon != 0;
	return 0;
}

int fdr_hello(struct feeder **ret, int fd, const char *path, const char *job,
	const struct feeder_connect_options *options)
{
	struct feeder *f = NULL;
	int r = connection_new(&f, fd, path, job);

	if (r < 0)
		return r;
	r = hello(f, options);
	if (r < 0) {
		connection_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

/* ---- the choice ---- */

static bool may_come(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN;
}

static int fail_socket(int code, int error, const char *path, int timeout_ms)
{
	if (error == -ENAMETOOLONG)
		return fdr_fail(code, "the socket path %s is longer than the kernel allows", path);
	if (code == -ETIMEDOUT)
		return fdr_fail(code,
			"no daemon at %s within %d ms (%s): start feederd --socket %s, or unset "
			"FEEDER_SOCKET",
			path, timeout_ms, strerror(-error), path);
	return fdr_fail(code, "connecting to the daemon at %s failed: %s", path, strerror(-error));
}

static int connect_named(struct feeder **ret, const char *path, const char *job,
	const struct feeder_connect_options *options)
{
	uint64_t deadline = now_ns() + (uint64_t)options->timeout_ms * NS_PER_MS;

	for (;;) {
		int fd = fdr_socket_connect(path);

		if (fd >= 0)
			return fdr_hello(ret, fd, path, job, options);
		if (!may_come(fd))
			return fail_socket(fd, fd, path, 0);
		if (now_ns() >= deadline)
			return fail_socket(-ETIMEDOUT, fd, path, options->timeout_ms);
		if (fdr_sleep_ms(10) < 0)
			return fdr_fail(-EINTR, "interrupted by a signal");
	}
}

static void notice(const struct feeder_connect_options *options, int error)
{
	char line[256];

	snprintf(line, sizeof(line),
		"the daemon at %s refuses (%s): using a private daemon instead", fdr_system_socket,
		strerror(-error));
	if (options->notice)
		options->notice(options->context, line);
	else
		fprintf(stderr, "feeder: %s\n", line);
}

/* 0 connected, 1 not there or refusing (said), negative: it is there and failed. */
static int connect_system(
	struct feeder **ret, const char *job, const struct feeder_connect_options *options)
{
	int fd = fdr_socket_connect(fdr_system_socket);
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return 1;
	if (fd == -EAGAIN) /* it is there, and many ask at once */
		return connect_named(ret, fdr_system_socket, job, options);
	r = fd < 0 ? fd : fdr_hello(ret, fd, fdr_system_socket, job, options);
	if (r == -EACCES || r == -EPERM || r == -ECONNREFUSED) {
		notice(options, r);
		return 1;
	}
	return fd < 0 ? fail_socket(fd, fd, fdr_system_socket, 0) : r;
}

int feeder_connect(struct feeder **ret, const struct feeder_connect_options *given)
{
	struct feeder_connect_options options;
	char job[CONTROL_JOB_MAX];
	const char *path;
	int r;

	feeder_connect_options_init(&options);
	r = given ? fdr_struct_in(&options, sizeof(options), given, "feeder_connect_options") : 0;
	if (r < 0)
		return r;
	if (options.timeout_ms < 0)
		return fdr_fail(-EINVAL, "connect options: timeout_ms is negative");
	if (options.fresh && options.socket)
		return fdr_fail(-EINVAL, "connect options: socket and fresh exclude each other");
	fdr_job_find(job, options.job);
	path = options.socket ? options.socket : getenv("FEEDER_SOCKET");
	if (options.fresh)
		return fdr_private_connect(ret, job, &options);
	if (path && path[0])
		return connect_named(ret, path, job, &options);
	r = connect_system(ret, job, &options);
	return r == 1 ? fdr_private_connect(ret, job, &options) : r;
}

void feeder_disconnect(struct feeder *f)
{
	if (!f)
		return;
	/* the socket's end closes the daemon's side of every lane at once */
	f->fd = fd_close(f->fd);
	if (!f->dead)
		f->dead = -EPIPE;
	while (!list_empty(&f->lanes))
		feeder_lane_close(CONTAINER_OF(f->lanes.next, struct feeder_lane, link));
	connection_free(f);
}

const char *feeder_job(const struct feeder *f)
{
	return f->job;
}

int feeder_is_private(const struct feeder *f)
{
	return f->private_daemon;
}

const char *feeder_socket_path(const struct feeder *f)
{
	return f->path;
}

int feeder_fd(const struct feeder *f)
{
	return f->forked ? fdr_fail_forked() : f->fd;
}
