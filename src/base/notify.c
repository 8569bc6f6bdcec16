/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness and passed sockets, without libsystemd. */
#include "base/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

int notify_send(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char message[1024];
	va_list ap;

	if (!path || !*path)
		return 0;
	size_t length = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);

	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ssize_t n = sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	int r = n < 0 ? -errno : 1;
	fd_close(fd);
	return r;
}

int notify_listen_fds(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *fds = getenv("LISTEN_FDS");
	long count = 0;

	if (pid && fds && strtol(pid, NULL, 10) == (long)getpid())
		count = strtol(fds, NULL, 10);
	if (count < 0 || count > 64)
		count = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int fd = NOTIFY_LISTEN_START; fd < NOTIFY_LISTEN_START + (int)count; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return (int)count;
}
