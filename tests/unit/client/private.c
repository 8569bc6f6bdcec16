/* SPDX-License-Identifier: Apache-2.0 */
/* Private daemons, with a stub in feederd's place. argv[1] is the stub. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../clients/c/client.h"

static const char *stub;
static char directory[64];
static char report[96];
static volatile sig_atomic_t children;

static int prepare(void **state)
{
	(void)state;
	unsetenv("FEEDER_SOCKET");
	unsetenv("FEEDER_STUB_MODE");
	unsetenv("FEEDER_DAEMON");
	fdr_system_socket = "/tmp/feeder-no-such-system.sock";
	strcpy(directory, "/tmp/feeder-private-XXXXXX");
	assert_non_null(mkdtemp(directory));
	setenv("XDG_RUNTIME_DIR", directory, 1);
	snprintf(report, sizeof(report), "%s/report", directory);
	setenv("FEEDER_STUB_REPORT", report, 1);
	return 0;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "/bin/rm -rf %s", directory);
	return system(command);
}

static struct feeder_connect_options make_options(void)
{
	struct feeder_connect_options options;

	feeder_connect_options_init(&options);
	options.daemon_path = stub;
	options.job = "private test";
	options.timeout_ms = 10000;
	return options;
}

static unsigned int report_lines(const char *line)
{
	char buffer[256];
	unsigned int count = 0;
	FILE *file = fopen(report, "re");

	while (file && fgets(buffer, sizeof(buffer), file)) {
		buffer[strcspn(buffer, "\n")] = '\0';
		count += strcmp(buffer, line) == 0;
	}
	if (file)
		fclose(file);
	return count;
}

static unsigned int report_starts(void)
{
	return report_lines("arg --private");
}

static void on_child(int number)
{
	(void)number;
	children++;
}

static void a_private_daemon_does_not_show_in_the_trainer(void **state)
{
	static const char *const set[] = { "reader=pread", "slots=6", NULL };
	struct feeder_connect_options options = make_options();
	struct sigaction action = { .sa_handler = on_child };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction saved[2];
	sigset_t blocked;
	sigset_t before;
	sigset_t after;
	struct feeder *f = NULL;
	int leaked = open("/dev/null", O_RDONLY); /* not close-on-exec, as a trainer's may be */

	(void)state;
	sigaction(SIGCHLD, &action, &saved[0]);
	sigaction(SIGPIPE, &ignore, &saved[1]);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	setenv("NOTIFY_SOCKET", "/run/nobody", 1);
	options.workers = 3;
	options.set = set;
	if (feeder_connect(&f, &options) < 0)
		fail_msg("%s", feeder_last_error());
	sigprocmask(SIG_SETMASK, &before, &after);
	assert_true(sigismember(&after, SIGTERM));
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(feeder_is_private(f), 1);
	assert_int_equal(report_lines("arg --private"), 1);
	assert_int_equal(report_lines("arg --workers"), 1);
	assert_int_equal(report_lines("arg 3"), 1);
	assert_int_equal(report_lines("arg --set"), 2);
	assert_int_equal(report_lines("arg slots=6"), 1);
	assert_int_equal(report_lines("signals 0"), 1);
	assert_int_equal(report_lines("fds 0"), 1);
	assert_int_equal(report_lines("leader 0"), 1);
	assert_int_equal(report_lines("cwd /"), 1);
	assert_int_equal(report_lines("notify gone"), 1);
	feeder_disconnect(f);
	usleep(100000);
	assert_int_equal(children, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	sigaction(SIGCHLD, &saved[0], NULL);
	sigaction(SIGPIPE, &saved[1], NULL);
	close(leaked);
}

static void a_job_shares_one_daemon(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *a = NULL;
	struct feeder *b = NULL;
	struct feeder *other = NULL;
	struct stat st;
	char path[128];

	(void)state;
	assert_int_equal(feeder_connect(&a, &options), 0);
	assert_int_equal(feeder_connect(&b, &options), 0);
	assert_string_equal(feeder_socket_path(a), feeder_socket_path(b));
	assert_int_equal(report_starts(), 1);
	options.job = "another";
	assert_int_equal(feeder_connect(&other, &options), 0);
	assert_string_not_equal(feeder_socket_path(a), feeder_socket_path(other));
	assert_int_equal(report_starts(), 2);
	snprintf(path, sizeof(path), "%s/feeder", directory);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	feeder_disconnect(a);
	feeder_disconnect(b);
	feeder_disconnect(other);
	/* nothing is left behind */
	for (unsigned int i = 0; i < 2000 && rmdir(path) < 0; i++)
		usleep(1000);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_cpu_mask_has_its_own_daemon(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *all = NULL;
	struct feeder *one = NULL;
	cpu_set_t saved;
	cpu_set_t mask;

	(void)state;
	sched_getaffinity(0, sizeof(saved), &saved);
	if (CPU_COUNT(&saved) < 2)
		skip();
	assert_int_equal(feeder_connect(&all, &options), 0);
	CPU_ZERO(&mask);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&mask) == 0; i++) {
		if (CPU_ISSET(i, &saved))
			CPU_SET(i, &mask);
	}
	sched_setaffinity(0, sizeof(mask), &mask);
	assert_int_equal(feeder_connect(&one, &options), 0);
	sched_setaffinity(0, sizeof(saved), &saved);
	assert_string_not_equal(feeder_socket_path(all), feeder_socket_path(one));
	assert_int_equal(report_lines("cpus 1"), 1);
	feeder_disconnect(all);
	feeder_disconnect(one);
}

struct racer {
	struct feeder *f;
	int r;
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct feeder_connect_options options = make_options();

	racer->r = feeder_connect(&racer->f, &options);
	return NULL;
}

static void ranks_that_start_together_start_one(void **state)
{
	struct racer racers[4] = { { .f = NULL } };
	pthread_t threads[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, race, &racers[i]);
	for (unsigned int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(racers[i].r, 0);
	}
	assert_int_equal(report_starts(), 1);
	for (unsigned int i = 0; i < 4; i++)
		feeder_disconnect(racers[i].f);
}

static void fresh_is_never_shared(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *a = NULL;
	struct feeder *b = NULL;

	(void)state;
	setenv("FEEDER_SOCKET", "/tmp/feeder-no-such.sock", 1);
	options.fresh = 1;
	assert_int_equal(feeder_connect(&a, &options), 0);
	assert_int_equal(feeder_connect(&b, &options), 0);
	assert_string_not_equal(feeder_socket_path(a), feeder_socket_path(b));
	assert_int_equal(report_starts(), 2);
	feeder_disconnect(a);
	feeder_disconnect(b);
}

static void a_dead_daemons_socket_is_replaced(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;
	char path[128];
	FILE *file;

	(void)state;
	assert_int_equal(feeder_connect(&f, &options), 0);
	snprintf(path, sizeof(path), "%s", feeder_socket_path(f));
	feeder_disconnect(f);
	for (unsigned int i = 0; i < 1000 && access(path, F_OK) == 0; i++)
		usleep(2000);
	file = fopen(path, "we"); /* as after kill -9: a file, and nobody behind it */
	assert_non_null(file);
	fclose(file);
	assert_int_equal(feeder_connect(&f, &options), 0);
	assert_int_equal(report_starts(), 2);
	feeder_disconnect(f);
}

static void a_daemon_that_ends_at_once_is_an_error(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;

	(void)state;
	setenv("FEEDER_STUB_MODE", "fail", 1);
	assert_int_equal(feeder_connect(&f, &options), -EPIPE);
	assert_error_says("ended before it answered");
}

static void a_daemon_that_does_not_listen_is_a_time_out(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;

	(void)state;
	setenv("FEEDER_STUB_MODE", "deaf", 1);
	options.timeout_ms = 100;
	assert_int_equal(feeder_connect(&f, &options), -ETIMEDOUT);
	assert_error_says("did not answer within 100 ms");
	/* a slow one reports later than it is given up */
	for (int i = 0; i < 1000 && report_starts() == 0; i++)
		usleep(10000);
	assert_int_equal(report_starts(), 1);
}

static void a_program_that_is_none_is_named(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;
	char path[128];

	(void)state;
	options.daemon_path = "/tmp";
	assert_int_equal(feeder_connect(&f, &options), -ENOENT);
	assert_error_says("/tmp is not an executable file");
	/* executable, but nothing that exec takes */
	snprintf(path, sizeof(path), "%s/feederd", directory);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

	assert_int_equal(write(fd,
				 "\x7f"
				 "ELF",
				 4),
		4);
	close(fd);
	options.daemon_path = path;
	assert_int_equal(feeder_connect(&f, &options), -ENOEXEC);
	assert_error_says("Exec format error");
}

static void path_is_the_last_place_to_look(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;
	char link[128];
	char *saved = strdup(getenv("PATH"));

	(void)state;
	options.daemon_path = NULL;
	snprintf(link, sizeof(link), "%s/feederd", directory);
	assert_int_equal(symlink(stub, link), 0);
	setenv("PATH", directory, 1);
	assert_int_equal(feeder_connect(&f, &options), 0);
	feeder_disconnect(f);
	/* the environment's word comes first */
	options.job = "named";
	setenv("FEEDER_DAEMON", "/nonexistent/feederd", 1);
	assert_int_equal(feeder_connect(&f, &options), -ENOENT);
	assert_error_says("/nonexistent/feederd");
	setenv("PATH", saved, 1);
	free(saved);
}

static void a_directory_of_others_is_refused(void **state)
{
	struct feeder_connect_options options = make_options();
	struct feeder *f = NULL;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/feeder", directory);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(feeder_connect(&f, &options), -EACCES);
	assert_error_says("must be a directory of uid");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(feeder_connect(&f, &options), -EACCES);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_private_daemon_does_not_show_in_the_trainer, prepare, clean),
		cmocka_unit_test_setup_teardown(a_job_shares_one_daemon, prepare, clean),
		cmocka_unit_test_setup_teardown(a_cpu_mask_has_its_own_daemon, prepare, clean),
		cmocka_unit_test_setup_teardown(
			ranks_that_start_together_start_one, prepare, clean),
		cmocka_unit_test_setup_teardown(fresh_is_never_shared, prepare, clean),
		cmocka_unit_test_setup_teardown(a_dead_daemons_socket_is_replaced, prepare, clean),
		cmocka_unit_test_setup_teardown(
			a_daemon_that_ends_at_once_is_an_error, prepare, clean),
		cmocka_unit_test_setup_teardown(
			a_daemon_that_does_not_listen_is_a_time_out, prepare, clean),
		cmocka_unit_test_setup_teardown(a_program_that_is_none_is_named, prepare, clean),
		cmocka_unit_test_setup_teardown(path_is_the_last_place_to_look, prepare, clean),
		cmocka_unit_test_setup_teardown(a_directory_of_others_is_refused, prepare, clean),
	};

	if (argc != 2)
		return 2;
	stub = realpath(argv[1], NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
