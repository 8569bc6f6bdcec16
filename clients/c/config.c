/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's configuration: defaults, and its form in the open-lane message. */
#include "client.h"

#include <errno.h>
#include <string.h>

void feeder_lane_config_init(struct feeder_lane_config *config)
{
	*config = (struct feeder_lane_config){
		.size = sizeof(*config),
		.train = 1,
		.batch_size = 256,
		.world_size = 1,
		.parts = 1,
		.accumulate = 1,
		.tail = FEEDER_TAIL_PAD,
		.height = 224,
		.width = 224,
		.scale = { 0.08f, 1.0f },
		.ratio = { 3.0f / 4.0f, 4.0f / 3.0f },
		.hflip = 0.5f,
		.filter = FEEDER_BILINEAR,
		.dtype = FEEDER_UINT8,
		.layout = FEEDER_NHWC,
		.std = { 1.0f, 1.0f, 1.0f },
		.numa_node = -1,
		.timeout_ms = 120000,
	};
}

static struct control_operation *add(struct control_open_lane *message, uint32_t code)
{
	struct control_operation *operation = &message->operations[message->operation_count++];

	operation->code = code;
	operation->version = 1;
	return operation;
}

static void add_training(struct control_open_lane *message, const struct feeder_lane_config *config)
{
	struct control_operation *crop = add(message, CONTROL_OP_RANDOM_RESIZED_CROP);

	crop->parameter.f[0] = config->scale[0];
	crop->parameter.f[1] = config->scale[1];
	crop->parameter.f[2] = config->ratio[0];
	crop->parameter.f[3] = config->ratio[1];
	crop->parameter.u[4] = config->height;
	crop->parameter.u[5] = config->width;
	crop->parameter.u[6] = config->filter;
	if (config->hflip > 0)
		add(message, CONTROL_OP_HORIZONTAL_FLIP)->parameter.f[0] = config->hflip;
}

/* round(min(height, width) / 0.875), half to even as Python's round */
static uint32_t default_resize(const struct feeder_lane_config *config)
{
	uint64_t side = config->height < config->width ? config->height : config->width;
	uint64_t whole = side * 8 / 7;
	uint64_t rest = side * 8 % 7;

	/* rest / 7 is never one half */
	return (uint32_t)(whole + (rest > 3));
}

static void add_evaluation(
	struct control_open_lane *message, const struct feeder_lane_config *config)
{
	struct control_operation *resize = add(message, CONTROL_OP_RESIZE);
	struct control_operation *crop = add(message, CONTROL_OP_CENTER_CROP);

	resize->parameter.u[0] = config->resize ? config->resize : default_resize(config);
	resize->parameter.u[1] = config->filter;
	crop->parameter.u[0] = config->height;
	crop->parameter.u[1] = config->width;
}

static void add_store(struct control_open_lane *message, const struct feeder_lane_config *config)
{
	struct control_operation *store = add(message, CONTROL_OP_NORMALIZE);

	store->parameter.u[0] = config->dtype;
	store->parameter.u[1] = config->layout;
	store->parameter.u[2] = config->normalize != 0;
	for (unsigned int i = 0; i < 3 && config->normalize; i++) {
		store->parameter.f[3 + i] = config->mean[i];
		store->parameter.f[6 + i] = config->std[i];
	}
}

static uint32_t flags(const struct feeder_lane_config *config)
{
	return (config->reopen ? CONTROL_LANE_REOPEN : 0) |
	       (config->takeover ? CONTROL_LANE_TAKEOVER : 0) |
	       (config->pixel_digest ? CONTROL_LANE_PIXEL_DIGEST : 0);
}

int fdr_config_message(struct control_open_lane *ret, const struct feeder_lane_config *config)
{
	if (config->normalize && config->dtype == FEEDER_UINT8)
		return fdr_fail(
			-EINVAL, "lane config: normalize needs a float dtype, dtype is uint8");
	if (config->cursor &&
		(config->cursor_size == 0 || config->cursor_size > CONTROL_CURSOR_MAX))
		return fdr_fail(-EINVAL,
			"lane config: a cursor of %zu bytes is not one of feeder's",
			config->cursor_size);
	if (config->timeout_ms < 0)
		return fdr_fail(-EINVAL, "lane config: timeout_ms is negative");
	*ret = (struct control_open_lane){
		.size = sizeof(*ret),
		.flags = flags(config),
		.rank = config->rank,
		.world = config->world_size,
		.part = config->part,
		.parts = config->parts,
		.batch = config->batch_size,
		.accumulate = config->accumulate,
		.order = config->order,
		.tail = config->tail,
		.bad = config->bad,
		.seed = config->seed,
		.slots = config->slots,
		.numa_node = config->numa_node,
		.weight = config->weight,
		.max_batches = config->max_batches,
		.max_epochs = config->max_epochs,
		.epoch = config->epoch,
	};
	if (ret->order == 0)
		ret->order = config->train ? FEEDER_ORDER_TORCH : FEEDER_ORDER_SEQUENTIAL;
	if (ret->bad == 0)
		ret->bad = config->train ? FEEDER_BAD_SUBSTITUTE : FEEDER_BAD_MASK;
	/* the daemon counts from where the lane opens, which without a cursor is epoch 0 */
	if (config->cursor) {
		ret->cursor_size = (uint32_t)config->cursor_size;
		memcpy(ret->cursor, config->cursor, config->cursor_size);
	}
	if (config->apply_orientation)
		add(ret, CONTROL_OP_DECODE)->parameter.u[0] = 1;
	if (config->train)
		add_training(ret, config);
	else
		add_evaluation(ret, config);
	add_store(ret, config);
	return 0;
}
