/* SPDX-License-Identifier: Apache-2.0 */
/* Which socket, and hello. Private daemons have their own test. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../clients/c/client.h"
#include "base/fd.h"

static char notice_line[256];

static void keep_notice(void *context, const char *line)
{
	(void)context;
	snprintf(notice_line, sizeof(notice_line), "%s", line);
}

static int clean(void **state)
{
	(void)state;
	unsetenv("FEEDER_SOCKET");
	setenv("FEEDER_DAEMON", "/nonexistent/feederd", 1);
	fdr_system_socket = "/tmp/feeder-no-such-system.sock";
	notice_line[0] = '\0';
	return 0;
}

static struct feeder_connect_options make_options(const char *socket, int timeout_ms)
{
	struct feeder_connect_options options;

	feeder_connect_options_init(&options);
	options.socket = socket;
	options.timeout_ms = timeout_ms;
	options.notice = keep_notice;
	return options;
}

static void a_named_socket_is_waited_for_and_never_replaced(void **state)
{
	struct feeder_connect_options options = make_options("/tmp/feeder-no-such.sock", 50);
	struct fake *system = fake_start(NULL, NULL);
	struct feeder *f = NULL;

	(void)state;
	fdr_system_socket = system->path;
	assert_int_equal(feeder_connect(&f, &options), -ETIMEDOUT);
	assert_error_says("no daemon at /tmp/feeder-no-such.sock within 50 ms (No such file");
	options.socket = NULL;
	setenv("FEEDER_SOCKET", "/tmp/feeder-no-such.sock", 1);
	assert_int_equal(feeder_connect(&f, &options), -ETIMEDOUT);
	assert_error_says("unset FEEDER_SOCKET");
	assert_null(f);
	assert_int_equal(system->attached, 0);
	fake_stop(system);
}

struct late {
	char path[64];
	struct fake *fake;
};

static void *start_late(void *argument)
{
	struct late *late = argument;

	usleep(60000);
	late->fake = fake_start(late->path, NULL);
	return NULL;
}

static void a_named_socket_may_come_later(void **state)
{
	struct late late = { .fake = NULL };
	struct feeder_connect_options options = make_options(late.path, 10000);
	struct feeder *f = NULL;
	pthread_t thread;

	(void)state;
	snprintf(late.path, sizeof(late.path), "/tmp/feeder-late-%d.sock", (int)getpid());
	pthread_create(&thread, NULL, start_late, &late);
	assert_int_equal(feeder_connect(&f, &options), 0);
	pthread_join(thread, NULL);
	assert_string_equal(feeder_socket_path(f), late.path);
	assert_int_equal(feeder_is_private(f), 1);
	assert_true(feeder_fd(f) >= 0);
	feeder_disconnect(f);
	fake_stop(late.fake);
}

/* A socket file that nobody listens to. */
static void make_refusing(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	unlink(path);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void the_system_daemon_comes_before_a_private_one(void **state)
{
	struct feeder_connect_options options = make_options(NULL, 2000);
	struct fake *fake = fake_start(NULL, NULL);
	struct feeder *f = NULL;

	(void)state;
	fdr_system_socket = fake->path;
	assert_int_equal(feeder_connect(&f, &options), 0);
	assert_string_equal(feeder_socket_path(f), fake->path);
	assert_string_equal(notice_line, "");
	feeder_disconnect(f);
	fake_stop(fake);
}

static void a_refusing_system_daemon_gives_one_notice(void **state)
{
	struct feeder_connect_options options = make_options(NULL, 50);
	struct feeder *f = NULL;

	(void)state;
	fdr_system_socket = "/tmp/feeder-refusing.sock";
	make_refusing(fdr_system_socket);
	assert_int_equal(feeder_connect(&f, &options), -ENOENT);
	assert_error_says("/nonexistent/feederd is not an executable file");
	assert_string_equal(notice_line, "the daemon at /tmp/feeder-refusing.sock refuses "
					 "(Connection refused): using a private "
					 "daemon instead");
	unlink(fdr_system_socket);
	/* one that is absent is no news */
	notice_line[0] = '\0';
	assert_int_equal(feeder_connect(&f, &options), -ENOENT);
	assert_string_equal(notice_line, "");
}

static int refuse_hello(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	(void)fake;
	fake_send_error(
		fd, packet->header.serial, *(int *)context, "uid 12 may not use this daemon");
	return 1;
}

static void a_system_daemon_that_serves_others_gives_the_notice_too(void **state)
{
	struct feeder_connect_options options = make_options(NULL, 2000);
	int code = -EACCES;
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = refuse_hello, .context = &code });
	struct feeder *f = NULL;

	(void)state;
	fdr_system_socket = fake->path;
	assert_int_equal(feeder_connect(&f, &options), -ENOENT);
	assert_non_null(strstr(notice_line, "refuses (Permission denied)"));
	/* by name it is an error */
	options.socket = fake->path;
	assert_int_equal(feeder_connect(&f, &options), -EACCES);
	assert_string_equal(feeder_last_error(), "uid 12 may not use this daemon");
	fake_stop(fake);
}

static int other_major(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct control_hello body = {
		.size = sizeof(body), .major = 9, .minor = 4, .version = "8.1"
	};

	(void)fake;
	(void)context;
	control_send(fd, CONTROL_HELLO | CONTROL_REPLY, packet->header.serial, &body, sizeof(body),
		NULL, 0, NULL, 0);
	return 1;
}

static void another_major_is_named(void **state)
{
	struct fake *fake = fake_start(NULL, &(struct fake_config){ .on_packet = other_major });
	struct feeder_connect_options options = make_options(fake->path, 2000);
	struct feeder *f = NULL;

	(void)state;
	assert_int_equal(feeder_connect(&f, &options), -EPROTO);
	assert_error_says("(version 8.1) speaks protocol 9.4, this library (0.1.0) speaks 1.x");
	fake_stop(fake);
}

static int newer_body(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct {
		struct control_hello hello;
		uint64_t newer;
	} body = { .hello = { .size = sizeof(body), .major = 1, .minor = 7, .version = "0.9.0" },
		.newer = *(uint64_t *)context };

	(void)fake;
	control_send(fd, CONTROL_HELLO | CONTROL_REPLY, packet->header.serial, &body, sizeof(body),
		NULL, 0, NULL, 0);
	return 1;
}

static void a_newer_minor_is_fine_until_it_uses_news(void **state)
{
	uint64_t news = 0;
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){ .on_packet = newer_body, .context = &news });
	struct feeder_connect_options options = make_options(fake->path, 2000);
	struct feeder *f = NULL;

	(void)state;
	assert_int_equal(feeder_connect(&f, &options), 0);
	feeder_disconnect(f);
	fake_set(fake, &news, &(uint64_t){ 1 }, sizeof(news));
	assert_int_equal(feeder_connect(&f, &options), -E2BIG);
	assert_error_says("update the library");
	fake_stop(fake);
}

static int say_nothing(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	(void)fake;
	(void)fd;
	(void)packet;
	(void)context;
	return 1;
}

static void a_mute_daemon_is_a_time_out(void **state)
{
	struct fake *fake = fake_start(NULL, &(struct fake_config){ .on_packet = say_nothing });
	struct feeder_connect_options options = make_options(fake->path, 60);
	struct feeder *f = NULL;

	(void)state;
	assert_int_equal(feeder_connect(&f, &options), -ETIMEDOUT);
	assert_error_says("gave no answer within 60 ms");
	fake_stop(fake);
}

static void wrong_options_are_refused(void **state)
{
	char path[300];
	struct feeder_connect_options options = make_options(path, 50);
	struct feeder *f = NULL;
	struct {
		struct feeder_connect_options options;
		uint64_t newer;
	} newer;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(feeder_connect(&f, &options), -ENAMETOOLONG);
	assert_error_says("longer than the kernel allows");
	options.timeout_ms = -1;
	assert_int_equal(feeder_connect(&f, &options), -EINVAL);
	options.timeout_ms = 50;
	options.fresh = 1;
	assert_int_equal(feeder_connect(&f, &options), -EINVAL);
	assert_error_says("exclude each other");
	options.size = 0;
	assert_int_equal(feeder_connect(&f, &options), -EINVAL);
	newer.options = make_options("/tmp/feeder-no-such.sock", 20);
	newer.options.size = sizeof(newer);
	newer.newer = 0;
	assert_int_equal(feeder_connect(&f, &newer.options), -ETIMEDOUT);
	newer.newer = 1;
	assert_int_equal(feeder_connect(&f, &newer.options), -E2BIG);
	/* an older caller's struct ends behind job: fresh is not read, and no conflict */
	options = make_options("/nonexistent/dir/x.sock", 0);
	options.fresh = 1;
	options.timeout_ms = -7;
	options.size = offsetof(struct feeder_connect_options, program);
	options.socket = "/dev/null/x.sock";
	assert_int_equal(feeder_connect(&f, &options), -ENOTDIR);
	assert_error_says("Not a directory");
}

static void connections_leave_nothing_behind(void **state)
{
	struct fake *fake = fake_start(NULL, NULL);
	struct feeder_connect_options options = make_options(fake->path, 2000);
	unsigned int before = count_fds();
	struct feeder *f = NULL;

	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		assert_int_equal(feeder_connect(&f, &options), 0);
		feeder_disconnect(f);
	}
	feeder_disconnect(NULL);
	/* the fake closes its ends when it sees the hang-ups */
	for (unsigned int i = 0; i < 500 && count_fds() > before; i++)
		usleep(1000);
	assert_int_equal(count_fds(), before);
	fake_stop(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_named_socket_is_waited_for_and_never_replaced, clean),
		cmocka_unit_test_setup(a_named_socket_may_come_later, clean),
		cmocka_unit_test_setup(the_system_daemon_comes_before_a_private_one, clean),
		cmocka_unit_test_setup(a_refusing_system_daemon_gives_one_notice, clean),
		cmocka_unit_test_setup(
			a_system_daemon_that_serves_others_gives_the_notice_too, clean),
		cmocka_unit_test_setup(another_major_is_named, clean),
		cmocka_unit_test_setup(a_newer_minor_is_fine_until_it_uses_news, clean),
		cmocka_unit_test_setup(a_mute_daemon_is_a_time_out, clean),
		cmocka_unit_test_setup(wrong_options_are_refused, clean),
		cmocka_unit_test_setup(connections_leave_nothing_behind, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
