/* SPDX-License-Identifier: Apache-2.0 */
/* The program itself against a daemon's double: its exit statuses, and that nothing hangs. */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../client/fake-daemon.h"
#include "protocol/control.h"

static const char *program;

struct answer {
	struct snapshot *snapshot;
	uint16_t major; /* of the hello; 0: ours */
};

/* Guards the snapshot: the fake daemon's thread reads it while the test changes it. */
static pthread_mutex_t sample_lock = PTHREAD_MUTEX_INITIALIZER;

static int on_packet(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct answer *a = context;

	(void)fake;
	if (packet->header.type == CONTROL_HELLO && a->major) {
		struct control_hello hello = {
			.size = sizeof(hello),
			.major = a->major,
			.version = "9.0.0",
		};

		control_send(fd, CONTROL_HELLO | CONTROL_REPLY, packet->header.serial, &hello,
			sizeof(hello), NULL, 0, NULL, 0);
		return 1;
	}
	if (packet->header.type == CONTROL_STATS && a->snapshot) {
		struct control_stats_reply reply = { .size = sizeof(reply) };
		int segment;

		pthread_mutex_lock(&sample_lock);
		segment = sample_segment(a->snapshot);
		pthread_mutex_unlock(&sample_lock);
		fcntl(segment, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		control_send(fd, CONTROL_STATS | CONTROL_REPLY, packet->header.serial, &reply,
			sizeof(reply), NULL, 0, &segment, 1);
		close(segment);
		return 1;
	}
	return 0;
}

struct ran {
	int status; /* exit status; -signal */
	char out[65536];
	char err[4096];
};

static void slurp(const char *path, char *ret, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	ret[fread(ret, 1, size - 1, f)] = '\0';
	fclose(f);
	unlink(path);
}

/* Runs feeder-stat with stdout into a file, or into a pipe that nobody reads. */
static void run(struct ran *ret, bool closed_pipe, const char *const *arguments)
{
	char out[64], err[64];
	int ends[2], status;
	pid_t pid;

	snprintf(out, sizeof(out), "/tmp/stat-program-%d.out", (int)getpid());
	snprintf(err, sizeof(err), "/tmp/stat-program-%d.err", (int)getpid());
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	pid = fork();
	if (pid == 0) {
		const char *argv[16] = { program };
		int o = closed_pipe ? ends[1] : open(out, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		int e = open(err, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		for (int i = 0; arguments[i]; i++)
			argv[i + 1] = arguments[i];
		signal(SIGPIPE, SIG_DFL);
		alarm(30);
		if (dup2(o, 1) < 0 || dup2(e, 2) < 0)
			_exit(126);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	ret->out[0] = '\0';
	if (!closed_pipe)
		slurp(out, ret->out, sizeof(ret->out));
	slurp(err, ret->err, sizeof(ret->err));
}

#define RUN(ret, ...) run(ret, false, (const char *const[]){ __VA_ARGS__, NULL })

static void expect(const struct ran *r, int status, const char *out, const char *err)
{
	if (r->status != status || !strstr(r->out, out) || !strstr(r->err, err))
		print_error("%d\n%s\n%s\n", r->status, r->out, r->err);
	assert_int_equal(r->status, status);
	assert_non_null(strstr(r->out, out));
	assert_non_null(strstr(r->err, err));
}

static void usage_is_two(void **state)
{
	static struct ran r;

	(void)state;
	RUN(&r, "gpu");
	expect(&r, 2, "", "this version (0.1.0) has no gpu\n");
	RUN(&r, "trace", "--socket", "/x");
	expect(&r, 2, "", "has no trace\n");
	RUN(&r, "ceiling");
	expect(&r, 2, "", "has no ceiling\n");
	RUN(&r, "tpo");
	expect(&r, 2, "", "there is no command 'tpo'");
	RUN(&r, "--interval", "0");
	expect(&r, 2, "", "--interval takes");
	RUN(&r, "--interval", "nan");
	expect(&r, 2, "", "--interval takes");
	RUN(&r, "--count", "-1");
	expect(&r, 2, "", "--count takes");
	RUN(&r, "--socket");
	expect(&r, 2, "", "unknown or incomplete option --socket");
	RUN(&r, "metrics", "--json");
	expect(&r, 2, "", "--json goes with why and errors, and not with metrics");
	RUN(&r, "top", "why");
	expect(&r, 2, "", "not also 'why'");
	RUN(&r, "--help");
	expect(&r, 0, "usage: feeder-stat", "");
	RUN(&r, "--version");
	expect(&r, 0, "feeder-stat 0.1.0\n", "");
}

static void no_daemon_is_three(void **state)
{
	static const char *const commands[] = { "json", "health" };
	static struct ran r;

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		RUN(&r, commands[i], "--socket", "/tmp/no-such-feeder.sock");
		expect(&r, 3, "", "no daemon at /tmp/no-such-feeder.sock");
		assert_string_equal(r.out, "");
	}
}

static void what_can_be_printed_is_zero(void **state)
{
	struct snapshot s;
	struct answer answer = { .snapshot = &s };
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = on_packet, .context = &answer });
	static struct ran r;

	(void)state;
	pthread_mutex_lock(&sample_lock);
	sample_new(&s, 2);
	pthread_mutex_unlock(&sample_lock);
	RUN(&r, "json", "--socket", fake->path);
	expect(&r, 0, "{\"schema\":\"feeder-stat/1\",\"socket\":\"/tmp/feeder-fake-", "");
	RUN(&r, "metrics", "--socket", fake->path);
	expect(&r, 0, "\n# EOF\n", "");
	RUN(&r, "errors", "--socket", fake->path);
	expect(&r, 0, "rank 1: 0 of 25600 places asked for a bad sample\n", "");
	RUN(&r, "digest", "--socket", fake->path);
	expect(&r, 0, "order fedcba9876543210", "");
	RUN(&r, "why", "--once", "--socket", fake->path);
	expect(&r, 0, "rank 0: nothing is short", "");
	/* the snapshot stands still, so the second is not later than the first: as if --once */
	RUN(&r, "why", "--interval", "0.01", "--socket", fake->path);
	expect(&r, 0, "rank 1: nothing is short", "");
	RUN(&r, "--interval", "0.01", "--count", "2", "--socket", fake->path);
	expect(&r, 0, "slurm-17.0", "");
	assert_non_null(strstr(strstr(r.out, "LIMIT") + 1, "LIMIT")); /* twice */
	RUN(&r, "health", "--socket", fake->path);
	expect(&r, 0, "ok; library 0.1.0, daemon 0.1.0", "");
	pthread_mutex_lock(&sample_lock);
	s.header.draining = 1;
	pthread_mutex_unlock(&sample_lock);
	RUN(&r, "health", "--socket", fake->path);
	expect(&r, 1, "unwell: the daemon is draining", "");
	RUN(&r, "json", "--socket", fake->path);
	expect(&r, 0, "\"draining\":true", "");
	pthread_mutex_lock(&sample_lock);
	s.header.lane_count = 0;
	pthread_mutex_unlock(&sample_lock);
	RUN(&r, "why", "--once", "--socket", fake->path);
	expect(&r, 0, "", "no lane is open");
	assert_string_equal(r.out, "");
	fake_stop(fake);
	snapshot_free(&s);
}

static void another_major_or_no_answer_is_unwell(void **state)
{
	struct answer answer = { .major = 9 };
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = on_packet, .context = &answer });
	static struct ran r;

	(void)state;
	RUN(&r, "health", "--socket", fake->path);
	expect(&r, 1, "unwell: the daemon at /tmp/feeder-fake-", "");
	assert_non_null(strstr(r.out, "speaks protocol 9.0"));
	assert_non_null(strstr(r.out, "library 0.1.0"));
	RUN(&r, "json", "--socket", fake->path);
	expect(&r, 3, "", "speaks protocol 9.0");
	fake_freeze(fake, true);
	RUN(&r, "health", "--socket", fake->path);
	expect(&r, 1, "unwell: ", "");
	fake_freeze(fake, false);
	fake_stop(fake);
}

static void a_reader_that_went_away_ends_it_quietly(void **state)
{
	struct snapshot s;
	struct answer answer = { .snapshot = &s };
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = on_packet, .context = &answer });
	const char *arguments[] = { "json", "--count", "1000000", "--interval", "0.01", "--socket",
		fake->path, NULL };
	static struct ran r;

	(void)state;
	pthread_mutex_lock(&sample_lock);
	sample_new(&s, 1);
	pthread_mutex_unlock(&sample_lock);
	run(&r, true, arguments);
	expect(&r, 0, "", "");
	assert_string_equal(r.err, "");
	fake_stop(fake);
	snapshot_free(&s);
}

static void an_interrupt_ends_a_wait(void **state)
{
	struct snapshot s;
	struct answer answer = { .snapshot = &s };
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = on_packet, .context = &answer });
	int status, ready[2];
	char byte;
	pid_t pid;

	(void)state;
	pthread_mutex_lock(&sample_lock);
	sample_new(&s, 1);
	pthread_mutex_unlock(&sample_lock);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (dup2(ready[1], 1) < 0)
			_exit(126);
		alarm(60);
		execl(program, program, "json", "--count", "2", "--interval", "3600", "--socket",
			fake->path, (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	/* the first object is out: now it sleeps for an hour */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(ready[0]);
	fake_stop(fake);
	snapshot_free(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usage_is_two),
		cmocka_unit_test(no_daemon_is_three),
		cmocka_unit_test(what_can_be_printed_is_zero),
		cmocka_unit_test(another_major_or_no_answer_is_unwell),
		cmocka_unit_test(a_reader_that_went_away_ends_it_quietly),
		cmocka_unit_test(an_interrupt_ends_a_wait),
	};

	if (argc != 2)
		return 2;
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
