/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions against a whole control: requests, refusals, deaths, and what is left behind. */
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
static struct control_open_lane request;

static void d13_lane_from_open_to_close_twice(void **state)
{
	struct control_close body = { .size = sizeof(body) };
	struct control_seek seek = { .size = sizeof(seek), .cursor_size = 16 };
	struct control_set_epoch epoch = { .size = sizeof(epoch), .epoch = 3 };
	struct control_lane reply;
	uint64_t one = 1;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	uint32_t dataset = bench_open_dataset(&b, fd, 0, &packet);
	control_packet_close(&packet);
	assert_int_equal(fake.active_workers, 8);
	bench_lane_request(&request, dataset, 0);
	uint32_t lane = bench_open_lane(&b, fd, &request, &packet);
	assert_true(lane > 0 && lane != dataset);
	assert_int_equal(fake.active_workers, 7);
	assert_int_equal(fake.worker_share, 100);
	assert_int_equal(write(packet.fds[2], &one, sizeof(one)), sizeof(one));
	bench_settle(&b);
	assert_int_equal(fake.doorbells, 1); /* on the edge, and never read */
	assert_int_equal(write(packet.fds[2], &one, sizeof(one)), sizeof(one));
	bench_settle(&b);
	assert_int_equal(fake.doorbells, 2);
	control_packet_close(&packet);
	seek.lane = lane;
	assert_int_equal(bench_call(&b, fd, CONTROL_SEEK, &seek, sizeof(seek), NULL, 0, &packet),
		CONTROL_SEEK | CONTROL_REPLY);
	assert_int_equal(control_body(&packet, &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(reply.lane, lane);
	epoch.lane = lane;
	assert_int_equal(
		bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), NULL, 0, &packet),
		CONTROL_SET_EPOCH | CONTROL_REPLY);
	/* the dataset's handle may go first */
	body.dataset = dataset;
	bench_call(&b, fd, CONTROL_CLOSE, &body, sizeof(body), NULL, 0, &packet);
	body.dataset = 0;
	body.lane = lane;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			bench_call(&b, fd, CONTROL_CLOSE, &body, sizeof(body), NULL, 0, &packet),
			CONTROL_CLOSE | CONTROL_REPLY);
	bench_settle(&b);
	assert_int_equal(fake.lanes, 0);
	assert_int_equal(fake.active_workers, 8);
	bench_call(&b, fd, CONTROL_SEEK, &seek, sizeof(seek), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EBADF);
	close(fd);
	bench_stop(&b);
}

static void ids_must_be_sealed(void **state)
{
	struct control_set_epoch epoch = { .size = sizeof(epoch), .ids = 3 };
	int64_t ids[3] = { 5, 6, 7 };
	struct control_lane reply;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	epoch.lane = bench_open_lane(&b, fd, &request, &packet);
	control_packet_close(&packet);
	bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), NULL, 0, &packet);
	assert_non_null(strstr(bench_error(&packet)->text, "brings no memfd"));
	int memfd = memfd_create("ids", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	assert_int_equal(write(memfd, ids, sizeof(ids)), sizeof(ids));
	bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), &memfd, 1, &packet);
	assert_non_null(strstr(bench_error(&packet)->text, "sealed"));
	assert_int_equal(fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(
		bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), &memfd, 1, &packet),
		CONTROL_SET_EPOCH | CONTROL_REPLY);
	assert_int_equal(control_body(&packet, &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(reply.first, 18);
	epoch.ids = 4;
	bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), &memfd, 1, &packet);
	assert_non_null(strstr(bench_error(&packet)->text, "shorter than 4"));
	epoch.ids = UINT64_MAX / 8 + 2; /* times 8 would wrap */
	bench_call(&b, fd, CONTROL_SET_EPOCH, &epoch, sizeof(epoch), &memfd, 1, &packet);
	assert_int_equal(bench_error(&packet)->code, -EDQUOT);
	close(memfd);
	close(fd);
	bench_stop(&b);
}

static void one_lane_a_rank_and_the_newer_may_win(void **state)
{
	struct control_lane_lost lost;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int first = bench_client(&b), second = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, first, 0, &packet), 0);
	control_packet_close(&packet);
	uint32_t lane = bench_open_lane(&b, first, &request, &packet);
	assert_true(lane > 0);
	control_packet_close(&packet);
	request.dataset = bench_open_dataset(&b, second, 0, &packet);
	control_packet_close(&packet);
	assert_int_equal(bench_open_lane(&b, second, &request, &packet), 0);
	assert_int_equal(bench_error(&packet)->code, -EBUSY);
	assert_non_null(strstr(bench_error(&packet)->text, "attached already, by bench, pid"));
	request.seed = 5;
	assert_int_equal(bench_open_lane(&b, second, &request, &packet), 0);
	assert_int_equal(bench_error(&packet)->code, -EEXIST);
	assert_non_null(strstr(bench_error(&packet)->text, "seed 0, this one 5"));
	request.seed = 0;
	request.flags = CONTROL_LANE_TAKEOVER;
	assert_true(bench_open_lane(&b, second, &request, &packet) > 0);
	control_packet_close(&packet);
	assert_int_equal(bench_receive(&b, first, &packet), CONTROL_LANE_LOST);
	assert_int_equal(control_body(&packet, &lost, sizeof(lost), NULL, NULL), 0);
	assert_int_equal(lost.lane, lane);
	bench_settle(&b);
	assert_int_equal(fake.lanes, 1);
	close(first);
	close(second);
	bench_stop(&b);
}

/* Both come before either ring is made. */
static void two_at_once_for_one_rank(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int first = bench_client(&b), second = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, first, 0, &packet), 2);
	control_packet_close(&packet);
	fake.hold_lanes = true;
	bench_send(first, CONTROL_OPEN_LANE, 900, &request, sizeof(request), NULL, 0);
	bench_settle(&b);
	request.dataset = bench_open_dataset(&b, second, 0, &packet);
	control_packet_close(&packet);
	assert_int_equal(bench_open_lane(&b, second, &request, &packet), 0);
	assert_int_equal(bench_error(&packet)->code, -EBUSY);
	/* a takeover of what is not yet there: the one that waits is told */
	request.flags = CONTROL_LANE_TAKEOVER;
	bench_send(second, CONTROL_OPEN_LANE, 901, &request, sizeof(request), NULL, 0);
	assert_int_equal(bench_receive(&b, first, &packet), CONTROL_ERROR);
	assert_int_equal(bench_error(&packet)->code, -ESTALE);
	fake.hold_lanes = false;
	assert_int_equal(bench_receive(&b, second, &packet), CONTROL_OPEN_LANE | CONTROL_REPLY);
	control_packet_close(&packet);
	bench_expect_silence(&b, first);
	assert_int_equal(fake.lanes, 1);
	close(first);
	close(second);
	bench_stop(&b);
}

static void d12_death_while_a_lane_opens(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	fake.hold_lanes = true;
	bench_send(fd, CONTROL_OPEN_LANE, 900, &request, sizeof(request), NULL, 0);
	bench_settle(&b);
	close(fd);
	bench_settle(&b);
	/* its place is free although its ring is still being made */
	fd = bench_client(&b);
	request.dataset = bench_open_dataset(&b, fd, 0, &packet);
	control_packet_close(&packet);
	fake.hold_lanes = false;
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	bench_settle(&b);
	assert_int_equal(fake.lanes, 1);
	close(fd);
	bench_stop(&b);
}

static void d12_memory_of_a_closed_lane_counts_while_it_is_mapped(void **state)
{
	struct control_close body = { .size = sizeof(body) };
	struct bench b;

	(void)state;
	bench_start(&b, false);
	fake.lane_bytes = 40 << 20; /* of 64 MiB allowed */
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	body.lane = bench_open_lane(&b, fd, &request, &packet);
	int kept = packet.fds[0];
	packet.fds[0] = -1;
	control_packet_close(&packet);
	bench_call(&b, fd, CONTROL_CLOSE, &body, sizeof(body), NULL, 0, &packet);
	bench_settle(&b);
	assert_int_equal(fake.lanes, 0);
	assert_int_equal(bench_open_lane(&b, fd, &request, &packet), 0);
	assert_int_equal(bench_error(&packet)->code, -EDQUOT);
	/* nor does a new session help */
	close(fd);
	bench_settle(&b);
	fd = bench_client(&b);
	request.dataset = bench_open_dataset(&b, fd, 0, &packet);
	control_packet_close(&packet);
	assert_int_equal(bench_open_lane(&b, fd, &request, &packet), 0);
	close(kept);
	bench_settle(&b);
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	close(fd);
	bench_stop(&b);
}

static void a_lane_that_cannot_be_made_leaves_nothing(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	fake.lane_bytes = 40 << 20;
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	fake.fail_lane = -ENOMEM;
	for (int i = 0; i < 3; i++) { /* neither bytes nor place nor lane stay taken */
		assert_int_equal(bench_open_lane(&b, fd, &request, &packet), 0);
		assert_int_equal(bench_error(&packet)->code, -ENOMEM);
	}
	fake.fail_lane = 0;
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	close(fd);
	bench_stop(&b);
}

static void a_failed_lane_is_told_once(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	uint32_t lane = bench_open_lane(&b, fd, &request, &packet);
	control_packet_close(&packet);
	fake_fail_lane(1);
	assert_int_equal(bench_receive(&b, fd, &packet), CONTROL_ERROR);
	assert_int_equal(packet.header.serial, 0);
	assert_int_equal(bench_error(&packet)->lane, lane);
	assert_string_equal(bench_error(&packet)->text, "the budget is spent");
	fake_fail_lane(1);
	bench_expect_silence(&b, fd);
	close(fd);
	bench_stop(&b);
}

static void statistics_are_a_sealed_snapshot(void **state)
{
	struct control_stats stats = { .size = sizeof(stats) };
	struct control_stats_reply reply;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 3);
	control_packet_close(&packet);
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	assert_int_equal(bench_call(&b, fd, CONTROL_STATS, &stats, sizeof(stats), NULL, 0, &packet),
		CONTROL_STATS | CONTROL_REPLY);
	assert_int_equal(control_body(&packet, &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(packet.fd_count, 1);
	assert_true(fcntl(packet.fds[0], F_GET_SEALS) & F_SEAL_WRITE);
	const uint8_t *m = mmap(NULL, reply.bytes, PROT_READ, MAP_SHARED, packet.fds[0], 0);
	assert_true(m != MAP_FAILED);
	const struct stats_header *header = (const void *)m;
	const uint64_t *counters = (const void *)(m + header->daemon_offset);
	const struct stats_lane_record *lane = (const void *)(m + header->lane_offset);
	const struct stats_case *first = (const void *)(m + header->case_offset);
	assert_int_equal(header->magic, STATS_MAGIC);
	assert_int_equal(header->total_size, reply.bytes);
	assert_int_equal(header->lane_count, 1);
	assert_int_equal(header->case_count, 1);
	assert_int_equal(counters[STATS_DAEMON_reads], 42);
	assert_int_equal(counters[STATS_DAEMON_sessions], 1);
	assert_int_equal(counters[STATS_DAEMON_lanes], 1);
	assert_int_equal(counters[STATS_DAEMON_ring_bytes], 1 << 20);
	assert_int_equal(lane->rank, 3);
	assert_int_equal(lane->uid, geteuid());
	assert_string_equal(lane->name, "train:set:0");
	assert_non_null(strstr(lane->dataset, "data/set"));
	assert_int_equal(lane->counters[STATS_LANE_batches], 101);
	assert_int_equal(first->id, 5);
	munmap((void *)(uintptr_t)m, reply.bytes);
	control_packet_close(&packet);
	close(fd);
	bench_stop(&b);
}

static void draining_tells_and_refuses(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	fake.never_drained = true;
	control_drain(b.control);
	assert_int_equal(fake.drains, 1);
	assert_int_equal(bench_receive(&b, fd, &packet), CONTROL_DRAINING);
	assert_int_equal(access(b.socket, F_OK), -1);
	request.rank = 1;
	assert_int_equal(bench_open_lane(&b, fd, &request, &packet), 0);
	assert_int_equal(bench_error(&packet)->code, -ESHUTDOWN);
	close(fd); /* the last lane that was in the way */
	assert_int_equal(loop_run(b.loop), 0);
	bench_stop(&b);
}

static void draining_ends_when_lanes_are_drained(void **state)
{
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	bench_lane_request(&request, bench_open_dataset(&b, fd, 0, &packet), 0);
	control_packet_close(&packet);
	assert_true(bench_open_lane(&b, fd, &request, &packet) > 0);
	control_packet_close(&packet);
	control_drain(b.control);
	assert_int_equal(loop_run(b.loop), 0);
	close(fd);
	bench_stop(&b);
}

static void a_private_daemon_reads_all_and_leaves_with_its_last_session(void **state)
{
	static struct control_open_dataset body;
	struct bench b;

	(void)state;
	bench_start(&b, true);
	int fd = bench_client(&b);
	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	snprintf(body.path, sizeof(body.path), "/usr");
	int path = open("/usr", O_PATH);
	assert_int_equal(
		bench_call(&b, fd, CONTROL_OPEN_DATASET, &body, sizeof(body), &path, 1, &packet),
		CONTROL_OPEN_DATASET | CONTROL_REPLY);
	control_packet_close(&packet);
	close(path);
	close(fd);
	assert_int_equal(loop_run(b.loop), 0); /* ends by itself */
	assert_int_equal(access(b.socket, F_OK), -1);
	bench_stop(&b);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
	struct control_paths paths = { .size = sizeof(paths), .count = 10 };
	struct bench b;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b), other = bench_client(&b);
	paths.dataset = bench_open_dataset(&b, fd, 0, &packet);
	control_packet_close(&packet);
	int r = 0;
	for (unsigned int i = 0; r == 0 && i < 100000; i++) {
		r = control_send(fd, CONTROL_PATHS, 5, &paths, sizeof(paths), NULL, 0, NULL, 0);
		if (r == -EAGAIN)
			r = 0;
		assert_int_equal(loop_once(b.loop, 0), 0);
	}
	assert_int_equal(r, -EPIPE);
	assert_true(bench_open_dataset(&b, other, 0, &packet) > 0);
	control_packet_close(&packet);
	close(fd);
	close(other);
	bench_stop(&b);
}

static void sessions_beyond_the_limit_are_told(void **state)
{
	struct bench b;
	struct control_hello hello = { .size = sizeof(hello), .major = CONTROL_MAJOR };
	int fd[3];

	(void)state;
	bench_start(&b, false);
	b.config.limits.sessions = 2;
	char text[CONFIG_TEXT];
	assert_int_equal(control_reload(b.control, &b.config, text, sizeof(text)), 0);
	for (int i = 0; i < 2; i++)
		fd[i] = bench_client(&b);
	fd[2] = bench_connect(&b);
	bench_call(&b, fd[2], CONTROL_HELLO, &hello, sizeof(hello), NULL, 0, &packet);
	assert_int_equal(bench_error(&packet)->code, -EDQUOT);
	assert_int_equal(bench_receive(&b, fd[2], &packet), 0);
	close(fd[2]);
	close(fd[0]);
	bench_settle(&b);
	fd[2] = bench_client(&b);
	close(fd[1]);
	close(fd[2]);
	bench_stop(&b);
}

/* The kernel strips descriptors at the receiver's limit without a word to the sender. */
static void d06_lost_descriptors_are_named(void **state)
{
	struct rlimit old, low;
	struct bench b;
	static struct control_open_dataset body;

	(void)state;
	bench_start(&b, false);
	int fd = bench_client(&b);
	memset(&body, 0, sizeof(body));
	body.size = sizeof(body);
	snprintf(body.path, sizeof(body.path), "%s/data/set", b.directory);
	int path = open(body.path, O_PATH);
	int lowest = dup(path);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	bench_send(fd, CONTROL_OPEN_DATASET, 5, &body, sizeof(body), &path, 1);
	low.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	uint32_t type = bench_receive(&b, fd, &packet);
	/* and nobody can come in, but is told why */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	int late = bench_connect(&b);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	struct control_hello hello = { .size = sizeof(hello), .major = CONTROL_MAJOR };
	bench_send(late, CONTROL_HELLO, 1, &hello, sizeof(hello), NULL, 0);
	struct control_packet lateness;
	uint32_t late_type = bench_receive(&b, late, &lateness);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(type, CONTROL_ERROR);
	assert_int_equal(bench_error(&packet)->code, -EMFILE);
	assert_int_equal(late_type, CONTROL_ERROR);
	assert_int_equal(bench_error(&lateness)->code, -EMFILE);
	close(late);
	close(path);
	close(fd);
	bench_stop(&b);
}

/* Whatever the bytes, the daemon answers, closes, or stays silent; and serves the next. */
static void random_packets(void **state)
{
	const char *longer = getenv("FEEDER_LONG");
	unsigned int rounds = longer ? 20000 : 400;
	struct bench b;

	(void)state;
	bench_start(&b, false);
	srand(20240607);
	int path = open("/tmp", O_PATH);
	for (unsigned int i = 0; i < rounds; i++) {
		static uint8_t body[CONTROL_PACKET_MAX];
		int fd = i % 8 ? bench_client(&b) : bench_connect(&b);

		for (unsigned int k = 0; k < 4; k++) {
			uint32_t size = (uint32_t)rand() % 6000;

			memset(body, 0, size);
			for (uint32_t n = rand() % 64; size >= 4 && n > 0; n--)
				body[(uint32_t)rand() % size] = (uint8_t)rand();
			if (size >= 4 && rand() % 4)
				memcpy(body, &size, sizeof(size));
			/* on an error the session is closed already */
			if (control_send(fd, (uint32_t)rand() % 12, (uint32_t)rand() % 3, body,
				    size, NULL, 0, &path, rand() % 2) < 0)
				break;
			assert_int_equal(loop_once(b.loop, 0), 0);
		}
		close(fd);
	}
	close(path);
	int fd = bench_client(&b);
	assert_true(bench_open_dataset(&b, fd, 0, &packet) > 0);
	control_packet_close(&packet);
	close(fd);
	bench_stop(&b);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(d13_lane_from_open_to_close_twice),
		TEST(ids_must_be_sealed),
		TEST(one_lane_a_rank_and_the_newer_may_win),
		TEST(two_at_once_for_one_rank),
		TEST(d12_death_while_a_lane_opens),
		TEST(d12_memory_of_a_closed_lane_counts_while_it_is_mapped),
		TEST(a_lane_that_cannot_be_made_leaves_nothing),
		TEST(a_failed_lane_is_told_once),
		TEST(statistics_are_a_sealed_snapshot),
		TEST(draining_tells_and_refuses),
		TEST(draining_ends_when_lanes_are_drained),
		TEST(a_private_daemon_reads_all_and_leaves_with_its_last_session),
		TEST(a_client_that_does_not_read_is_dropped),
		TEST(sessions_beyond_the_limit_are_told),
		TEST(d06_lost_descriptors_are_named),
		TEST(random_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
