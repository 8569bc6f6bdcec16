/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a socket. Permission goes by uid and groups, liveness by the socket
 * and never by the process number, which is 0 across PID namespaces and is used again.
 */
#ifndef CONTROL_PEER_H
#define CONTROL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;     /* shown, never acted on; 0: in another PID namespace */
	gid_t *groups; /* supplementary */
	size_t group_count;
};

/* As they were at connect(2). 0, -ENOMEM, -errno. */
int peer_read(struct peer *ret, int fd);
void peer_deinit(struct peer *peer);
bool peer_in_group(const struct peer *peer, gid_t gid);

#endif
