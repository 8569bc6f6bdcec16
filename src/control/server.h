/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket: at most one daemon for a path, whatever a dead one left behind.
 *
 * A lock file beside the socket, held for the daemon's life, decides races; a socket that
 * nobody answers is stale and is replaced, one that somebody answers is left alone. The path is
 * bound before it listens, so that clients that wait keep waiting until the daemon can serve.
 */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct server {
	int fd;
	int lock_fd;    /* -1: the socket was passed by the service manager */
	char path[112]; /* of the socket; "" where passed */
	char lock_path[120];
	dev_t dev;
	ino_t ino; /* of the socket file */
};

void server_init(struct server *server);
/*
 * Takes the path. open_to_all: mode 0666 (some root has an allow list; who may do what is then
 * decided by credentials), else 0600. -EADDRINUSE (a second instance), -EINVAL, -EACCES (the
 * directory), … with a sentence. warning (CONFIG_TEXT bytes) gets a sentence or "".
 */
int server_bind(struct server *server, const char *path, bool open_to_all, char *warning,
	char *text, size_t size);
/* The socket that the service manager passed as descriptor fd. -EINVAL with a sentence. */
int server_adopt(struct server *server, int fd, char *text, size_t size);
int server_listen(struct server *server, char *text, size_t size);
/* Changes who can reach the socket; a passed socket's mode is its unit's. */
void server_open_to_all(struct server *server, bool open_to_all);
/* Stops listening and takes the files away. Idempotent. */
void server_close(struct server *server);

#endif
