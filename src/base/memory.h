/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory can still be had. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdint.h>

/*
 * Bytes that the kernel could give without swapping or killing: MemAvailable, and what is left of
 * the control group's limit. UINT64_MAX where neither can be read. Shared memory is taken page by
 * page and going over is answered by the OOM killer, not by an error: so it is asked for before.
 */
uint64_t memory_available(void);

#endif
