/* SPDX-License-Identifier: Apache-2.0 */
/* The socket's path: what was left behind, and who else is there. */
#include <errno.h>
#include <fcntl.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/config.h"
#include "control/server.h"

static char directory[] = "/tmp/feeder-server-XXXXXX";
static char path[64];
static char text[CONFIG_TEXT], warning[CONFIG_TEXT];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory); /* fails if anything was left behind */
}

static int bind_it(struct server *s)
{
	server_init(s);
	text[0] = '\0';
	return server_bind(s, path, false, warning, text, sizeof(text));
}

static int try_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static void refuses_connections_until_it_listens(void **state)
{
	struct server s;
	struct stat st;

	(void)state;
	assert_int_equal(bind_it(&s), 0);
	assert_int_equal(try_connect(), -ECONNREFUSED);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(server_listen(&s, text, sizeof(text)), 0);
	assert_int_equal(try_connect(), 0);
	server_open_to_all(&s, true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	server_close(&s);
	server_close(&s);
	assert_int_equal(try_connect(), -ENOENT);
}

static void d46_second_instance_is_refused(void **state)
{
	struct server first, second;

	(void)state;
	assert_int_equal(bind_it(&first), 0);
	assert_int_equal(server_listen(&first, text, sizeof(text)), 0);
	assert_int_equal(bind_it(&second), -EADDRINUSE);
	assert_non_null(strstr(text, "another feederd serves"));
	assert_int_equal(try_connect(), 0); /* and the first is unharmed */
	server_close(&first);
}

/* Killed: the socket and the lock file stay, nobody listens, nobody holds the lock. */
static void d48_starts_from_any_leftovers(void **state)
{
	(void)state;
	for (int leftover = 0; leftover < 4; leftover++) {
		struct server s;
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			_exit(bind_it(&s) < 0 || server_listen(&s, text, sizeof(text)) < 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		char lock[80];
		snprintf(lock, sizeof(lock), "%s.lock", path);
		if (leftover & 1)
			assert_int_equal(unlink(path), 0);
		if (leftover & 2)
			assert_int_equal(unlink(lock), 0);
		if (bind_it(&s) < 0)
			fail_msg("leftover %d: %s", leftover, text);
		server_close(&s);
	}
}

static void d04_another_owner_is_left_alone(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct server s;

	(void)state;
	/* one that serves without our lock, and of another socket type */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(bind_it(&s), -EADDRINUSE);
	close(fd);
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(bind_it(&s), -EEXIST);
	assert_non_null(strstr(text, "is not a socket"));
	assert_int_equal(unlink(path), 0);
}

/* A daemon that stops while another starts: the newer one waits for it. */
static void waits_for_one_that_is_stopping(void **state)
{
	struct server s;
	int status, ready[2];
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (bind_it(&s) < 0 || write(ready[1], &byte, 1) != 1)
			_exit(1);
		usleep(60000);
		server_close(&s);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (bind_it(&s) < 0)
		fail_msg("%s", text);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(try_connect(), -ECONNREFUSED); /* bound, and not taken away by the older */
	server_close(&s);
	close(ready[0]);
	close(ready[1]);
}

static void directories_that_others_can_change(void **state)
{
	struct server s;
	char bad[80];

	(void)state;
	assert_int_equal(chmod(directory, 0777), 0);
	assert_int_equal(bind_it(&s), -EACCES);
	assert_non_null(strstr(text, "may be written by others"));
	assert_int_equal(chmod(directory, 01777), 0);
	assert_int_equal(bind_it(&s), 0);
	server_close(&s);
	assert_int_equal(chmod(directory, 0700), 0);
	snprintf(bad, sizeof(bad), "%s/none/socket", directory);
	server_init(&s);
	assert_int_equal(server_bind(&s, bad, false, warning, text, sizeof(text)), -ENOENT);
	char longest[200];
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(
		server_bind(&s, longest, false, warning, text, sizeof(text)), -ENAMETOOLONG);
}

static void sockets_passed_by_the_service_manager(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct server s;

	(void)state;
	server_init(&s);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(server_adopt(&s, fd, text, sizeof(text)), -EINVAL);
	assert_non_null(strstr(text, "ListenSequentialPacket="));
	close(fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(server_adopt(&s, fd, text, sizeof(text)), -EINVAL);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(server_adopt(&s, fd, text, sizeof(text)), 0);
	server_close(&s);
	assert_int_equal(access(path, F_OK), 0); /* the service manager's to take away */
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_connections_until_it_listens),
		cmocka_unit_test(d46_second_instance_is_refused),
		cmocka_unit_test(d48_starts_from_any_leftovers),
		cmocka_unit_test(d04_another_owner_is_left_alone),
		cmocka_unit_test(waits_for_one_that_is_stopping),
		cmocka_unit_test(directories_that_others_can_change),
		cmocka_unit_test(sockets_passed_by_the_service_manager),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
