/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a lane, checked once and compiled into what a worker does with a sample:
 * which box to decode, how to resize, what to store. Pixels depend on (bytes, recipe, seed, id,
 * epoch) and on nothing else.
 */
#ifndef PIPELINE_RECIPE_H
#define PIPELINE_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "decode/decode.h"
#include "protocol/control.h"
#include "ring/ring.h"
#include "transform/transform.h"

struct recipe {
	bool train; /* RandomResizedCrop; else Resize and CenterCrop */
	bool orientation;
	bool pixel_digest;
	uint32_t width; /* of the output */
	uint32_t height;
	uint32_t short_side; /* Resize; 0: none */
	uint32_t filter;
	float scale[2];
	float ratio[2];
	float flip; /* probability; 0: no flip, and no random word drawn for it */
	uint64_t seed;
	struct store_plan store;
	struct store_table *table;
	size_t packed_bytes; /* uint8 height·width·3 */
	size_t place_bytes;
	bool direct; /* the place is the packed uint8 image */
};

/* -EINVAL, -ENOSYS with a sentence that names operation and value; -ENOMEM. */
int recipe_init(struct recipe *ret, const struct control_open_lane *open, char *text, size_t size);
void recipe_deinit(struct recipe *recipe);
/* The images and labels fields of a lane with this recipe. */
void recipe_fields(const struct recipe *recipe, uint32_t capacity, struct ring_shape *shape);

/* One worker's tools; nothing in them outlives a sample. */
struct bench {
	struct decoder *decoder;
	struct decoder *orienting; /* with EXIF orientation applied; made at first use */
	struct resizer *resizer;
	uint8_t *packed; /* an image before its dtype and layout */
	size_t packed_capacity;
	struct decode_limits limits;
};

int bench_init(struct bench *ret, const struct decode_limits *limits);
void bench_deinit(struct bench *bench);
/* Makes room for a recipe's images; called when a worker first meets it. -ENOMEM. */
int bench_fit(struct bench *bench, const struct recipe *recipe);

/* What a sample became. */
struct sample_result {
	struct box box; /* in the source image */
	bool flip;
	uint32_t source_w;
	uint32_t source_h;
	uint8_t verdict; /* to be kept by the dataset; 0: nothing new */
	uint64_t pixel_digest;
	uint64_t decode_ns; /* thread CPU time */
	uint64_t transform_ns;
	uint64_t cpu_ns; /* the thread's CPU clock at the end */
};

struct sample_input {
	const uint8_t *bytes;
	size_t size;
	uint8_t verdict; /* dataset_verdict */
	uint64_t id;     /* delivered */
	uint64_t epoch;
	/* for the pixel digest */
	uint64_t id_asked;
	uint64_t position;
	int64_t label;
};

/* Decodes and transforms one sample into its place. 0, or a status with *fault. */
int recipe_run(const struct recipe *recipe, struct bench *bench, const struct sample_input *in,
	void *place, struct sample_result *ret, struct fault *fault);
/* A place without pixels. */
void recipe_blank(const struct recipe *recipe, void *place);

#endif
