/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: they start at -1, are closed once, and never leak over exec. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Closes fd if it is open; returns -1, so that `fd = fd_close(fd)`. Keeps errno. */
static inline int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;
		close(fd);
		errno = saved;
	}
	return -1;
}

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}

/* Gives the descriptor away: disarms a CLEANUP(fd_closep) local at the success line. */
static inline int fd_steal(int *fd)
{
	int given = *fd;

	*fd = -1;
	return given;
}

static inline void freep(void *p)
{
	free(*(void **)p);
}

#endif
