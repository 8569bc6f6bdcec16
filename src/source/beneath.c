/* SPDX-License-Identifier: Apache-2.0 */
/* openat2 beneath a root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "source/beneath.h"
#include "source/source.h"

/* The kernel answers EAGAIN when a rename anywhere on the system raced with a ".." of a link. */
#define BENEATH_TRIES 32

int beneath_open(int root, const char *path, int flags, const struct dataset_options *options)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	const char *name = *path ? path : ".";

	for (int i = 0; i < BENEATH_TRIES; i++) {
		int fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	if (errno != EXDEV || !options->open_outside)
		return -errno;
	return options->open_outside(options->context, root, name, flags | O_CLOEXEC);
}
