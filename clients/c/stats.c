/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of the daemon's statistics. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"

#define STATS_TIMEOUT_MS 10000

int feeder_stats(struct feeder *f, int *ret_fd)
{
	struct control_stats body = { .size = sizeof(body) };
	struct fdr_call call = {
		.type = CONTROL_STATS,
		.body = &body,
		.size = sizeof(body),
		.timeout_ms = STATS_TIMEOUT_MS,
	};
	CLEANUP(fd_closep) int fd = -1;
	int seals;
	int r = fdr_call(f, &call);

	if (r < 0)
		return r;
	fd = fdr_take_fd(f, 0);
	control_packet_close(f->packet);
	seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	/* the caller may map it: it must neither change nor shrink */
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) == 0)
		return fdr_fail(
			-EPROTO, "the daemon at %s sent statistics that are not sealed", f->path);
	*ret_fd = fd_steal(&fd);
	return 0;
}
