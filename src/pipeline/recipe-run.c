/* SPDX-License-Identifier: Apache-2.0 */
/* One sample through the recipe: header, box, region, resize, store, digest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/philox.h"
#include "order/order.h"
#include "pipeline/recipe.h"

#define VERDICT_GOOD 1
#define VERDICT_BAD  16 /* + status */

int bench_init(struct bench *ret, const struct decode_limits *limits)
{
	struct bench bench = { .limits = *limits };
	int r;

	bench.limits.apply_orientation = false;
	r = decoder_new(&bench.decoder, &bench.limits);
	if (r == 0)
		r = resizer_new(&bench.resizer, RESIZE_LEVELS);
	if (r < 0) {
		bench_deinit(&bench);
		return r;
	}
	*ret = bench;
	return 0;
}

void bench_deinit(struct bench *bench)
{
	decoder_free(bench->decoder);
	decoder_free(bench->orienting);
	resizer_free(bench->resizer);
	free(bench->packed);
	memset(bench, 0, sizeof(*bench));
}

int bench_fit(struct bench *bench, const struct recipe *recipe)
{
	if (recipe->orientation && !bench->orienting) {
		struct decode_limits limits = bench->limits;
		int r;

		limits.apply_orientation = true;
		r = decoder_new(&bench->orienting, &limits);
		if (r < 0)
			return r;
	}
	if (bench->packed_capacity < recipe->packed_bytes) {
		free(bench->packed);
		bench->packed_capacity = 0;
		bench->packed = malloc(recipe->packed_bytes);
		if (!bench->packed)
			return -ENOMEM;
		bench->packed_capacity = recipe->packed_bytes;
	}
	return 0;
}

/* The resize of this sample: what is read of the source and where it lands in the output. */
struct geometry {
	struct box region; /* to decode */
	struct resize_plan plan;
	uint32_t origin_x; /* of the plan's input image, in the source */
	uint32_t origin_y;
	uint32_t out_x; /* where the window lands; the rest is zeros */
	uint32_t out_y;
};

static struct geometry train_geometry(const struct recipe *r, const struct sample_input *in,
	const struct image_info *info, bool flip)
{
	struct philox_stream s;
	struct crop_box crop;

	philox_stream_init(
		&s, r->seed, in->id, (uint32_t)in->epoch, 0, OPERATION_RANDOM_RESIZED_CROP);
	crop = random_resized_crop(&s, info->width, info->height, r->scale, r->ratio);
	return (struct geometry){
		.region = { crop.x, crop.y, crop.w, crop.h },
		.plan = {
			.in_w = crop.w,
			.in_h = crop.h,
			.out_w = r->width,
			.out_h = r->height,
			.ww = r->width,
			.wh = r->height,
			.filter = r->filter,
			.flip = flip,
		},
		.origin_x = crop.x,
		.origin_y = crop.y,
	};
}

/* The part of [offset, offset + length) that lies in [0, size): start, count, and its place. */
static void clip(int32_t offset, uint32_t length, uint32_t size, uint32_t *ret_first,
	uint32_t *ret_count, uint32_t *ret_out)
{
	int64_t first = offset > 0 ? offset : 0;
	int64_t end = (int64_t)offset + length;

	if (end > size)
		end = size;
	*ret_first = (uint32_t)first;
	*ret_count = (uint32_t)(end - first);
	*ret_out = (uint32_t)(first - offset);
}

static struct geometry eval_geometry(
	const struct recipe *r, const struct image_info *info, bool flip)
{
	struct geometry g = { .plan = { .filter = r->filter, .flip = flip } };
	struct resize_plan *p = &g.plan;
	int32_t x, y;

	p->in_w = info->width;
	p->in_h = info->height;
	p->out_w = info->width;
	p->out_h = info->height;
	if (r->short_side)
		resize_size(info->width, info->height, r->short_side, &p->out_w, &p->out_h);
	center_crop(p->out_w, p->out_h, r->width, r->height, &x, &y);
	clip(x, r->width, p->out_w, &p->wx, &p->ww, &g.out_x);
	clip(y, r->height, p->out_h, &p->wy, &p->wh, &g.out_y);
	if (flip)
		g.out_x = r->width - g.out_x - p->ww;
	resize_span(p->in_w, p->out_w, p->wx, p->ww, p->filter, &g.region.x, &g.region.w);
	resize_span(p->in_h, p->out_h, p->wy, p->wh, p->filter, &g.region.y, &g.region.h);
	return g;
}

static bool draw_flip(const struct recipe *r, const struct sample_input *in)
{
	struct philox_stream s;

	if (!(r->flip > 0.0f))
		return false;
	philox_stream_init(&s, r->seed, in->id, (uint32_t)in->epoch, 0, OPERATION_HORIZONTAL_FLIP);
	return random_flip(&s, r->flip);
}

/* One verdict for a file, whatever the crop: one that has no end is looked at to its end, once. */
static int check_end(struct decoder *d, const struct sample_input *in,
	const struct image_info *info, struct sample_result *ret, struct fault *fault)
{
	int status;

	if (info->complete || in->verdict == VERDICT_GOOD)
		return 0;
	if (in->verdict >= VERDICT_BAD) {
		status = in->verdict - VERDICT_BAD;
		return fault_set(fault, status, 0,
			"%s (known from an earlier look at the whole file)",
			status_sentence(status));
	}
	status = decoder_check_end(d, fault);
	ret->verdict = status ? (uint8_t)(VERDICT_BAD + status) : VERDICT_GOOD;
	return status;
}

static int out_of_memory(struct fault *fault)
{
	return fault_set(fault, FEEDER_STATUS_INTERNAL, ENOMEM, "out of memory while resizing");
}

static int place_pixels(const struct recipe *recipe, struct bench *bench, const struct geometry *g,
	const struct region *region, void *place, struct fault *fault)
{
	uint8_t *packed = recipe->direct ? place : bench->packed;
	size_t stride = (size_t)recipe->width * 3;

	if (g->plan.ww < recipe->width || g->plan.wh < recipe->height)
		memset(packed, 0, recipe->packed_bytes);
	if (resizer_run(bench->resizer, &g->plan, region->data, region->stride,
		    g->region.x - g->origin_x, g->region.y - g->origin_y,
		    packed + g->out_y * stride + (size_t)g->out_x * 3, stride) < 0)
		return out_of_memory(fault);
	if (!recipe->direct)
		store_run(recipe->table, packed, place);
	return 0;
}

int recipe_run(const struct recipe *recipe, struct bench *bench, const struct sample_input *in,
	void *place, struct sample_result *ret, struct fault *fault)
{
	struct decoder *d = recipe->orientation ? bench->orienting : bench->decoder;
	uint64_t start = thread_cpu_ns(), decoded;
	struct image_info info;
	struct region region;
	struct geometry g;
	int status;

	memset(ret, 0, sizeof(*ret));
	status = decoder_open(d, in->bytes, in->size, &info, fault);
	if (status)
		goto out;
	ret->source_w = info.width;
	ret->source_h = info.height;
	status = check_end(d, in, &info, ret, fault);
	if (status)
		goto out;
	ret->flip = draw_flip(recipe, in);
	if (recipe->train)
		g = train_geometry(recipe, in, &info, ret->flip);
	else
		g = eval_geometry(recipe, &info, ret->flip);
	ret->box = recipe->train ? g.region : (struct box){ 0, 0, info.width, info.height };
	status = decoder_region(d, &g.region, &region, fault);
	if (status)
		goto out;
	decoded = thread_cpu_ns();
	ret->decode_ns = decoded - start;
	status = place_pixels(recipe, bench, &g, &region, place, fault);
	if (!status && recipe->pixel_digest)
		ret->pixel_digest = digest_pixels(in->epoch, in->position, in->id_asked,
			recipe->direct ? place : bench->packed, recipe->packed_bytes, in->label);
	ret->cpu_ns = thread_cpu_ns();
	ret->transform_ns = ret->cpu_ns - decoded;
out:
	decoder_close(d);
	if (status && !ret->decode_ns) {
		ret->cpu_ns = thread_cpu_ns();
		ret->decode_ns = ret->cpu_ns - start;
	}
	return status;
}

void recipe_blank(const struct recipe *recipe, void *place)
{
	store_blank(recipe->table, place);
}
