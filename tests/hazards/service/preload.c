/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before the C library by tests (LD_PRELOAD): what the environment asks for goes wrong.
 *
 *	FEEDER_TEST_JUMP    the wall clock is an hour ahead and an hour behind, call by call
 *	FEEDER_TEST_STUCK   reads of files whose path contains this do not come back
 *	FEEDER_TEST_GATE    before this file is there
 *	FEEDER_TEST_PATIENT alarm(2) does nothing
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define JUMP_S 3600

EXPORT int clock_gettime(clockid_t id, struct timespec *ret);
EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone);
EXPORT time_t time(time_t *ret);
EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off_t offset);
EXPORT unsigned int alarm(unsigned int seconds);

/* Calls of threads that race may jump alike: they jump. */
static time_t jump(void)
{
	static unsigned int calls;

	if (!getenv("FEEDER_TEST_JUMP"))
		return 0;
	return __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 2 ? JUMP_S : -JUMP_S;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += jump();
	return r;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	*ret = (struct timeval){ ts.tv_sec, ts.tv_nsec / 1000 };
	return 0;
}

EXPORT time_t time(time_t *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}

static bool is_stuck(int fd)
{
	const char *part = getenv("FEEDER_TEST_STUCK"), *gate = getenv("FEEDER_TEST_GATE");
	char link[32], path[4096];
	ssize_t n;

	if (!part || (gate && access(gate, F_OK) == 0))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, part) != NULL;
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off_t offset)
{
	while (is_stuck(fd))
		usleep(10000);
	return syscall(SYS_pread64, fd, buffer, size, offset);
}

EXPORT unsigned int alarm(unsigned int seconds)
{
	struct itimerval timer = { .it_value = { .tv_sec = (time_t)seconds } }, before;

	if (getenv("FEEDER_TEST_PATIENT") || setitimer(ITIMER_REAL, &timer, &before) < 0)
		return 0;
	return (unsigned int)before.it_value.tv_sec;
}
