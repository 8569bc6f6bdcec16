/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: named, with every signal blocked (the control thread's signalfd takes them all). */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* name: at most 15 characters, longer ones are cut. 0, -EAGAIN, -ENOMEM. */
int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg);

/* Makes the calling thread a worker: SCHED_BATCH and nice 5. What is refused is left as it is. */
void thread_worker_policy(void);

/*
 * Keeps the calling thread on one NUMA node: the i-th (mod their number) of the nodes that have
 * CPUs in its mask. 0 also where there is one node or none is known: the mask then stays.
 */
int thread_pin_node(unsigned int i);

/*
 * Whether the calling thread still has the mask that thread_pin_node gave it: 0, or 1 when
 * something had changed it (it is set again). 0 for a thread that was never pinned.
 */
int thread_pin_check(void);

#endif
