/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of the socket protocol, as either side receives them: the first byte of the input tells
 * how many descriptors come along and whether the size word is mended, the rest is the packet.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"
#include "protocol/control.h"

#define FDS_MOST 8

static int ends[2] = { -1, -1 };

static void send_raw(const uint8_t *bytes, size_t size, unsigned int fd_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * FDS_MOST)];
	} control;
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count > 0) {
		int fds[FDS_MOST];
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		for (unsigned int i = 0; i < FDS_MOST; i++)
			fds[i] = ends[0];
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	REQUIRE(sendmsg(ends[0], &msg, MSG_DONTWAIT) == (ssize_t)size);
}

/* Bodies of every size that the protocol has, in memory of this pattern; a digest of all. */
static uint64_t read_bodies(const struct control_packet *p, uint8_t pattern)
{
	static const size_t sizes[] = { sizeof(struct control_error), sizeof(struct control_hello),
		sizeof(struct control_open_dataset), sizeof(struct control_dataset),
		sizeof(struct control_progress), sizeof(struct control_open_lane),
		sizeof(struct control_lane), sizeof(struct control_seek),
		sizeof(struct control_set_epoch), sizeof(struct control_stats),
		sizeof(struct control_paths), sizeof(struct control_paths_reply),
		sizeof(struct control_close), sizeof(struct control_lane_lost) };
	uint64_t digest = 0;

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		size_t size = sizes[i / 2], tail_size = 0;
		const uint8_t *tail = NULL;
		uint8_t *body = malloc(size);
		int r;

		REQUIRE(body);
		memset(body, pattern, size);
		r = control_body(p, body, size, i % 2 ? &tail : NULL, i % 2 ? &tail_size : NULL);
		REQUIRE(r == 0 || r == -EPROTO || r == -E2BIG);
		digest = digest * 31 + (uint64_t)-r;
		if (r == 0) {
			digest ^= fuzz_hash(body, size);
			REQUIRE(tail_size <= p->body_size);
			if (tail)
				digest ^= fuzz_hash(tail, tail_size);
			digest += (uint64_t)control_string_ok((const char *)body, size);
		}
		free(body);
	}
	return digest;
}

static int receive(struct control_packet *p, uint8_t pattern, uint64_t *ret_digest)
{
	int r;

	memset(p, pattern, sizeof(*p));
	r = control_receive(ends[1], p, MSG_DONTWAIT);
	REQUIRE(r == 1 || r == 0 || r == -EPROTO || r == -EMFILE);
	if (r == 1)
		*ret_digest = read_bodies(p, pattern);
	else
		REQUIRE(p->fd_count == 0);
	return r;
}

/* What was received is sent on as it is. */
static void pass_on(const struct control_packet *p, struct control_packet *again)
{
	REQUIRE(control_send(ends[0], p->header.type, p->header.serial, p->body, p->body_size, NULL,
			0, p->fds, p->fd_count) == 0);
	REQUIRE(control_receive(ends[1], again, MSG_DONTWAIT) == 1);
	REQUIRE(memcmp(&p->header, &again->header, sizeof(p->header)) == 0);
	REQUIRE(p->body_size == again->body_size && p->fd_count == again->fd_count);
	REQUIRE(memcmp(p->body, again->body, p->body_size) == 0);
	control_packet_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct control_packet packets[2], again;
	uint64_t digests[2] = { 0, 0 };
	unsigned int options, fd_count;
	uint8_t *copy;
	int r[2], before;

	if (ends[0] < 0)
		REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	before = fuzz_lowest_fd();
	if (size < 2 || size > 70000)
		return 0;
	options = data[0];
	fd_count = options & 15 ? (options & 15) % (FDS_MOST + 1) : 0;
	copy = fuzz_copy(data + 1, --size);
	if ((options & 0x80) && size >= 4)
		memcpy(copy, &(uint32_t){ (uint32_t)size }, 4);
	for (int i = 0; i < 2; i++) {
		send_raw(copy, size, fd_count);
		r[i] = receive(&packets[i], i ? 0xff : 0x00, &digests[i]);
	}
	REQUIRE(r[0] == r[1] && digests[0] == digests[1]);
	if (r[0] == 1)
		pass_on(&packets[0], &again);
	for (int i = 0; i < 2; i++)
		control_packet_close(&packets[i]);
	free(copy);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
