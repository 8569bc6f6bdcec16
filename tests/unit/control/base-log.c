/* SPDX-License-Identifier: Apache-2.0 */
/* What reaches stderr and the service manager. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/notify.h"

static char captured[65536];

/* Runs fn with stderr in a file, as under journald or not. */
static void capture(bool journald, void (*fn)(void))
{
	char name[] = "/tmp/feeder-log-XXXXXX", stream[64];
	int saved = dup(2), fd = mkstemp(name);
	struct stat st;

	assert_true(fd >= 0);
	fstat(fd, &st);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino + !journald);
	setenv("JOURNAL_STREAM", stream, 1);
	fflush(stderr);
	dup2(fd, 2);
	log_init();
	fn();
	dup2(saved, 2);
	close(saved);
	ssize_t n = pread(fd, captured, sizeof(captured) - 1, 0);
	captured[n < 0 ? 0 : n] = '\0';
	close(fd);
	unlink(name);
}

static void some_lines(void)
{
	log_warning("a name %s", "x\n\x1b[31m\x7f");
	log_info("told");
	log_set_level(LOG_LEVEL_WARNING);
	log_info("left out");
	log_set_level(LOG_LEVEL_INFO);
}

static void journald_gets_priorities(void **state)
{
	(void)state;
	capture(true, some_lines);
	assert_string_equal(captured, "<4>a name x\\x0a\\x1b[31m\\x7f\n<6>told\n");
}

static void others_get_timestamps(void **state)
{
	(void)state;
	capture(false, some_lines);
	assert_non_null(strstr(captured, " feederd: warning: a name x\\x0a"));
	assert_null(strstr(captured, "<4>"));
}

static void repeat(void)
{
	for (int i = 0; i < 1000; i++)
		log_error("again and again");
	log_error("another place");
}

static void a_place_has_a_budget_and_hides_no_other(void **state)
{
	unsigned int lines = 0;

	(void)state;
	capture(true, repeat);
	for (const char *p = captured; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 21);
	assert_non_null(strstr(captured, "<3>another place\n"));
}

static void escapes_whole_characters(void **state)
{
	char out[64];

	(void)state;
	log_escape(out, sizeof(out), "gr\xc3\xbc\xc3\x9f\xe2\x82\xac \xff \xc3 \xc2\x9b\t");
	assert_string_equal(out, "gr\xc3\xbc\xc3\x9f\xe2\x82\xac \\xff \\xc3 \\xc2\\x9b\\x09");
	/* a surrogate, and an overlong form */
	log_escape(out, sizeof(out), "\xed\xa0\x80 \xf0\x80\x80\xaf");
	assert_string_equal(out, "\\xed\\xa0\\x80 \\xf0\\x80\\x80\\xaf");
	log_escape(out, 4, "ab\xc3\xbc");
	assert_string_equal(out, "ab");
}

static void readiness_is_one_datagram(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char message[128], name[64];

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("READY=1"), 0);
	snprintf(name, sizeof(name), "@feeder-notify-%d", (int)getpid());
	memcpy(address.sun_path, name, strlen(name));
	address.sun_path[0] = '\0';
	assert_int_equal(
		bind(fd, (struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_send("READY=1\nSTATUS=%d workers", 5), 1);
	ssize_t n = recv(fd, message, sizeof(message) - 1, MSG_DONTWAIT);
	assert_true(n > 0);
	message[n] = '\0';
	assert_string_equal(message, "READY=1\nSTATUS=5 workers");
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	unsetenv("NOTIFY_SOCKET");
	close(fd);
}

static void passed_sockets_are_for_this_process_only(void **state)
{
	char pid[16];

	(void)state;
	setenv("LISTEN_PID", "1", 1);
	setenv("LISTEN_FDS", "1", 1);
	assert_int_equal(notify_listen_fds(), 0);
	assert_null(getenv("LISTEN_FDS"));
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	assert_int_equal(notify_listen_fds(), 1);
	assert_int_equal(notify_listen_fds(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(journald_gets_priorities),
		cmocka_unit_test(others_get_timestamps),
		cmocka_unit_test(a_place_has_a_budget_and_hides_no_other),
		cmocka_unit_test(escapes_whole_characters),
		cmocka_unit_test(readiness_is_one_datagram),
		cmocka_unit_test(passed_sockets_are_for_this_process_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
