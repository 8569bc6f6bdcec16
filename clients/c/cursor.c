/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a lane stands. Cursors are opaque here: they come from descriptors and replies and go
 * back as they are; what the library knows by itself is only when a lane stands at the start of
 * an epoch, so that set_epoch there costs nothing.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

/* A seek that was given up must have taken effect before the position can be told. */
static int settle(struct feeder_lane *lane)
{
	int r = fdr_alive(lane->f);

	if (r == 0 && lane->pending)
		fdr_dispatch(lane->f);
	if (r == 0 && lane->pending)
		return fdr_fail(-EAGAIN, "the lane is still being sought");
	return r;
}

int feeder_cursor(struct feeder_lane *lane, void *ret, size_t size)
{
	if (lane->f->forked)
		return fdr_fail_forked();
	if (lane->pending) {
		int r = settle(lane);

		if (r < 0)
			return r;
	}
	if (size < lane->cursor_size)
		return fdr_fail(-ERANGE, "the cursor has %u bytes: give room for FEEDER_CURSOR_MAX",
			lane->cursor_size);
	memcpy(ret, lane->cursor, lane->cursor_size);
	return (int)lane->cursor_size;
}

static int move(struct feeder_lane *lane, uint32_t type, const void *body, size_t size, int fd)
{
	struct fdr_call call = {
		.type = type,
		.body = body,
		.size = size,
		.fds = &fd,
		.fd_count = fd >= 0 ? 1 : 0,
		.timeout_ms = lane->timeout_ms,
		.lane = lane,
	};
	int r = fdr_alive(lane->f);

	if (r < 0)
		return r;
	if (lane->error)
		return fdr_fail(lane->error, "%s", lane->error_text);
	r = fdr_call(lane->f, &call);
	if (r == 0)
		control_packet_close(lane->f->packet);
	lane->stalled_ns = 0;
	return r;
}

static int move_to_epoch(struct feeder_lane *lane, uint64_t epoch, uint64_t ids, int fd)
{
	struct control_set_epoch body = {
		.size = sizeof(body),
		.lane = lane->handle,
		.epoch = epoch,
		.ids = ids,
	};
	int r = move(lane, CONTROL_SET_EPOCH, &body, sizeof(body), fd);

	if (r == 0) {
		lane->at_start = true;
		lane->at_epoch = epoch;
	}
	return r;
}

int feeder_seek(struct feeder_lane *lane, const void *cursor, size_t size)
{
	struct control_seek body = {
		.size = sizeof(body),
		.lane = lane->handle,
		.cursor_size = (uint32_t)size,
	};

	if (size == 0 || size > sizeof(body.cursor))
		return fdr_fail(-EINVAL, "a cursor of %zu bytes is not one of feeder's", size);
	memcpy(body.cursor, cursor, size);
	return move(lane, CONTROL_SEEK, &body, sizeof(body), -1);
}

int feeder_set_epoch(struct feeder_lane *lane, uint64_t epoch)
{
	if (!lane->f->forked && !lane->error && !lane->pending && lane->at_start &&
		lane->at_epoch == epoch)
		return 0;
	return move_to_epoch(lane, epoch, 0, -1);
}

static int make_ids(const int64_t *ids, uint64_t count)
{
	CLEANUP(fd_closep) int fd = memfd_create("feeder-ids", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint8_t *p = (const uint8_t *)ids;
	size_t left = count * sizeof(*ids);

	if (fd < 0)
		return -errno;
	while (left > 0) {
		ssize_t n = write(fd, p, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			left -= (size_t)n;
		}
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return fd_steal(&fd);
}

int feeder_set_epoch_ids(
	struct feeder_lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count)
{
	CLEANUP(fd_closep) int fd = -1;
	int r = fdr_alive(lane->f);

	if (r < 0)
		return r;
	if (count == 0 || count > SIZE_MAX / sizeof(*ids) / 2)
		return fdr_fail(-EINVAL, "an epoch of %llu ids", (unsigned long long)count);
	fd = make_ids(ids, count);
	if (fd < 0)
		return fdr_fail(fd, "handing over %llu ids failed: %s", (unsigned long long)count,
			strerror(-fd));
	return move_to_epoch(lane, epoch, count, fd);
}

uint64_t feeder_order_digest(const struct feeder_lane *lane)
{
	return lane->order_digest;
}

uint64_t feeder_pixel_digest(const struct feeder_lane *lane)
{
	return lane->pixel_digest;
}
