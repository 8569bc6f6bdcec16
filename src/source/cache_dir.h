/* SPDX-License-Identifier: Apache-2.0 */
/* Where indexes live by default. */
#ifndef SOURCE_CACHE_DIR_H
#define SOURCE_CACHE_DIR_H

#include <stddef.h>

/*
 * The first of $CACHE_DIRECTORY (systemd's; of several the first), $XDG_CACHE_HOME/feeder,
 * ~/.cache/feeder that is an absolute path. -ENOENT when none is; -ENAMETOOLONG.
 */
int cache_dir_default(char *ret, size_t size);

#endif
