/* SPDX-License-Identifier: Apache-2.0 */
/* The socket protocol's packets: one sendmsg, one recvmsg, no buffering on either side. */
#include "protocol/control.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union fd_message {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int) * CONTROL_FDS_MAX)];
};

int control_send(int fd, uint32_t type, uint32_t serial, const void *body, size_t body_size,
	const void *tail, size_t tail_size, const int *fds, unsigned int fd_count)
{
	struct control_header header = {
		.size = (uint32_t)(sizeof(header) + body_size + tail_size),
		.type = type,
		.serial = serial,
	};
	struct iovec iov[3] = {
		{ &header, sizeof(header) },
		{ (void *)(uintptr_t)body, body_size },
		{ (void *)(uintptr_t)tail, tail_size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = tail_size ? 3 : 2 };
	union fd_message control;

	if (header.size > CONTROL_PACKET_MAX || fd_count > CONTROL_FDS_MAX)
		return -EMSGSIZE;
	if (fd_count > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		ssize_t n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

void control_packet_close(struct control_packet *packet)
{
	for (unsigned int i = 0; i < packet->fd_count; i++) {
		if (packet->fds[i] >= 0)
			close(packet->fds[i]);
		packet->fds[i] = -1;
	}
	packet->fd_count = 0;
}

static void take_fds(struct msghdr *msg, struct control_packet *packet)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		unsigned int count = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		for (unsigned int i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (packet->fd_count < CONTROL_FDS_MAX)
				packet->fds[packet->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

int control_receive(int fd, struct control_packet *packet, int flags)
{
	struct iovec iov[2] = {
		{ &packet->header, sizeof(packet->header) },
		{ packet->body, sizeof(packet->body) },
	};
	union fd_message control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	packet->fd_count = 0;
	for (unsigned int i = 0; i < CONTROL_FDS_MAX; i++)
		packet->fds[i] = -1;
	do {
		n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* a packet without bytes looks like the end of the stream, but may carry descriptors */
	take_fds(&msg, packet);
	if (n == 0) {
		control_packet_close(packet);
		return 0;
	}
	if ((size_t)n < sizeof(packet->header) || (msg.msg_flags & MSG_TRUNC) ||
		packet->header.size != (size_t)n || packet->header.zero != 0) {
		control_packet_close(packet);
		return -EPROTO;
	}
	packet->body_size = (size_t)n - sizeof(packet->header);
	if (msg.msg_flags & MSG_CTRUNC) {
		control_packet_close(packet);
		return -EMFILE;
	}
	return 1;
}

static bool all_zero(const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i])
			return false;
	}
	return true;
}

int control_body(const struct control_packet *packet, void *ret, size_t size,
	const uint8_t **ret_tail, size_t *ret_tail_size)
{
	uint32_t sent;

	if (packet->body_size < sizeof(sent))
		return -EPROTO;
	memcpy(&sent, packet->body, sizeof(sent));
	if (sent < sizeof(sent) || sent > packet->body_size)
		return -EPROTO;
	if (!ret_tail && sent != packet->body_size)
		return -EPROTO;
	if (sent > size && !all_zero(packet->body + size, sent - size))
		return -E2BIG;
	memset(ret, 0, size);
	memcpy(ret, packet->body, sent < size ? sent : size);
	if (ret_tail) {
		*ret_tail = packet->body + sent;
		*ret_tail_size = packet->body_size - sent;
	}
	return 0;
}

int control_string_ok(const char *s, size_t size)
{
	size_t length = strnlen(s, size);

	return length < size && all_zero((const uint8_t *)s + length, size - length);
}
