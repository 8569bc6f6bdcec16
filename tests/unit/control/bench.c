/* SPDX-License-Identifier: Apache-2.0 */
/* The bench. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "fake-pipeline.h"
#include "pipeline/pipeline.h"

#define PATIENCE_NS (2 * NS_PER_SEC)

void bench_start(struct bench *b, bool private_daemon)
{
	char path[96], text[CONFIG_TEXT] = "", warning[CONFIG_TEXT];

	log_set_level(0);
	fake_reset();
	memset(b, 0, sizeof(*b));
	snprintf(b->directory, sizeof(b->directory), "/tmp/feeder-bench-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	snprintf(b->socket, sizeof(b->socket), "%s/socket", b->directory);
	snprintf(path, sizeof(path), "%s/data", b->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	config_init(&b->config);
	b->config.limits.ring_bytes = 64 << 20;
	if (!private_daemon)
		assert_int_equal(config_add_root(&b->config, path), 0);
	snprintf(path, sizeof(path), "%s/data/set", b->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(loop_new(&b->loop), 0);
	server_init(&b->server);
	if (server_bind(&b->server, b->socket, false, warning, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	struct control_options options = {
		.loop = b->loop,
		.config = &b->config,
		.server = &b->server,
		.private_daemon = private_daemon,
		.cpus = 8,
		.workers = 8,
		.memory = 1 << 30,
	};
	if (control_new(&b->control, &options, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	struct pipeline_config pipeline = {
		.workers = 8,
		.lane_event = control_lane_event,
		.open_outside = control_open_outside,
		.context = b->control,
	};
	assert_int_equal(pipeline_new(&b->pipeline, &pipeline, text, sizeof(text)), 0);
	if (control_serve(b->control, b->pipeline, text, sizeof(text)) < 0)
		fail_msg("%s", text);
}

void bench_stop(struct bench *b)
{
	char command[96];

	control_free(b->control);
	pipeline_free(b->pipeline);
	loop_free(b->loop);
	config_deinit(&b->config);
	assert_int_equal(fake.lanes, 0);
	assert_int_equal(fake.datasets, 0);
	assert_int_equal(access(b->socket, F_OK), -1);
	snprintf(command, sizeof(command), "rm -rf %s", b->directory);
	assert_int_equal(system(command), 0);
}

void bench_settle(struct bench *b)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(loop_once(b->loop, 2), 0);
}

int bench_connect(struct bench *b)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", b->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

int bench_client(struct bench *b)
{
	struct control_hello hello = {
		.size = sizeof(hello),
		.major = CONTROL_MAJOR,
		.version = "0.1.0",
		.program = "bench",
	};
	static struct control_packet packet;
	int fd = bench_connect(b);

	assert_int_equal(bench_call(b, fd, CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, &packet),
		CONTROL_HELLO | CONTROL_REPLY);
	return fd;
}

void bench_send(int fd, uint32_t type, uint32_t serial, const void *body, size_t size,
	const int *fds, unsigned int fd_count)
{
	assert_int_equal(control_send(fd, type, serial, body, size, NULL, 0, fds, fd_count), 0);
}

uint32_t bench_receive(struct bench *b, int fd, struct control_packet *ret)
{
	uint64_t until = now_ns() + PATIENCE_NS;

	for (;;) {
		int r = control_receive(fd, ret, MSG_DONTWAIT);

		if (r == 1)
			return ret->header.type;
		if (r != -EAGAIN)
			return 0;
		if (now_ns() > until)
			fail_msg("nothing came in time");
		assert_int_equal(loop_once(b->loop, 1), 0);
	}
}

uint32_t bench_call(struct bench *b, int fd, uint32_t type, const void *body, size_t size,
	const int *fds, unsigned int fd_count, struct control_packet *ret)
{
	static uint32_t serial;

	bench_send(fd, type, ++serial, body, size, fds, fd_count);
	for (;;) {
		uint32_t got = bench_receive(b, fd, ret);

		if (got == 0 || (ret->header.serial == serial && got != CONTROL_PROGRESS))
			return got;
		control_packet_close(ret);
	}
}

void bench_expect_silence(struct bench *b, int fd)
{
	static struct control_packet packet;

	bench_settle(b);
	assert_int_equal(control_receive(fd, &packet, MSG_DONTWAIT), -EAGAIN);
}

uint32_t bench_open_dataset(struct bench *b, int fd, uint32_t flags, struct control_packet *ret)
{
	static struct control_open_dataset body;
	struct control_dataset reply;

	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	body.flags = flags;
	snprintf(body.path, sizeof(body.path), "%s/data/set", b->directory);
	int path = open(body.path, O_PATH | O_CLOEXEC);
	assert_true(path >= 0);
	uint32_t type = bench_call(b, fd, CONTROL_OPEN_DATASET, &body, sizeof(body), &path, 1, ret);
	close(path);
	if (type != (CONTROL_OPEN_DATASET | CONTROL_REPLY))
		return 0;
	assert_int_equal(control_body(ret, &reply, sizeof(reply), NULL, NULL), 0);
	return reply.dataset;
}

void bench_lane_request(struct control_open_lane *ret, uint32_t dataset, uint32_t rank)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = sizeof(*ret);
	ret->dataset = dataset;
	ret->rank = rank;
	ret->world = 4;
	ret->batch = 8;
	ret->accumulate = 1;
	ret->order = 1;
	ret->tail = 1;
	ret->bad = 1;
	snprintf(ret->job, sizeof(ret->job), "job");
	snprintf(ret->name, sizeof(ret->name), "train:set:0");
}

uint32_t bench_open_lane(struct bench *b, int fd, const struct control_open_lane *request,
	struct control_packet *ret)
{
	struct control_lane reply;
	uint32_t type =
		bench_call(b, fd, CONTROL_OPEN_LANE, request, sizeof(*request), NULL, 0, ret);

	if (type != (CONTROL_OPEN_LANE | CONTROL_REPLY))
		return 0;
	assert_int_equal(control_body(ret, &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(ret->fd_count, 3);
	return reply.lane;
}

const struct control_error *bench_error(const struct control_packet *packet)
{
	static struct control_error error;

	assert_int_equal(packet->header.type, CONTROL_ERROR);
	assert_int_equal(control_body(packet, &error, sizeof(error), NULL, NULL), 0);
	assert_true(error.code < 0);
	assert_true(error.text[0] != '\0');
	return &error;
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int fds_before;

int remember_fds(void **state)
{
	(void)state;
	fds_before = count_fds();
	return 0;
}

int check_fds(void **state)
{
	(void)state;
	return count_fds() == fds_before ? 0 : -1;
}
