/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a lane: checking them, and the shape of what they make. */
#include "pipeline/recipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feeder/version.h"

#define SIZE_LIMIT 16384u /* pixels a side of the output */

static int refuse(char *text, size_t size, int error, const char *operation, const char *why)
{
	snprintf(text, size, "operation %s is refused: %s", operation, why);
	return error;
}

static bool size_ok(uint32_t pixels)
{
	return pixels >= 1 && pixels <= SIZE_LIMIT;
}

static bool filter_ok(uint32_t filter)
{
	return filter == FILTER_BILINEAR || filter == FILTER_BICUBIC;
}

static int take_random_resized_crop(
	struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	static const char name[] = "RandomResizedCrop";
	const float *f = op->parameter.f;
	const uint32_t *u = op->parameter.u;

	if (!(f[0] > 0.0f && f[0] <= f[1] && f[1] <= 1.0f))
		return refuse(text, size, -EINVAL, name, "scale must be 0 < low <= high <= 1");
	if (!(f[2] > 0.0f && f[2] <= f[3] && f[3] <= 1000.0f))
		return refuse(text, size, -EINVAL, name, "ratio must be 0 < low <= high");
	if (!size_ok(u[4]) || !size_ok(u[5]))
		return refuse(text, size, -EINVAL, name, "sizes must be 1 to 16384 pixels");
	if (!filter_ok(u[6]))
		return refuse(text, size, -EINVAL, name, "the filter is bilinear or bicubic");
	r->train = true;
	memcpy(r->scale, f, sizeof(r->scale));
	memcpy(r->ratio, f + 2, sizeof(r->ratio));
	r->height = u[4];
	r->width = u[5];
	r->filter = u[6];
	return 0;
}

static int take_resize(
	struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	const uint32_t *u = op->parameter.u;

	if (!size_ok(u[0]))
		return refuse(text, size, -EINVAL, "Resize", "sizes must be 1 to 16384 pixels");
	if (!filter_ok(u[1]))
		return refuse(text, size, -EINVAL, "Resize", "the filter is bilinear or bicubic");
	r->short_side = u[0];
	r->filter = u[1];
	return 0;
}

static int take_center_crop(
	struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	const uint32_t *u = op->parameter.u;

	if (!size_ok(u[0]) || !size_ok(u[1]))
		return refuse(text, size, -EINVAL, "CenterCrop", "sizes must be 1 to 16384 pixels");
	r->height = u[0];
	r->width = u[1];
	return 0;
}

static int take_flip(struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	float p = op->parameter.f[0];

	if (!(p >= 0.0f && p <= 1.0f))
		return refuse(text, size, -EINVAL, "HorizontalFlip", "the probability is 0 to 1");
	r->flip = p;
	return 0;
}

static int take_normalize(
	struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	static const char name[] = "Normalize";
	const uint32_t *u = op->parameter.u;

	if (u[0] < DTYPE_U8 || u[0] > DTYPE_BF16)
		return refuse(text, size, -EINVAL, name,
			"the dtype is uint8, float32, float16 or bfloat16");
	if (u[1] != LAYOUT_NHWC && u[1] != LAYOUT_NCHW)
		return refuse(text, size, -EINVAL, name, "the layout is NHWC or NCHW");
	if (u[2] > 1 || (u[2] && u[0] == DTYPE_U8))
		return refuse(text, size, -EINVAL, name, "mean and std need a float dtype");
	r->store.dtype = u[0];
	r->store.layout = u[1];
	r->store.normalize = u[2];
	for (int c = 0; u[2] && c < 3; c++) {
		r->store.mean[c] = op->parameter.f[3 + c];
		r->store.std[c] = op->parameter.f[6 + c];
		if (!isfinite(r->store.mean[c]) || !isfinite(r->store.std[c]) ||
			r->store.std[c] == 0.0f)
			return refuse(text, size, -EINVAL, name,
				"mean must be finite and std finite and not zero");
	}
	return 0;
}

/*
 * The operations that exist, each with the place that it may take in the chain: a later one may
 * not stand before an earlier one, and none twice.
 */
struct operation_row {
	uint32_t code;
	unsigned int rank;
	const char *name;
	int (*take)(struct recipe *r, const struct control_operation *op, char *text, size_t size);
};

static int take_decode(
	struct recipe *r, const struct control_operation *op, char *text, size_t size)
{
	if (op->parameter.u[0] > 1)
		return refuse(text, size, -EINVAL, "Decode", "orientation is 0 or 1");
	r->orientation = op->parameter.u[0];
	return 0;
}

static const struct operation_row operations[] = {
	{ OPERATION_DECODE, 1, "Decode", take_decode },
	{ OPERATION_RANDOM_RESIZED_CROP, 2, "RandomResizedCrop", take_random_resized_crop },
	{ OPERATION_RESIZE, 3, "Resize", take_resize },
	{ OPERATION_CENTER_CROP, 4, "CenterCrop", take_center_crop },
	{ OPERATION_HORIZONTAL_FLIP, 5, "HorizontalFlip", take_flip },
	{ OPERATION_NORMALIZE, 6, "Normalize", take_normalize },
};

static const struct operation_row *find_operation(uint32_t code)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (operations[i].code == code)
			return &operations[i];
	}
	return NULL;
}

static int take_operations(
	struct recipe *r, const struct control_open_lane *open, char *text, size_t size)
{
	unsigned int rank = 0;

	if (open->operation_count > CONTROL_OPS_MAX) {
		snprintf(text, size, "%u operations are more than %d", open->operation_count,
			CONTROL_OPS_MAX);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < open->operation_count; i++) {
		const struct control_operation *op = &open->operations[i];
		const struct operation_row *row = find_operation(op->code);
		int e;

		if (!row || op->version != 1) {
			snprintf(text, size,
				"operation %u version %u (%s) is not in this version of feeder "
				"(" FEEDER_VERSION "); it needs a newer feederd",
				op->code, op->version, row ? row->name : "unknown");
			return -ENOSYS;
		}
		if (row->rank <= rank)
			return refuse(text, size, -EINVAL, row->name,
				"it stands twice or after an operation that must follow it");
		rank = row->rank;
		e = row->take(r, op, text, size);
		if (e < 0)
			return e;
	}
	return 0;
}

int recipe_init(struct recipe *ret, const struct control_open_lane *open, char *text, size_t size)
{
	struct recipe r = {
		.filter = FILTER_BILINEAR,
		.seed = open->seed,
		.pixel_digest = open->flags & CONTROL_LANE_PIXEL_DIGEST,
		.store = { .dtype = DTYPE_U8, .layout = LAYOUT_NHWC },
	};
	int e = take_operations(&r, open, text, size);

	if (e < 0)
		return e;
	if (r.train && (r.short_side || r.height == 0)) {
		snprintf(text, size, "RandomResizedCrop and Resize exclude each other");
		return -EINVAL;
	}
	if (r.height == 0) {
		snprintf(text, size,
			"the operations give no fixed size: end them with RandomResizedCrop or "
			"CenterCrop");
		return -EINVAL;
	}
	r.store.width = r.width;
	r.store.height = r.height;
	r.packed_bytes = (size_t)r.width * r.height * 3;
	r.place_bytes = r.packed_bytes * dtype_size((int)r.store.dtype);
	r.direct = r.store.dtype == DTYPE_U8 && r.store.layout == LAYOUT_NHWC;
	e = store_table_new(&r.table, &r.store);
	if (e < 0)
		return e;
	*ret = r;
	return 0;
}

void recipe_deinit(struct recipe *recipe)
{
	store_table_free(recipe->table);
	recipe->table = NULL;
}

void recipe_fields(const struct recipe *recipe, uint32_t capacity, struct ring_shape *shape)
{
	struct ring_shape_field *images = &shape->fields[0];
	struct ring_shape_field *labels = &shape->fields[1];
	int64_t item = (int64_t)dtype_size((int)recipe->store.dtype);
	int64_t w = recipe->width, h = recipe->height;

	*images = (struct ring_shape_field){
		.name = "images",
		.dtype = recipe->store.dtype,
		.ndim = 4,
		.place_bytes = recipe->place_bytes,
	};
	if (recipe->store.layout == LAYOUT_NHWC) {
		memcpy(images->shape, (uint64_t[4]){ capacity, (uint64_t)h, (uint64_t)w, 3 }, 32);
		memcpy(images->strides,
			(int64_t[4]){ h * w * 3 * item, w * 3 * item, 3 * item, item }, 32);
	} else {
		memcpy(images->shape, (uint64_t[4]){ capacity, 3, (uint64_t)h, (uint64_t)w }, 32);
		memcpy(images->strides,
			(int64_t[4]){ h * w * 3 * item, h * w * item, w * item, item }, 32);
	}
	*labels = (struct ring_shape_field){
		.name = "labels",
		.dtype = DTYPE_I64,
		.ndim = 1,
		.shape = { capacity },
		.strides = { 8 },
		.place_bytes = 8,
	};
	shape->field_count = 2;
}
