/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of small JPEGs, a pipeline over it, and a consumer that drains a lane's ring. */
#ifndef TESTS_PIPELINE_FIXTURE_H
#define TESTS_PIPELINE_FIXTURE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "order/order.h"
#include "pipeline/pipeline.h"
#include "protocol/ring.h"
#include "reader/reader.h"
#include "source/source.h"
#include "transform/transform.h"

#define FOLDER_FILES 60

struct folder {
	char path[64];
	struct dataset *dataset;
};

/* Two classes of FOLDER_FILES / 2 files. */
void folder_make(struct folder *ret);
/* Overwrites file i (0 ≤ i < FOLDER_FILES, in the dataset's order) before the dataset is opened. */
void folder_put(struct folder *f, unsigned int i, const void *bytes, size_t size);
void folder_open(struct folder *f);
void folder_free(struct folder *f);

struct pipeline_options {
	unsigned int workers;
	int reader;
	uint64_t readahead;
};

struct pipeline *pipeline_make(const struct pipeline_options *options);
/* Waits until a lane event came for the lane. */
void wait_event(uint64_t lane);

/* Training defaults over 32×32 pixels, batch 8. */
void request_init(struct control_open_lane *open);

struct consumer {
	struct lane *lane;
	struct control_lane reply;
	struct ring_map map;
	uint64_t next;
	int doorbell;
	/* sums of what was consumed */
	uint64_t order_digest;
	uint64_t pixel_digest;
	uint64_t bytes_hash; /* XXH64 over count, labels, images of each batch */
	uint8_t cursor[CURSOR_SIZE];
};

void consumer_open(struct consumer *ret, struct pipeline *p, struct folder *f,
	const struct control_open_lane *open);
/* Takes and releases one batch; false when the lane stopped before it came. */
bool consumer_next(struct consumer *c, struct ring_descriptor *ret);
/* The same without releasing. */
bool consumer_take(struct consumer *c, struct ring_descriptor *ret);
void consumer_release(struct consumer *c, uint64_t n);
void consumer_close(struct consumer *c);

#endif
