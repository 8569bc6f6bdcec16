/* SPDX-License-Identifier: Apache-2.0 */
/* Where daemons may listen. */
#ifndef STAT_SOCKETS_H
#define STAT_SOCKETS_H

#include <stdbool.h>

#include "view.h"

struct socket_list {
	char (*paths)[SOCKET_MAX]; /* each socket once */
	unsigned int count;
};

/* Each may be NULL. */
struct socket_places {
	const char *named;   /* FEEDER_SOCKET */
	const char *service; /* the node's */
	const char *runtime; /* XDG_RUNTIME_DIR: feeder/NAME.sock in it */
	const char *tmp;     /* feeder-UID/NAME.sock in it */
	const char
		*kernel; /* /proc/net/unix: listeners named feeder.sock, feederd.sock or feeder */
};

/* The usual places of this process's user. */
void socket_places_init(struct socket_places *ret);
/* Every socket that is there, stale ones too; 0 or -ENOMEM. */
int sockets_find(struct socket_list *ret, const struct socket_places *places);
/* Only that one, whether it is there or not; -ENAMETOOLONG, -ENOMEM. */
int sockets_one(struct socket_list *ret, const char *path);
void sockets_free(struct socket_list *list);
/* Whether somebody who lets this user in listens. */
bool socket_alive(const char *path);

#endif
