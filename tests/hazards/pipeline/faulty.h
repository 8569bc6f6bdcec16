/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline whose reader has faults (reader/faults.h): reader_new is wrapped at link time. */
#ifndef TESTS_HAZARDS_FAULTY_H
#define TESTS_HAZARDS_FAULTY_H

#include "unit/pipeline/fixture.h"

#include "reader/faults.h"

/* The next pipeline of pipeline_make gets them; NULL: none. They must outlive it. */
void faulty_next(const struct reader_faults *faults);

/* A counter of the pipeline, or of a lane. */
uint64_t daemon_counter(struct pipeline *p, enum stats_daemon which);
uint64_t lane_counter(struct lane *lane, enum stats_lane which);

#endif
