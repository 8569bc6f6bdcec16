/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of a connected socket. */
#include "control/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static int read_groups(struct peer *peer, int fd)
{
	socklen_t length = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) == 0 || errno != ERANGE)
		return 0; /* none, or a kernel without it */
	peer->groups = malloc(length);
	if (!peer->groups)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &length) < 0)
		return -errno;
	peer->group_count = length / sizeof(gid_t);
	return 0;
}

int peer_read(struct peer *ret, int fd)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return -errno;
	struct peer peer = {
		.uid = credentials.uid,
		.gid = credentials.gid,
		.pid = credentials.pid,
	};
	int r = read_groups(&peer, fd);
	if (r < 0) {
		peer_deinit(&peer);
		return r;
	}
	*ret = peer;
	return 0;
}

void peer_deinit(struct peer *peer)
{
	free(peer->groups);
	peer->groups = NULL;
	peer->group_count = 0;
}

bool peer_in_group(const struct peer *peer, gid_t gid)
{
	if (peer->gid == gid)
		return true;
	for (size_t i = 0; i < peer->group_count; i++) {
		if (peer->groups[i] == gid)
			return true;
	}
	return false;
}
