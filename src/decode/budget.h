/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time that one sample may take.
 *
 * A thread's CPU time never exceeds the time passed, and reading the latter is no system call:
 * so the CPU clock is only asked once the wall clock says that the budget could be spent.
 */
#ifndef DECODE_BUDGET_H
#define DECODE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct budget {
	uint64_t max_ns;
	uint64_t wall_ns; /* at the start */
	uint64_t cpu_ns;
};

static inline void budget_start(struct budget *b, uint64_t max_ns)
{
	b->max_ns = max_ns;
	b->wall_ns = now_ns();
	b->cpu_ns = thread_cpu_ns();
}

static inline bool budget_spent(const struct budget *b)
{
	return now_ns() - b->wall_ns >= b->max_ns && thread_cpu_ns() - b->cpu_ns >= b->max_ns;
}

#endif
