/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for feederd in tests of private daemons: a fake daemon on the socket that it is given,
 * which ends when its sessions have gone. What it finds in its environment goes to the file that
 * FEEDER_STUB_REPORT names, a line a fact. FEEDER_STUB_MODE: "fail" ends at once, "deaf" never
 * listens.
 */
#include "fake-daemon.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void report_descriptors(FILE *file)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned int count = 0;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		count += fd > 2 && fd != dirfd(dir) && fd != fileno(file);
	}
	closedir(dir);
	fprintf(file, "fds %u\n", count);
}

static void report(int argc, char **argv)
{
	FILE *file = fopen(getenv("FEEDER_STUB_REPORT"), "ae");
	unsigned int changed = 0;
	sigset_t mask;
	cpu_set_t cpus;
	char cwd[64] = "";

	for (int i = 1; i < argc; i++)
		fprintf(file, "arg %s\n", argv[i]);
	for (int i = 1; i < 32; i++) {
		struct sigaction action;

		/* handlers do not outlive exec; what is ignored or blocked does */
		changed += sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
		sigprocmask(SIG_SETMASK, NULL, &mask);
		changed += sigismember(&mask, i) == 1;
	}
	sched_getaffinity(0, sizeof(cpus), &cpus);
	fprintf(file, "pid %d\nsession %d\nleader %d\nsignals %u\ncpus %d\ncwd %s\nnotify %s\n",
		(int)getpid(), (int)getsid(0), getsid(0) == getpid(), changed, CPU_COUNT(&cpus),
		getcwd(cwd, sizeof(cwd)), getenv("NOTIFY_SOCKET") ? "kept" : "gone");
	report_descriptors(file);
	fclose(file);
}

static void count_sessions(struct fake *fake, void *argument)
{
	int *open = argument;

	*open = fake->attached == 0;
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		*open += fake->sessions[i] >= 0;
}

int main(int argc, char **argv)
{
	const char *mode = getenv("FEEDER_STUB_MODE");
	const char *socket = NULL;
	struct fake *fake;
	int open = 1;

	report(argc, argv);
	if (mode && strcmp(mode, "fail") == 0)
		return 1;
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--socket") == 0)
			socket = argv[i + 1];
	}
	if (mode && strcmp(mode, "deaf") == 0) {
		usleep(400000);
		return 0;
	}
	usleep(20000);
	fake = fake_start(socket, NULL);
	for (unsigned int i = 0; open && i < 1000; i++) {
		usleep(10000);
		fake_run(fake, count_sessions, &open);
	}
	fake_stop(fake);
	return 0;
}
