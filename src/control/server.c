/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket and its lock file. */
#include "control/server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "control/config.h"

#define BACKLOG      128
#define LOCK_WAIT_NS (3 * NS_PER_SEC) /* a daemon that is stopping lets go within this time */

#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

void server_init(struct server *server)
{
	*server = (struct server){ .fd = -1, .lock_fd = -1 };
}

/* ---- the directory ---- */

static int check_filesystem(const char *directory, char *warning, char *text, size_t size)
{
	struct statfs fs;

	if (statfs(directory, &fs) < 0)
		return 0;
	switch ((unsigned long)fs.f_type & 0xffffffff) {
	case NFS_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case 0xfe534d42: /* SMB 2 and 3 */
	case 0x0bd00bd0: /* Lustre */
	case 0x47504653: /* GPFS */
	case 0x00c36400: /* Ceph */
	case 0x5346414f: /* AFS */
	case 0x01021997: /* 9p */
		snprintf(text, size,
			"the socket's directory %s is on a network file system, where sockets and "
			"locks of this node do not work: choose one on a local tmpfs, as /run",
			directory);
		return -EINVAL;
	case FUSE_SUPER_MAGIC:
		snprintf(warning, CONFIG_TEXT,
			"the socket's directory %s is on a FUSE file system; a local tmpfs is "
			"safer",
			directory);
		break;
	}
	return 0;
}

/* Whoever can rename in the directory can put his own socket there. */
static int check_directory(const char *path, char *warning, char *text, size_t size)
{
	char directory[sizeof(((struct server *)0)->path)];
	struct stat st;

	snprintf(directory, sizeof(directory), "%s", path);
	char *slash = strrchr(directory, '/');
	if (!slash)
		snprintf(directory, sizeof(directory), ".");
	else
		slash[slash == directory] = '\0';
	int error = stat(directory, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (error) {
		snprintf(text, size, "the socket's directory %s: %s", directory, strerror(error));
		return -error;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		snprintf(text, size, "the socket's directory %s belongs to uid %u", directory,
			(unsigned int)st.st_uid);
		return -EACCES;
	}
	if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX)) {
		snprintf(text, size,
			"the socket's directory %s may be written by others (mode %04o) and is not "
			"sticky",
			directory, (unsigned int)st.st_mode & 07777);
		return -EACCES;
	}
	return check_filesystem(directory, warning, text, size);
}

/* ---- one instance ---- */

static int make_address(struct sockaddr_un *ret, const char *path, char *text, size_t size)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path)) {
		snprintf(text, size, "the socket path %s is longer than the %zu bytes of a socket",
			path, sizeof(ret->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Whether somebody serves the path: 1, 0 (nobody, or nothing there), negative errno. */
static int probe(const struct sockaddr_un *address)
{
	CLEANUP(fd_closep)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		errno == EAGAIN || errno == EPROTOTYPE)
		return 1;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : -errno;
}

/* The lock file that is there now, locked: 1; 0 another holds it; negative errno. */
static int try_lock(struct server *server)
{
	CLEANUP(fd_closep)
	int fd = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat held, there;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
	/* Its last holder takes the file away: the lock of an unlinked file protects nothing. */
	if (fstat(fd, &held) < 0 || stat(server->lock_path, &there) < 0 ||
		held.st_ino != there.st_ino || held.st_dev != there.st_dev)
		return 0;
	server->lock_fd = fd_steal(&fd);
	return 1;
}

static int take_lock(
	struct server *server, const struct sockaddr_un *address, char *text, size_t size)
{
	uint64_t until = now_ns() + LOCK_WAIT_NS;

	for (;;) {
		int r = try_lock(server);

		if (r == 1)
			return 0;
		if (r < 0) {
			snprintf(text, size, "the lock file %s: %s", server->lock_path,
				strerror(-r));
			return r;
		}
		if (probe(address) == 1) {
			snprintf(text, size, "another feederd serves %s already", server->path);
			return -EADDRINUSE;
		}
		if (now_ns() > until) {
			snprintf(text, size,
				"another feederd is starting or stopping on %s (it holds %s)",
				server->path, server->lock_path);
			return -EADDRINUSE;
		}
		poll(NULL, 0, 10);
	}
}

/* Under the lock: nothing there, or a socket that nobody serves, which is taken away. */
static int clear_path(const char *path, const struct sockaddr_un *address, char *text, size_t size)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(text, size, "%s is there and is not a socket", path);
		return -EEXIST;
	}
	int r = probe(address);
	if (r == 1)
		snprintf(text, size, "another process serves %s already", path);
	if (r != 0)
		return r == 1 ? -EADDRINUSE : r;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int bind_path(struct server *server, const struct sockaddr_un *address)
{
	struct stat st;

	server->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0)
		return -errno;
	/* Born closed to others; no thread of ours makes files now. */
	mode_t mask = umask(0177);
	int r = bind(server->fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno
											 : 0;
	umask(mask);
	if (r == 0 && lstat(server->path, &st) < 0)
		r = -errno;
	if (r == 0) {
		server->dev = st.st_dev;
		server->ino = st.st_ino;
	}
	return r;
}

int server_bind(struct server *server, const char *path, bool open_to_all, char *warning,
	char *text, size_t size)
{
	struct sockaddr_un address;

	warning[0] = '\0';
	int r = make_address(&address, path, text, size);
	if (r < 0)
		return r;
	snprintf(server->path, sizeof(server->path), "%s", path);
	snprintf(server->lock_path, sizeof(server->lock_path), "%s.lock", path);
	r = check_directory(path, warning, text, size);
	if (r == 0)
		r = take_lock(server, &address, text, size);
	if (r == 0) {
		snprintf(text, size, "the socket %s cannot be replaced", path);
		r = clear_path(path, &address, text, size);
	}
	if (r == 0) {
		r = bind_path(server, &address);
		if (r < 0)
			snprintf(text, size, "the socket %s: %s", path, strerror(-r));
	}
	if (r < 0) {
		server_close(server);
		return r;
	}
	server_open_to_all(server, open_to_all);
	return 0;
}

int server_adopt(struct server *server, int fd, char *text, size_t size)
{
	int type = 0, accepting = 0;
	socklen_t length = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0 || type != SOCK_SEQPACKET) {
		snprintf(text, size,
			"the socket that was passed is not of type SOCK_SEQPACKET "
			"(ListenSequentialPacket= of the socket unit)");
		return -EINVAL;
	}
	length = sizeof(accepting);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length);
	if (!accepting) {
		snprintf(text, size, "the socket that was passed does not listen (Accept=no)");
		return -EINVAL;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	server->fd = fd;
	return 0;
}

int server_listen(struct server *server, char *text, size_t size)
{
	if (listen(server->fd, BACKLOG) == 0)
		return 0;
	int error = errno;
	snprintf(text, size, "listening on %s: %s", server->path, strerror(error));
	return -error;
}

void server_open_to_all(struct server *server, bool open_to_all)
{
	if (server->lock_fd >= 0)
		chmod(server->path, open_to_all ? 0666 : 0600);
}

void server_close(struct server *server)
{
	struct stat st;

	server->fd = fd_close(server->fd);
	if (server->lock_fd < 0)
		return;
	/* Only the file that is ours: somebody may have put another there. */
	if (server->ino != 0 && lstat(server->path, &st) == 0 && st.st_dev == server->dev &&
		st.st_ino == server->ino)
		unlink(server->path);
	unlink(server->lock_path);
	server->lock_fd = fd_close(server->lock_fd);
}
