/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long computation's stop flag. It carries no data: whoever sets it later joins the thread or
 * waits for the call to return, so the order of other memory accesses does not matter.
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL is never set. */
static inline bool stop_asked(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static inline void stop_ask(atomic_bool *stop)
{
	atomic_store_explicit(stop, true, memory_order_relaxed);
}

#endif
