/* SPDX-License-Identifier: Apache-2.0 */
/* The quarantine list of a lane: which samples were bad, how often, and why. */
#ifndef PIPELINE_CASES_H
#define PIPELINE_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

#define CASES_MAX 8192 /* kept a lane; more are counted only */

struct bad_case {
	uint64_t id;
	uint64_t epoch; /* first met */
	uint32_t count;
	struct fault fault;
};

struct cases {
	struct bad_case *rows;
	uint32_t count;
	uint32_t capacity;
	uint32_t *table; /* open addressing on id: row + 1, 0 = empty */
	uint32_t table_size;
	uint64_t dropped; /* for lack of room or memory */
};

/* Adds a case, or counts one more of a known id. */
void cases_add(struct cases *cases, uint64_t id, uint64_t epoch, const struct fault *fault);
void cases_deinit(struct cases *cases);

#endif
