/* SPDX-License-Identifier: Apache-2.0 */
/* Where indexes live by default. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/cache_dir.h"

static int copy(char *ret, size_t size, const char *path, size_t length, const char *below)
{
	int n = snprintf(ret, size, "%.*s%s", (int)length, path, below);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int cache_dir_default(char *ret, size_t size)
{
	const char *path;

	path = getenv("CACHE_DIRECTORY");
	if (path && *path == '/')
		return copy(ret, size, path, strcspn(path, ":"), "");
	path = getenv("XDG_CACHE_HOME");
	if (path && *path == '/')
		return copy(ret, size, path, strlen(path), "/feeder");
	path = getenv("HOME");
	if (path && *path == '/')
		return copy(ret, size, path, strlen(path), "/.cache/feeder");
	return -ENOENT;
}
