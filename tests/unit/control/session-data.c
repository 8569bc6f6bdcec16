/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions against a whole control: hello, datasets, paths. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench.h"
#include "fake-pipeline.h"
#include "protocol/stats.h"

static struct control_packet packet;

static void hello_names_what_is_missing(void **state)
{
	struct control_hello hello = { .size = sizeof(hello), .version = "9.0.0" };
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_connect(&b);
	hello.major = 9;
	bench_call(&b, fd, CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EPROTONOSUPPORT);
	assert_non_null(strstr(bench_error(&packet)->text, "9.0.0"));
	assert_int_equal(bench_receive(&b, fd, &packet), 0);
	close(fd);
	fd = bench_connect(&b);
	hello.major = CONTROL_MAJOR;
	hello.features = 4;
	bench_call(&b, fd, CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, &packet);
	assert_non_null(strstr(bench_error(&packet)->text, "0x4"));
	close(fd);
	fd = bench_client(&b); /* once is enough */
	hello.features = 0;
	bench_call(&b, fd, CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EPROTO);
	close(fd);
	bench_stop(&b);
}

static void a_newer_peer_is_told_what_to_do(void **state)
{
	struct {
		struct control_stats stats;
		uint32_t unknown;
	} newer = { .stats = { .size = sizeof(newer) } };
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	/* unknown but zero: the same as not said */
	assert_int_equal(bench_call(&b, fd, CONTROL_STATS, &newer, sizeof(newer), NULL, 0, &packet),
		CONTROL_STATS | CONTROL_REPLY);
	control_packet_close(&packet);
	newer.unknown = 1;
	bench_call(&b, fd, CONTROL_STATS, &newer, sizeof(newer), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -E2BIG);
	bench_call(&b, fd, 99, &newer, sizeof(newer), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -ENOSYS);
	assert_int_equal(bench_open_dataset(&b, fd, 0, &packet), 1); /* the session lives */
	control_packet_close(&packet);
	close(fd);
	bench_stop(&b);
}

static void dataset_with_classes_and_paths(void **state)
{
	struct control_paths paths = { .size = sizeof(paths), .first = 8, .count = 5 };
	struct control_paths_reply reply;
	const uint8_t *tail;
	size_t tail_size;
	struct bench b;
	char names[8];

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	paths.dataset = bench_open_dataset(&b, fd, 0, &packet);
	assert_true(paths.dataset > 0);
	assert_int_equal(packet.fd_count, 1);
	assert_int_equal(pread(packet.fds[0], names, sizeof(names), 0), 8);
	assert_memory_equal(names, "cat\0dog\0", 8);
	assert_true(fcntl(packet.fds[0], F_GET_SEALS) & F_SEAL_WRITE);
	control_packet_close(&packet);
	assert_int_equal(bench_call(&b, fd, CONTROL_PATHS, &paths, sizeof(paths), NULL, 0, &packet),
		CONTROL_PATHS | CONTROL_REPLY);
	assert_int_equal(control_body(&packet, &reply, sizeof(reply), &tail, &tail_size), 0);
	assert_int_equal(reply.count, 2); /* ids 8 and 9 */
	assert_int_equal(reply.bytes, 2 * (8 + 4 + 9));
	assert_int_equal(tail_size, reply.bytes);
	assert_memory_equal(tail + 12, "cat/8.jpg", 9);
	paths.first = UINT64_MAX;
	assert_int_equal(bench_call(&b, fd, CONTROL_PATHS, &paths, sizeof(paths), NULL, 0, &packet),
		CONTROL_PATHS | CONTROL_REPLY);
	paths.count = CONTROL_PATHS_MAX + 1;
	bench_call(&b, fd, CONTROL_PATHS, &paths, sizeof(paths), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EINVAL);
	paths.dataset = 77;
	bench_call(&b, fd, CONTROL_PATHS, &paths, sizeof(paths), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EBADF);
	close(fd);
	bench_stop(&b);
}

static void open_outside_of_the_roots_is_refused(void **state)
{
	static struct control_open_dataset body;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	snprintf(body.path, sizeof(body.path), "%s/data/set", b.directory); /* a lie */
	int other = open("/usr", O_PATH);
	bench_call(&b, fd, CONTROL_OPEN_DATASET, &body, sizeof(body), &other, 1, &packet);
	assert_int_equal(bench_error(&packet)->code, -EACCES);
	assert_non_null(strstr(bench_error(&packet)->text, body.path));
	assert_int_equal(fake.opens, 0);
	body.flags = 0x80;
	bench_call(&b, fd, CONTROL_OPEN_DATASET, &body, sizeof(body), &other, 1, &packet);
	assert_int_equal(bench_error(&packet)->code, -EINVAL);
	close(other);
	close(fd);
	bench_stop(&b);
}

/* Eight ranks open the same folder at once: one scan, one dataset in memory. */
static void opens_are_shared(void **state)
{
	struct bench b;
	int fd[4];
	static struct control_open_dataset body;

	(void)state;
	bench_start(&b, false);
	fake.hold_opens = true;
	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	snprintf(body.path, sizeof(body.path), "%s/data/set", b.directory);
	int path = open(body.path, O_PATH | O_CLOEXEC);
	for (int i = 0; i < 4; i++) {
		fd[i] = bench_client(&b);
		bench_send(fd[i], CONTROL_OPEN_DATASET, 70, &body, sizeof(body), &path, 1);
	}
	close(path);
	bench_settle(&b);
	close(fd[3]); /* one of them dies meanwhile */
	bench_settle(&b);
	fake.hold_opens = false;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			bench_receive(&b, fd[i], &packet), CONTROL_OPEN_DATASET | CONTROL_REPLY);
		assert_int_equal(packet.fd_count, 1);
		control_packet_close(&packet);
	}
	assert_int_equal(fake.opens, 1);
	/* just opened: given out again; with rebuild the disk is looked at, and memory shared */
	assert_true(bench_open_dataset(&b, fd[0], 0, &packet) > 0);
	control_packet_close(&packet);
	assert_int_equal(fake.opens, 1);
	assert_true(bench_open_dataset(&b, fd[0], CONTROL_DATASET_REBUILD, &packet) > 0);
	control_packet_close(&packet);
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.datasets, 1);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	bench_settle(&b);
	assert_int_equal(fake.datasets, 0);
	bench_stop(&b);
}

static void an_open_that_nobody_waits_for_ends(void **state)
{
	static struct control_open_dataset body;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	fake.hold_opens = true; /* for ever: only the stop flag ends it, or the next line hangs */
	int fd = bench_client(&b);
	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	snprintf(body.path, sizeof(body.path), "%s/data/set", b.directory);
	int path = open(body.path, O_PATH | O_CLOEXEC);
	bench_send(fd, CONTROL_OPEN_DATASET, 1000, &body, sizeof(body), &path, 1);
	close(path);
	/* about a second later the first report comes */
	assert_int_equal(bench_receive(&b, fd, &packet), CONTROL_PROGRESS);
	assert_int_equal(packet.header.serial, 1000);
	close(fd);
	bench_settle(&b);
	bench_stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hello_names_what_is_missing),
		TEST(a_newer_peer_is_told_what_to_do),
		TEST(dataset_with_classes_and_paths),
		TEST(open_outside_of_the_roots_is_refused),
		TEST(opens_are_shared),
		TEST(an_open_that_nobody_waits_for_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
