/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's request handling, over real sockets, with doubles of the pipeline and the sources.
 *
 * The input: a byte (bit n: client n does not greet by itself), then records: type u8, options
 * u8, length u16, body. Two clients send them. Every request must be answered once, by its reply
 * or by an error with a sentence, unless the session ends; when the clients have gone, nothing of
 * them is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "control/state.h"
#include "fake-pipeline.h"
#include "fuzz.h"

#define CLIENTS      2
#define RECORDS_MOST 24 /* and the greeting: fewer than the bits of `waited` */
#define PATIENCE_NS  (20 * NS_PER_SEC)

/* Types below 0x10 are requests, those from DO_FAIL_LANES on deeds, others raw types. */
#define DO_FAIL_LANES  0xf0u /* body: 1: lanes cannot be made from now on */
#define DO_FINGERPRINT 0xf1u /* body: of the datasets opened from now on */
#define DO_LANE_FAILS  0xf2u /* body: the lane's number */
#define DO_COME_ANEW   0xf3u

/* Options; bits 4 to 6 choose the descriptor that comes along, bit 7 sends it twice. */
#define SECOND_CLIENT 0x01u
#define NO_SERIAL     0x02u
#define RAW_SIZE      0x04u /* the body's size word is not mended */
#define NO_WAIT       0x08u /* the next record comes before the answer */

struct client {
	int fd; /* -1: the session ended */
	uint32_t serial;
	uint32_t waited;    /* bit n: request n has no answer yet */
	uint32_t types[32]; /* of the requests, by serial */
};

static struct bench bench;
static struct client clients[CLIENTS] = { { .fd = -1 }, { .fd = -1 } };
static int descriptors[8];

static int open_at(const char *name, int flags)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", bench.directory, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	return fd;
}

static int ids_memfd(int seals)
{
	static const int64_t ids[4] = { 3, 1, 4, 1 };
	int fd = fuzz_memfd(ids, sizeof(ids));

	REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void end(void)
{
	bench_stop(&bench);
}

static void start(void)
{
	bench_start(&bench, false);
	fake.lane_bytes = 4096;
	close(open_at("data/list", O_RDWR | O_CREAT));
	descriptors[1] = open_at("data/set", O_PATH);
	descriptors[2] = open("/", O_PATH | O_CLOEXEC);
	descriptors[3] = ids_memfd(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	descriptors[4] = ids_memfd(0);
	descriptors[5] = open_at("data/list", O_PATH);
	descriptors[6] = open_at("data/list", O_RDONLY);
	descriptors[7] = open_at("data", O_PATH);
	atexit(end);
}

/* ---- answers ---- */

static void check_error(const struct control_packet *p)
{
	struct control_error error;

	REQUIRE(control_body(p, &error, sizeof(error), NULL, NULL) == 0);
	REQUIRE(error.code < 0 && error.text[0]);
	REQUIRE(control_string_ok(error.text, sizeof(error.text)));
}

static void check_answer(struct client *c, const struct control_packet *p)
{
	uint32_t serial = p->header.serial, type = p->header.type;

	if (serial == 0) { /* an event, or what a request without a serial got */
		REQUIRE(type == CONTROL_ERROR || type == CONTROL_LANE_LOST);
		if (type == CONTROL_ERROR)
			check_error(p);
		return;
	}
	REQUIRE(serial <= c->serial && (c->waited & 1u << serial));
	if (type == CONTROL_PROGRESS)
		return;
	c->waited &= ~(1u << serial);
	if (type == CONTROL_ERROR)
		check_error(p);
	else
		REQUIRE(type == (c->types[serial] | CONTROL_REPLY) && p->body_size >= 4);
}

static void receive(struct client *c)
{
	static struct control_packet packet;

	while (c->fd >= 0) {
		int r = control_receive(c->fd, &packet, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return;
		if (r != 1) {
			REQUIRE(r == 0 || r == -ECONNRESET);
			close(c->fd);
			c->fd = -1;
			return;
		}
		check_answer(c, &packet);
		control_packet_close(&packet);
	}
}

static void turn(int timeout_ms)
{
	REQUIRE(loop_once(bench.loop, timeout_ms) == 0);
	for (int i = 0; i < CLIENTS; i++)
		receive(&clients[i]);
}

static void wait_answers(const struct client *c)
{
	uint64_t until = now_ns() + PATIENCE_NS;

	while (c->fd >= 0 && c->waited) {
		turn(1);
		REQUIRE(now_ns() < until);
	}
}

/* ---- requests ---- */

static void request(
	struct client *c, uint32_t type, uint32_t options, const uint8_t *body, size_t size)
{
	int fds[2] = { descriptors[options >> 4 & 7], descriptors[options >> 4 & 7] };
	unsigned int fd_count = options >> 4 & 7 ? 1 + (options >> 7) : 0;
	uint32_t serial = options & NO_SERIAL ? 0 : ++c->serial;
	int r;

	if (c->fd < 0)
		return;
	if (serial) {
		c->types[serial] = type;
		c->waited |= 1u << serial;
	}
	r = control_send(c->fd, type, serial, body, size, NULL, 0, fds, fd_count);
	REQUIRE(r == 0 || r == -EPIPE || r == -EAGAIN || r == -ECONNRESET);
	if (r < 0 && serial)
		c->waited &= ~(1u << serial);
	if (options & NO_WAIT)
		turn(0);
	else
		wait_answers(c);
}

static void greet(struct client *c)
{
	const struct control_hello hello = {
		.size = sizeof(hello), .major = CONTROL_MAJOR, .version = "0.1.0", .program = "fuzz"
	};

	request(c, CONTROL_HELLO, 0, (const void *)&hello, sizeof(hello));
}

static void come(struct client *c, bool with_greeting)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct client){ .fd = bench_connect(&bench) };
	turn(0); /* accepted, so that it is seen to go */
	if (with_greeting)
		greet(c);
}

static void act(struct client *c, uint32_t type, uint32_t options, const uint8_t *data, size_t size)
{
	uint8_t *body = fuzz_copy(data, size);
	uint8_t first = size ? body[0] : 0;

	if (type == DO_FAIL_LANES)
		fake.fail_lane = first ? -ENOSPC : 0;
	else if (type == DO_FINGERPRINT)
		fake.fingerprint = first;
	else if (type == DO_LANE_FAILS)
		fake_fail_lane(first);
	else if (type == DO_COME_ANEW)
		come(c, !first);
	if (type < DO_FAIL_LANES) {
		if (!(options & RAW_SIZE) && size >= 4)
			memcpy(body, &(uint32_t){ (uint32_t)size }, 4);
		request(c, type < 0x10 ? type : 0x100 + type, options, body, size);
	}
	free(body);
}

/* ---- one input ---- */

static bool all_gone(void)
{
	const struct control *c = bench.control;

	return list_empty(&c->sessions) && list_empty(&c->lanes) && list_empty(&c->opens) &&
	       list_empty(&c->datasets) && fake.lanes == 0 && fake.datasets == 0;
}

static void leave(void)
{
	uint64_t until;

	for (int i = 0; i < CLIENTS; i++) {
		wait_answers(&clients[i]);
		if (clients[i].fd >= 0)
			close(clients[i].fd);
		clients[i].fd = -1;
	}
	fake.fail_lane = 0;
	fake.fingerprint = 0;
	for (until = now_ns() + PATIENCE_NS; !all_gone();) {
		turn(1);
		REQUIRE(now_ns() < until);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned int silent = input_u8(&in);
	int before;

	if (!bench.control)
		start();
	turn(0);
	before = fuzz_lowest_fd();
	for (int i = 0; i < CLIENTS; i++)
		come(&clients[i], !(silent >> i & 1));
	for (unsigned int i = 0; i < RECORDS_MOST && in.left > 0; i++) {
		uint32_t type = input_u8(&in), options = input_u8(&in);
		size_t length = input_u16(&in), given;
		const uint8_t *body = input_take(&in, length, &given);

		act(&clients[options & SECOND_CLIENT], type, options, body, given);
	}
	leave();
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
