/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the pipeline and of the sources, for tests of the control room alone: lanes are
 * real memfds of the wanted size, datasets are what FAKE says. Every object counts, so that a
 * test can see that nothing was left behind.
 */
#ifndef FAKE_PIPELINE_H
#define FAKE_PIPELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake {
	atomic_int lanes;    /* alive */
	atomic_int datasets; /* references */
	atomic_int opens;    /* dataset_open calls so far */
	atomic_int doorbells;
	atomic_int drains;
	atomic_uint active_workers;
	atomic_uint fingerprint; /* of datasets opened from now on */
	atomic_bool
		hold_opens; /* dataset_open waits, reporting progress, until false or told to end */
	atomic_bool hold_lanes; /* pipeline_lane_new waits until false */
	atomic_bool never_drained;
	atomic_int fail_lane;     /* negative errno of pipeline_lane_new */
	uint64_t lane_bytes;      /* of a ring */
	atomic_uint worker_share; /* of the newest request */
};

extern struct fake fake;

void fake_reset(void);
struct lane;
/* As if the lane had spent its budget: raises the event. */
void fake_fail_lane(uint64_t lane_id);

#endif
