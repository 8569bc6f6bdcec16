/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private daemon of (uid, job, CPU mask). Its socket's name is a hash of the three, in a
 * directory that only this uid can enter; whoever comes first starts it, under a lock file, and
 * keeps the lock until the daemon has said hello, so that the job's other ranks find it running.
 *
 * A daemon that is about to exit (its last session has gone) may accept a connection and drop
 * it: that, like a socket nobody listens to, means starting another one.
 */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/relaxed.h"

#define PRIVATE_PATH_MAX sizeof(((struct sockaddr_un *)NULL)->sun_path)
#define PRIVATE_NAME_MAX 40 /* of a file in the directory, with its slash and NUL */

struct private_daemon {
	const struct feeder_connect_options *options;
	const char *job;
	uint64_t deadline;
	cpu_set_t mask;
	char socket[PRIVATE_PATH_MAX];
	char lock[PRIVATE_PATH_MAX];
	char program[PATH_MAX];
	pid_t pid; /* of the daemon that this call started, or 0 */
	int pidfd; /* of the same, or -1 */
};

/* ---- where ---- */

static int check_directory(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fdr_fail(-errno, "the directory %s of private daemons cannot be made: %s",
			path, strerror(errno));
	if (lstat(path, &st) < 0)
		return fdr_fail(
			-errno, "the directory %s of private daemons: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return fdr_fail(-EACCES,
			"%s must be a directory of uid %u with mode 0700: remove it, or set "
			"XDG_RUNTIME_DIR",
			path, (unsigned int)geteuid());
	return 0;
}

static int find_directory(char ret[PRIVATE_PATH_MAX])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && runtime[0] == '/' && stat(runtime, &st) == 0 && st.st_uid == geteuid() &&
		strlen(runtime) + strlen("/feeder") + PRIVATE_NAME_MAX < PRIVATE_PATH_MAX)
		snprintf(ret, PRIVATE_PATH_MAX, "%s/feeder", runtime);
	else
		snprintf(ret, PRIVATE_PATH_MAX, "/tmp/feeder-%u", (unsigned int)geteuid());
	return check_directory(ret);
}

static uint64_t private_key(const struct private_daemon *d)
{
	uid_t uid = geteuid();
	uint64_t key = fdr_hash(FDR_HASH_SEED, &uid, sizeof(uid));

	key = fdr_hash(key, d->job, strlen(d->job) + 1);
	return fdr_hash(key, &d->mask, sizeof(d->mask));
}

static int find_paths(struct private_daemon *d)
{
	static unsigned int fresh_count;
	char directory[PRIVATE_PATH_MAX];
	char name[PRIVATE_NAME_MAX];
	int r = find_directory(directory);

	if (r < 0)
		return r;
	if (d->options->fresh)
		snprintf(name, sizeof(name), "%x-%x-%llx", (unsigned int)getpid(),
			relaxed_increment_u32(&fresh_count),
			(unsigned long long)(now_ns() & 0xffffffff));
	else
		snprintf(name, sizeof(name), "%016llx", (unsigned long long)private_key(d));
	if (snprintf(d->socket, sizeof(d->socket), "%s/%s.sock", directory, name) >=
			(int)sizeof(d->socket) ||
		snprintf(d->lock, sizeof(d->lock), "%s/%s.lock", directory, name) >=
			(int)sizeof(d->lock))
		return fdr_fail(-ENAMETOOLONG,
			"the socket path of a private daemon is too long: %s", directory);
	return 0;
}

/* ---- which program ---- */

static bool executable(char ret[PATH_MAX], const char *directory, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
		!realpath(path, ret))
		return false;
	return stat(ret, &st) == 0 && S_ISREG(st.st_mode) && access(ret, X_OK) == 0;
}

static bool beside_library(char ret[PATH_MAX])
{
	/* beside it (a wheel); a build tree; a prefix with lib/ or lib/TRIPLET/ */
	static const char *const names[] = {
		"feederd",
		"../../src/daemon/feederd",
		"../libexec/feederd",
		"../bin/feederd",
		"../sbin/feederd",
		"../../libexec/feederd",
		"../../bin/feederd",
		"../../sbin/feederd",
	};
	char library[PATH_MAX];
	char *slash;
	Dl_info info;

	if (!dladdr(&fdr_system_socket, &info) || !info.dli_fname ||
		!realpath(info.dli_fname, library))
		return false;
	slash = strrchr(library, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (executable(ret, library, names[i]))
			return true;
	}
	return false;
}

static bool on_path(char ret[PATH_MAX])
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");
		char directory[PATH_MAX];

		if (length > 0 && length < sizeof(directory)) {
			memcpy(directory, path, length);
			directory[length] = '\0';
			if (executable(ret, directory, "feederd"))
				return true;
		}
		path += length + (path[length] == ':');
	}
	return false;
}

static int find_program(struct private_daemon *d)
{
	const char *named = d->options->daemon_path;

	if (!named || !named[0])
		named = getenv("FEEDER_DAEMON");
	if (named && named[0]) {
		if (executable(d->program, named[0] == '/' ? "" : ".", named))
			return 0;
		return fdr_fail(-ENOENT, "the daemon program %s is not an executable file", named);
	}
	if (beside_library(d->program) || on_path(d->program))
		return 0;
	return fdr_fail(-ENOENT, "no feederd beside libfeeder or in PATH: install it, set "
				 "FEEDER_DAEMON to its path, or "
				 "FEEDER_SOCKET to a running daemon's socket");
}

/* ---- starting ---- */

static bool environment_kept(const char *entry)
{
	/* those are the trainer's own relation to its service manager */
	static const char *const dropped[] = {
		"NOTIFY_SOCKET=",
		"WATCHDOG_USEC=",
		"WATCHDOG_PID=",
		"LISTEN_PID=",
		"LISTEN_FDS=",
		"LISTEN_FDNAMES=",
		"FEEDER_SOCKET=",
	};

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		if (strncmp(entry, dropped[i], strlen(dropped[i])) == 0)
			return false;
	}
	return true;
}

static char **make_environment(void)
{
	size_t count = 0;
	size_t kept = 0;
	char **envp;

	while (environ && environ[count])
		count++;
	envp = calloc(count + 1, sizeof(*envp));
	for (size_t i = 0; envp && i < count; i++) {
		if (environment_kept(environ[i]))
			envp[kept++] = environ[i];
	}
	return envp;
}

static int start(struct private_daemon *d)
{
	const struct feeder_connect_options *o = d->options;
	CLEANUP(freep) char **envp = make_environment();
	CLEANUP(freep) char **argv = NULL;
	char workers[16];
	size_t sets = 0;
	size_t n = 0;
	int r;

	while (o->set && o->set[sets])
		sets++;
	argv = calloc(2 * sets + 8, sizeof(*argv));
	if (!envp || !argv)
		return fdr_fail_memory();
	argv[n++] = d->program;
	argv[n++] = (char *)(uintptr_t) "--private";
	argv[n++] = (char *)(uintptr_t) "--socket";
	argv[n++] = d->socket;
	if (o->workers > 0) {
		snprintf(workers, sizeof(workers), "%u", o->workers);
		argv[n++] = (char *)(uintptr_t) "--workers";
		argv[n++] = workers;
	}
	for (size_t i = 0; i < sets; i++) {
		argv[n++] = (char *)(uintptr_t) "--set";
		argv[n++] = (char *)(uintptr_t)o->set[i];
	}
	d->pidfd = fd_close(d->pidfd);
	r = fdr_spawn(
		&(struct fdr_spawn){
			.path = d->program,
			.argv = argv,
			.envp = envp,
			.cpu_mask = &d->mask,
			.cpu_mask_size = sizeof(d->mask),
		},
		&d->pid, &d->pidfd);
	if (r < 0)
		return fdr_fail(r, "starting %s failed: %s", d->program, strerror(-r));
	return 0;
}

/* Whether no daemon that this call started is running. */
static bool ended(const struct private_daemon *d)
{
	struct pollfd pollfd = { .fd = d->pidfd, .events = POLLIN };

	if (d->pid == 0)
		return true;
	if (d->pidfd >= 0)
		return poll(&pollfd, 1, 0) == 1;
	return kill(d->pid, 0) < 0 && errno == ESRCH;
}

static int fail_start(const struct private_daemon *d, int error)
{
	if (error == -EINTR)
		return fdr_fail(-EINTR, "interrupted by a signal");
	return fdr_fail(-ETIMEDOUT, "the private daemon at %s did not answer within %d ms (%s)",
		d->socket, d->options->timeout_ms, strerror(-error));
}

/* Whether the lock file is still the one that its name leads to. */
static bool lock_current(const struct private_daemon *d, int fd)
{
	struct stat mine;
	struct stat named;

	return fstat(fd, &mine) == 0 && lstat(d->lock, &named) == 0 &&
	       mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

static int fail_lock(const struct private_daemon *d)
{
	return fdr_fail(-errno, "the lock file %s: %s", d->lock, strerror(errno));
}

/*
 * The lock is free again when its holder's daemon has said hello. The holder removes the file
 * first, so that nothing stays behind; who then gets the lock of a removed file tries anew.
 */
static int take_lock(const struct private_daemon *d, int *ret_fd)
{
	for (;;) {
		CLEANUP(fd_closep)
		int fd = open(d->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return fail_lock(d);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (!lock_current(d, fd))
				continue;
			*ret_fd = fd_steal(&fd);
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail_lock(d);
		if (now_ns() >= d->deadline)
			return fdr_fail(-ETIMEDOUT,
				"another process holds %s for %d ms: its private daemon does not "
				"start",
				d->lock, d->options->timeout_ms);
		if (fdr_sleep_ms(5) < 0)
			return fail_start(d, -EINTR);
	}
}

/* 0 connected; 1 start one, and come back; 2 wait, and come back; negative: an error. */
static int attempt(struct feeder **ret, struct private_daemon *d, int *ret_error)
{
	int fd = fdr_socket_connect(d->socket);
	int r = fd < 0 ? fd : fdr_hello(ret, fd, d->socket, d->job, d->options);

	*ret_error = r;
	if (r == 0)
		return 0;
	if (fd == -EAGAIN)
		return 2;
	if (r != -ENOENT && r != -ECONNREFUSED && r != -EPIPE)
		return fd < 0 ? fdr_fail(r, "connecting to the private daemon at %s failed: %s",
					d->socket, strerror(-r))
			      : r;
	return ended(d) ? 1 : 2;
}

static int connect_locked(struct feeder **ret, struct private_daemon *d)
{
	for (unsigned int starts = 0;;) {
		int error = 0;
		int r = attempt(ret, d, &error);

		if (r <= 0)
			return r;
		if (r == 1 && starts == 3)
			return fdr_fail(-EPIPE,
				"%s ended before it answered: its messages are on standard error",
				d->program);
		if (r == 1) {
			/* a socket file without a listener is its dead daemon's */
			unlink(d->socket);
			r = starts++ == 0 ? find_program(d) : 0;
			if (r == 0)
				r = start(d);
			if (r < 0)
				return r;
		}
		if (now_ns() >= d->deadline)
			return fail_start(d, error);
		if (fdr_sleep_ms(2) < 0)
			return fail_start(d, -EINTR);
	}
}

int fdr_private_connect(
	struct feeder **ret, const char *job, const struct feeder_connect_options *options)
{
	struct private_daemon d = {
		.options = options,
		.job = job,
		.deadline = now_ns() + (uint64_t)options->timeout_ms * NS_PER_MS,
		.pidfd = -1,
	};
	CLEANUP(fd_closep) int lock = -1;
	int r;

	/* the process's mask, not that of a thread that pinned itself */
	if (sched_getaffinity(getpid(), sizeof(d.mask), &d.mask) < 0)
		memset(&d.mask, 0, sizeof(d.mask));
	r = find_paths(&d);
	if (r == 0 && !options->fresh)
		r = take_lock(&d, &lock);
	if (r == 0)
		r = connect_locked(ret, &d);
	if (lock >= 0)
		unlink(d.lock);
	fd_close(d.pidfd);
	return r;
}
