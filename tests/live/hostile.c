/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live-hostile: a client that the daemon should not have to trust.
 *
 *	live-hostile SOCKET DATASET packets COUNT SEED
 *		COUNT packets over many sessions: noise, right headers before noise, right
 *		requests with words changed, cut or grown, with descriptors of everything.
 *	live-hostile SOCKET DATASET words COUNT SEED
 *		a right lane, whose ring it attacks: tries what the seals must refuse, then
 *		scribbles COUNT times over the control words and rings the doorbell.
 *
 * Prints one JSON object of what it did; exit status 0, or 1 where something was let through.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/control.h"
#include "protocol/ring.h"

#define BYTES_MAX 70000 /* more than a packet may have */
#define FDS_MAX   40    /* likewise */

struct victim {
	const char *socket;
	const char *dataset;
	int fd; /* of the session; -1: none */
	uint32_t serial;
	uint32_t handle; /* of the dataset, as far as the session got */
	uint32_t lane;
	bool deaf; /* never reads what the daemon says */
	uint64_t packets, sessions, answers, refusals, descriptors;
};

/* ---- chance ---- */

static uint64_t chance_state;

static uint32_t chance(void)
{
	chance_state += 0x9e3779b97f4a7c15u;
	uint64_t z = (chance_state ^ (chance_state >> 30)) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)((z ^ (z >> 27)) * 0x94d049bb133111ebu >> 32);
}

static bool one_in(uint32_t n)
{
	return chance() % n == 0;
}

static uint32_t nasty(void)
{
	static const uint32_t values[] = { 0, 1, 2, 3, 7, 8, 16, 255, 256, 4096, 65535, 65536,
		0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x7f800000, 0x7fc00000 };

	return one_in(3) ? chance() : values[chance() % (sizeof(values) / sizeof(values[0]))];
}

static void noise(void *ret, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)ret)[i] = (uint8_t)chance();
}

static void die(const char *what)
{
	fprintf(stderr, "live-hostile: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- descriptors of everything ---- */

static int things[16];
static size_t thing_count;

static void add_thing(int fd)
{
	if (fd >= 0)
		things[thing_count++] = fd;
}

static void make_things(const char *dataset)
{
	int ends[2];

	if (pipe(ends) < 0)
		die("pipe");
	add_thing(ends[0]);
	add_thing(ends[1]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
		die("socketpair");
	add_thing(ends[0]);
	add_thing(ends[1]);
	int memory = memfd_create("live-hostile", MFD_ALLOW_SEALING);
	if (memory < 0 || ftruncate(memory, 1 << 16) < 0)
		die("memfd");
	add_thing(memory); /* unsealed: it shrinks while others look */
	int sealed = memfd_create("live-hostile", MFD_ALLOW_SEALING);
	if (sealed < 0 || ftruncate(sealed, 4096) < 0 ||
		fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		die("sealed memfd");
	add_thing(sealed);
	add_thing(eventfd(0, 0));
	add_thing(open("/dev/zero", O_RDONLY));
	add_thing(open("/proc/self/mem", O_PATH));
	add_thing(open("/etc/passwd", O_RDONLY));
	add_thing(open("/proc", O_PATH));
	add_thing(open("/", O_PATH));
	add_thing(open(dataset, O_PATH));
	add_thing(open(dataset, O_RDONLY | O_DIRECTORY));
	add_thing(openat(things[thing_count - 1], "..", O_PATH));
}

/* ---- sessions ---- */

static int connect_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (int i = 0; i < 1000; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (fd < 0)
			die("socket");
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		close(fd);
		if (errno != EAGAIN)
			break;
		usleep(1000);
	}
	die("connect");
	return -1;
}

static void leave(struct victim *v)
{
	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
}

/* Up to wait_ms for an answer to serial, into *ret; others are counted and thrown away. */
static bool answer_of(struct victim *v, uint32_t serial, int wait_ms, struct control_packet *ret)
{
	struct pollfd p = { .fd = v->fd, .events = POLLIN };

	while (poll(&p, 1, wait_ms) == 1) {
		if (control_receive(v->fd, ret, MSG_DONTWAIT) != 1)
			return false;
		v->answers++;
		v->refusals += ret->header.type == CONTROL_ERROR;
		bool mine = ret->header.serial == serial && ret->header.type != CONTROL_PROGRESS;
		if (mine && ret->header.type != CONTROL_ERROR)
			return true;
		control_packet_close(ret);
		if (mine)
			return false;
	}
	return false;
}

/* One right request; its answer in *ret. */
static bool ask(struct victim *v, uint32_t type, const void *body, size_t size, const int *fds,
	unsigned int fd_count, struct control_packet *ret)
{
	v->serial++;
	return control_send(v->fd, type, v->serial, body, size, NULL, 0, fds, fd_count) == 0 &&
	       answer_of(v, v->serial, 20000, ret);
}

static void fill_hello(struct control_hello *ret)
{
	*ret = (struct control_hello){
		.size = sizeof(*ret),
		.major = CONTROL_MAJOR,
		.version = "0.1.0",
		.program = "live-hostile",
	};
}

static void fill_dataset(struct control_open_dataset *ret, const struct victim *v)
{
	*ret = (struct control_open_dataset){ .size = sizeof(*ret) };
	snprintf(ret->path, sizeof(ret->path), "%s", v->dataset);
}

static void fill_lane(struct control_open_lane *ret, const struct victim *v)
{
	*ret = (struct control_open_lane){
		.size = sizeof(*ret),
		.dataset = v->handle,
		.world = 1,
		.parts = 1,
		.batch = 4,
		.accumulate = 1,
		.order = 1,
		.tail = 1,
		.bad = CONTROL_BAD_SUBSTITUTE,
		.numa_node = -1,
		.job = "live-hostile",
		.name = "train:hostile:0",
		.operation_count = 2,
		.operations = {
			{ .code = CONTROL_OP_RESIZE, .version = 1, .parameter.u = { 32, 1 } },
			{ .code = CONTROL_OP_CENTER_CROP, .version = 1, .parameter.u = { 32, 32 } },
		},
	};
}

/* Hello, dataset and lane, as far as depth says. With 3 the lane's descriptors stay in *packet. */
static bool enter(struct victim *v, unsigned int depth, struct control_packet *packet)
{
	struct control_hello hello;
	struct control_open_dataset dataset;
	struct control_open_lane lane;
	int fd = -1;

	v->fd = connect_socket(v->socket);
	v->sessions++;
	v->handle = v->lane = 1;
	fill_hello(&hello);
	if (depth < 1 || !ask(v, CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, packet))
		return false;
	control_packet_close(packet);
	if (depth < 2)
		return false;
	fill_dataset(&dataset, v);
	fd = open(v->dataset, O_PATH | O_CLOEXEC);
	bool opened = ask(v, CONTROL_OPEN_DATASET, &dataset, sizeof(dataset), &fd, 1, packet);
	close(fd);
	if (!opened)
		return false;
	memcpy(&v->handle, packet->body + offsetof(struct control_dataset, dataset), 4);
	control_packet_close(packet);
	fill_lane(&lane, v);
	if (depth < 3 || !ask(v, CONTROL_OPEN_LANE, &lane, sizeof(lane), NULL, 0, packet))
		return false;
	memcpy(&v->lane, packet->body + offsetof(struct control_lane, lane), 4);
	return true;
}

/* ---- packets ---- */

struct shot {
	struct control_header header;
	uint8_t body[BYTES_MAX];
};

/* A right request of some type; its body's size. */
static size_t aim(const struct victim *v, struct shot *shot)
{
	union {
		struct control_hello hello;
		struct control_open_dataset dataset;
		struct control_open_lane lane;
		struct control_seek seek;
		struct control_set_epoch epoch;
		struct control_stats stats;
		struct control_paths paths;
		struct control_close close;
	} u;
	static const size_t sizes[] = { 0, sizeof(u.hello), sizeof(u.dataset), sizeof(u.lane),
		sizeof(u.seek), sizeof(u.epoch), sizeof(u.stats), sizeof(u.paths),
		sizeof(u.close) };
	uint32_t type = one_in(10) ? CONTROL_HELLO : 2 + chance() % 7;

	memset(&u, 0, sizeof(u));
	if (type == CONTROL_HELLO)
		fill_hello(&u.hello);
	else if (type == CONTROL_OPEN_DATASET)
		fill_dataset(&u.dataset, v);
	else if (type == CONTROL_OPEN_LANE)
		fill_lane(&u.lane, v);
	else if (type == CONTROL_SEEK)
		u.seek = (struct control_seek){ .lane = v->lane, .cursor_size = 48 };
	else if (type == CONTROL_SET_EPOCH)
		u.epoch = (struct control_set_epoch){ .lane = v->lane, .epoch = 1, .ids = 512 };
	else if (type == CONTROL_PATHS)
		u.paths = (struct control_paths){ .dataset = v->handle, .count = 64 };
	else if (type == CONTROL_CLOSE)
		u.close = (struct control_close){ .lane = v->lane };
	u.stats.size = (uint32_t)sizes[type];
	memcpy(shot->body, &u, sizes[type]);
	shot->header.type = type;
	return sizes[type];
}

/* Changes words of a right body, or where it ends. */
static size_t spoil(uint8_t *body, size_t size)
{
	for (uint32_t i = chance() % 5; i > 0; i--) {
		uint32_t value = nasty();

		/* the first words are where most things are decided */
		size_t words = one_in(2) && size > 64 ? 16 : size / 4;
		memcpy(body + 4 * (chance() % words), &value, sizeof(value));
	}
	if (one_in(6))
		return chance() % (size + 1);
	if (one_in(6)) {
		size_t more = chance() % 256;

		memset(body + size, 0, more);
		if (one_in(2))
			noise(body + size, more);
		if (one_in(2))
			memcpy(body, &(uint32_t){ (uint32_t)(size + more) }, 4);
		return size + more;
	}
	return size;
}

/* The bytes of one packet. */
static size_t load(struct victim *v, struct shot *shot)
{
	size_t size;

	shot->header = (struct control_header){ .serial = ++v->serial };
	switch (chance() % 16) {
	case 0:
		size = one_in(4) ? chance() % sizeof(*shot) : chance() % 64;
		noise(shot, size);
		return size;
	case 1:
		size = one_in(4) ? chance() % (BYTES_MAX - 1) : chance() % 512;
		shot->header.type = one_in(3) ? nasty() : chance() % 10;
		noise(shot->body, size);
		break;
	case 2:
		size = aim(v, shot);
		noise(shot->body + 4, size - 4);
		break;
	default:
		size = aim(v, shot);
		size = spoil(shot->body, size);
	}
	size += sizeof(shot->header);
	shot->header.size = (uint32_t)size;
	if (one_in(20))
		((uint32_t *)(void *)&shot->header)[chance() % 4] = nasty();
	return size;
}

static int fire(struct victim *v, const struct shot *shot, size_t size)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)shot, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t fds = one_in(2) ? 0 : one_in(10) ? chance() % FDS_MAX : 1 + chance() % 3;

	if (fds > 0) {
		int list[FDS_MAX];

		for (size_t i = 0; i < fds; i++)
			list[i] = one_in(8) ? v->fd : things[chance() % thing_count];
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * fds);
		memcpy(CMSG_DATA(&control.header), list, sizeof(int) * fds);
	}
	if (sendmsg(v->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	v->packets++;
	v->descriptors += fds;
	return 0;
}

static void attack_packets(struct victim *v, uint64_t count)
{
	struct control_packet *packet = calloc(1, sizeof(*packet));
	struct shot *shot = calloc(1, sizeof(*shot));
	int patience = 0; /* ms for an answer before the next shot; each is answered, or the end */

	while (v->packets < count) {
		struct pollfd p = { .events = POLLOUT };

		if (v->fd < 0) {
			enter(v, chance() % 4, packet);
			control_packet_close(packet);
			v->deaf = one_in(8);
			patience = one_in(4) ? 0 : 20;
		}
		int r = fire(v, shot, load(v, shot));
		p.fd = v->fd;
		if (r == -EAGAIN)
			poll(&p, 1, 100);
		else if (r < 0 && r != -EMSGSIZE && r != -ENOBUFS)
			leave(v);
		if (v->fd >= 0 && !v->deaf && answer_of(v, v->serial, patience, packet))
			control_packet_close(packet);
		if (v->fd >= 0 && one_in(40))
			leave(v);
		if (one_in(64)) /* the unsealed memfd changes its size under whoever looks */
			(void)!ftruncate(things[4], chance() % (1 << 17));
	}
	leave(v);
	free(packet);
	free(shot);
}

/* ---- words ---- */

/* What must fail on a ring's descriptor; says what did not. */
static unsigned int let_through(const char *name, int fd, size_t size, bool payload)
{
	unsigned int wrong = 0;
	char link[64];
	const char *what[8];
	int again;

	if (ftruncate(fd, 0) == 0)
		what[wrong++] = "shrunk";
	if (ftruncate(fd, (off_t)size * 2) == 0)
		what[wrong++] = "grown";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, O_RDWR | O_CLOEXEC); /* root may, whatever the mode */
	for (int i = 0; payload && i < 2; i++) {
		int to = i == 0 ? fd : again;

		if (to >= 0 && pwrite(to, "x", 1, 0) == 1)
			what[wrong++] = "written";
		if (to >= 0 &&
			mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0) != MAP_FAILED)
			what[wrong++] = "mapped for writing";
		if (to >= 0 &&
			fallocate(to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
			what[wrong++] = "punched";
	}
	if (again >= 0)
		close(again);
	for (unsigned int i = 0; i < wrong; i++)
		fprintf(stderr, "live-hostile: the %s memfd could be %s\n", name, what[i]);
	return wrong;
}

static void scribble(const struct ring_map *map, uint32_t *words)
{
	uint32_t published = ring_load_acquire(&ring_map_words(map)->published);
	uint32_t slots = map->header.slots, n = published + chance() % 5 - 2;

	switch (chance() % 6) {
	case 0: /* anything, anywhere */
		__atomic_store_n(words + chance() % (map->header.control_size / 4), nasty(),
			__ATOMIC_RELAXED);
		break;
	case 1: /* releases of what was not published yet, or long ago */
		ring_store_release(ring_map_release_word(map, 1 + chance() % slots), n);
		break;
	case 2:
		ring_store_release(
			ring_map_release_word(map, 1 + chance() % slots), published + slots);
		break;
	case 3:
		ring_store_seq(ring_map_waiting_word(map), nasty());
		break;
	case 4:
		noise(words, map->header.control_size);
		break;
	default: /* and now and then a right one, so that the lane goes on */
		for (uint32_t i = 0; published > 0 && i < slots && i < published; i++)
			ring_store_release(
				ring_map_release_word(map, published - i), published - i);
	}
}

static bool gone_round(const struct ring_map *map)
{
	return ring_load_acquire(&ring_map_words(map)->published) > map->header.slots;
}

static int attack_words(struct victim *v, uint64_t count)
{
	uint64_t end = now_ns() + 60 * NS_PER_SEC;
	struct control_packet *packet = calloc(1, sizeof(*packet));
	uint64_t bell = 1, most = UINT64_MAX - 1;
	struct ring_map map;
	char text[256] = "";

	if (!enter(v, 3, packet) || packet->fd_count != 3 ||
		ring_map_open(&map, packet->fds[0], packet->fds[1], text, sizeof(text)) < 0) {
		fprintf(stderr, "live-hostile: no lane %s\n", text);
		return 2;
	}
	unsigned int wrong = let_through("payload", packet->fds[0], map.header.total_size, true) +
			     let_through("control", packet->fds[1], map.header.control_size, false);
	int doorbell = packet->fds[2];
	fcntl(doorbell, F_SETFL, O_NONBLOCK);
	/* beside a daemon that has its CPU: on until the lane has gone round its ring */
	for (uint64_t i = 0; i < count || (!gone_round(&map) && now_ns() < end); i++) {
		scribble(&map, (uint32_t *)(void *)map.control);
		if (one_in(64)) /* full: who writes to it without O_NONBLOCK waits for ever */
			(void)!write(doorbell, &most, sizeof(most));
		else if (one_in(64))
			(void)!read(doorbell, &most, sizeof(most));
		else if (one_in(4))
			(void)!write(doorbell, &bell, sizeof(bell));
		most = UINT64_MAX - 1;
		if (one_in(1024))
			usleep(1000);
	}
	fcntl(doorbell, F_SETFL, 0);
	printf("{\"scribbled\": %llu, \"published\": %u, \"let_through\": %u}\n",
		(unsigned long long)count, ring_load_acquire(&ring_map_words(&map)->published),
		wrong);
	ring_map_close(&map);
	control_packet_close(packet);
	free(packet);
	leave(v);
	return wrong > 0;
}

int main(int argc, char **argv)
{
	struct victim v = { .fd = -1 };

	if (argc != 6) {
		fprintf(stderr, "usage: live-hostile SOCKET DATASET packets|words COUNT SEED\n");
		return 2;
	}
	v.socket = argv[1];
	v.dataset = argv[2];
	chance_state = strtoull(argv[5], NULL, 10);
	if (!strcmp(argv[3], "words"))
		return attack_words(&v, strtoull(argv[4], NULL, 10));
	make_things(v.dataset);
	attack_packets(&v, strtoull(argv[4], NULL, 10));
	printf("{\"packets\": %llu, \"sessions\": %llu, \"answers\": %llu, \"refusals\": %llu, "
	       "\"descriptors\": %llu}\n",
		(unsigned long long)v.packets, (unsigned long long)v.sessions,
		(unsigned long long)v.answers, (unsigned long long)v.refusals,
		(unsigned long long)v.descriptors);
	return 0;
}
