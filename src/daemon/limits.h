/* SPDX-License-Identifier: Apache-2.0 */
/* What the system grants this process: raised where that is free, reported at the start. */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include <stdint.h>

struct config;

/* RLIMIT_NOFILE to its hard limit: each lane and each dataset is descriptors. */
void limits_raise(void);
/* Bytes that the daemon may use: of the machine, or of its control group. */
uint64_t limits_memory(void);
/*
 * Logs the effective limits, the CPU mask and quota and what they mean for workers and memory;
 * warns of what will hurt.
 */
void limits_report(
	const struct config *config, unsigned int workers, unsigned int cpus, const char *reader);

#endif
