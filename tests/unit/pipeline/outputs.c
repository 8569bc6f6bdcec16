/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes may ask for: dtypes and layouts, evaluation, orders of the client's, parts, limits. */
#include "unit/pipeline/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIDE 32

static void add_normalize(
	struct control_open_lane *open, uint32_t dtype, uint32_t layout, bool mean)
{
	struct control_operation *op = &open->operations[open->operation_count++];

	*op = (struct control_operation){ .code = OPERATION_NORMALIZE, .version = 1 };
	op->parameter.u[0] = dtype;
	op->parameter.u[1] = layout;
	op->parameter.u[2] = mean;
	for (int c = 0; mean && c < 3; c++) {
		op->parameter.f[3 + c] = 0.4f + 0.05f * (float)c;
		op->parameter.f[6 + c] = 0.2f + 0.03f * (float)c;
	}
}

/* Both lanes of one order, batch by batch: the float one is the uint8 one, computed here. */
static void compare_float(struct pipeline *p, struct folder *f, uint32_t layout)
{
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer bytes, floats;

	request_init(&open);
	consumer_open(&bytes, p, f, &open);
	add_normalize(&open, DTYPE_F32, layout, true);
	consumer_open(&floats, p, f, &open);
	for (unsigned int i = 0; i < 9; i++) {
		const uint8_t *u;
		const float *v;

		assert_true(consumer_take(&bytes, &d));
		u = ring_map_slot(&bytes.map, d.number) + d.fields[0].offset;
		assert_true(consumer_take(&floats, &d));
		v = (const void *)(ring_map_slot(&floats.map, d.number) + d.fields[0].offset);
		for (size_t at = 0; at < (size_t)d.count * SIDE * SIDE * 3; at++) {
			size_t place = at / (SIDE * SIDE * 3), pixel = at / 3 % (SIDE * SIDE),
			       c = at % 3;
			size_t to =
				layout == LAYOUT_NHWC ? at : (place * 3 + c) * SIDE * SIDE + pixel;
			float mean = 0.4f + 0.05f * (float)c, std = 0.2f + 0.03f * (float)c;
			float want = ((float)u[at] / 255.0f - mean) / std;

			if (v[to] != want)
				fail_msg("batch %u value %zu: %.9g, not %.9g", i, at, (double)v[to],
					(double)want);
		}
		consumer_release(&bytes, d.number);
		consumer_release(&floats, d.number);
	}
	/* the digest is of the pixels before dtype and layout */
	assert_true(bytes.pixel_digest == floats.pixel_digest);
	consumer_close(&bytes);
	consumer_close(&floats);
}

static void test_float_outputs_are_the_bytes_normalised(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct folder f;
	struct pipeline *p;

	(void)state;
	folder_make(&f);
	folder_put(&f, 3, "broken", 6);
	folder_open(&f);
	p = pipeline_make(&options);
	compare_float(p, &f, LAYOUT_NCHW);
	compare_float(p, &f, LAYOUT_NHWC);
	pipeline_free(p);
	folder_free(&f);
}

static void test_half_types_and_sizes(void **state)
{
	static const uint32_t dtypes[] = { DTYPE_F16, DTYPE_BF16, DTYPE_U8 };
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct folder f;
	struct pipeline *p;
	uint64_t digest = 0;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	for (size_t i = 0; i < 3; i++) {
		const struct ring_field *field;

		request_init(&open);
		add_normalize(&open, dtypes[i], LAYOUT_NCHW, false);
		consumer_open(&c, p, &f, &open);
		field = ring_map_field(&c.map, 0);
		assert_int_equal(field->dtype, dtypes[i]);
		assert_int_equal(field->shape[1], 3);
		assert_int_equal(field->strides[3], dtype_size((int)dtypes[i]));
		assert_true(consumer_next(&c, &d));
		assert_true(d.fields[0].bytes == 8 * 3 * SIDE * SIDE * dtype_size((int)dtypes[i]));
		assert_true(i == 0 || digest == c.pixel_digest);
		digest = c.pixel_digest;
		consumer_close(&c);
	}
	pipeline_free(p);
	folder_free(&f);
}

static void evaluation(struct control_open_lane *open, uint32_t side, uint32_t crop)
{
	request_init(open);
	open->order = ORDER_SEQUENTIAL;
	open->operation_count = 2;
	memset(open->operations, 0, sizeof(open->operations));
	open->operations[0].code = OPERATION_RESIZE;
	open->operations[0].version = 1;
	open->operations[0].parameter.u[0] = side;
	open->operations[0].parameter.u[1] = FILTER_BILINEAR;
	open->operations[1].code = OPERATION_CENTER_CROP;
	open->operations[1].version = 1;
	open->operations[1].parameter.u[0] = crop;
	open->operations[1].parameter.u[1] = crop;
}

/* A crop larger than the resized image is padded with zeros, less of them on the left. */
static void test_evaluation_pads_with_zeros(void **state)
{
	struct pipeline_options options = { .workers = 1 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer small, large;
	struct folder f;
	struct pipeline *p;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	evaluation(&open, 20, 20);
	consumer_open(&small, p, &f, &open);
	evaluation(&open, 20, 61);
	consumer_open(&large, p, &f, &open);
	assert_true(consumer_take(&small, &d));
	assert_true(consumer_take(&large, &d));
	for (uint32_t k = 0; k < d.count; k++) {
		const struct ring_place *place = ring_map_place(&large.map, d.number, k);
		const uint8_t *a = ring_map_slot(&small.map, 1) + k * 20 * 20 * 3;
		const uint8_t *b = ring_map_slot(&large.map, 1) + place->offset;
		uint32_t w, h, left, top;

		assert_int_equal(place->box_w, place->source_w);
		resize_size(place->source_w, place->source_h, 20, &w, &h);
		assert_int_equal(h < w ? h : w, 20);
		if (w > 61 || h > 61)
			continue;
		left = (61 - w) / 2;
		top = (61 - h) / 2;
		for (uint32_t y = 0; y < 61; y++) {
			for (uint32_t x = 0; x < 61 * 3; x++) {
				bool inside = y >= top && y < top + h && x >= left * 3 &&
					      x < (left + w) * 3;

				if (!inside)
					assert_int_equal(b[y * 61 * 3 + x], 0);
			}
		}
		/* the middle 20 pixels are those of the smaller crop */
		for (uint32_t y = 0; y < 20; y++) {
			uint32_t from_x = left + (uint32_t)lrint(((double)w - 20) / 2);
			uint32_t from_y = top + (uint32_t)lrint(((double)h - 20) / 2);

			assert_memory_equal(a + y * 60, b + ((from_y + y) * 61 + from_x) * 3, 60);
		}
	}
	consumer_close(&small);
	consumer_close(&large);
	pipeline_free(p);
	folder_free(&f);
}

static void test_ids_of_the_client(void **state)
{
	static const int64_t first[] = { 5, 5, 9, 0, 59, 17, 3, 2, 1, 30, 31 };
	static const int64_t bad[] = { 0, 60 };
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct folder f;
	struct pipeline *p;
	char text[512] = "";

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	request_init(&open);
	open.order = ORDER_IDS;
	open.batch = 4;
	consumer_open(&c, p, &f, &open);
	assert_int_equal(lane_set_epoch(c.lane, 0, NULL, 0, &c.reply, text, sizeof(text)), -EINVAL);
	assert_int_equal(lane_set_epoch(c.lane, 0, bad, 2, &c.reply, text, sizeof(text)), -ERANGE);
	for (uint64_t epoch = 3; epoch < 5; epoch++) {
		unsigned int at = 0;

		assert_int_equal(
			lane_set_epoch(c.lane, epoch, first, 11, &c.reply, text, sizeof(text)), 0);
		assert_int_equal(c.reply.steps, 3);
		assert_int_equal(c.reply.first, c.next);
		for (unsigned int step = 0; step < 3; step++) {
			assert_true(consumer_take(&c, &d));
			assert_int_equal(d.epoch, epoch);
			for (uint32_t k = 0; k < d.count; k++)
				assert_int_equal(
					ring_map_place(&c.map, d.number, k)->id, first[at++]);
			consumer_release(&c, d.number);
		}
		assert_int_equal(at, 11);
	}
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

/* Parts 0 and 1 of 2 are the two halves of each batch. */
static void test_parts_tile_the_batch(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer whole, part[2];
	struct folder f;
	struct pipeline *p;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	request_init(&open);
	open.batch = 7;
	open.tail = ORDER_MASK;
	consumer_open(&whole, p, &f, &open);
	open.parts = 2;
	for (uint32_t g = 0; g < 2; g++) {
		open.part = g;
		consumer_open(&part[g], p, &f, &open);
	}
	for (unsigned int i = 0; i < 12; i++) {
		uint32_t at = 0;

		assert_true(consumer_take(&whole, &d));
		for (uint32_t g = 0; g < 2; g++) {
			struct ring_descriptor e;

			assert_true(consumer_take(&part[g], &e));
			for (uint32_t k = 0; k < e.count; k++, at++)
				assert_int_equal(
					ring_map_place(&part[g].map, e.number, k)->position,
					ring_map_place(&whole.map, d.number, at)->position);
			assert_memory_equal(e.cursor, d.cursor, CURSOR_SIZE);
			consumer_release(&part[g], e.number);
		}
		assert_int_equal(at, 7);
		consumer_release(&whole, d.number);
	}
	assert_true(whole.pixel_digest == part[0].pixel_digest + part[1].pixel_digest);
	consumer_close(&whole);
	consumer_close(&part[0]);
	consumer_close(&part[1]);
	pipeline_free(p);
	folder_free(&f);
}

/* A lane that is to end prepares nothing beyond, and says where it ends. */
static void test_limits_of_a_lane(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct folder f;
	struct pipeline *p;
	uint64_t counters[STATS_LANE_COUNT];
	uint32_t lane_state;
	char text[512];

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	request_init(&open);
	open.max_epochs = 2;
	consumer_open(&c, p, &f, &open);
	assert_int_equal(c.reply.last, 16);
	for (unsigned int i = 0; i < 16; i++)
		assert_true(consumer_next(&c, &d));
	assert_true(d.flags & RING_LAST_OF_EPOCH);
	lane_counters(c.lane, counters, &lane_state);
	assert_int_equal(counters[STATS_LANE_batches], 16);
	assert_int_equal(lane_set_epoch(c.lane, 2, NULL, 0, &c.reply, text, sizeof(text)), -EINVAL);
	assert_int_equal(lane_set_epoch(c.lane, 1, NULL, 0, &c.reply, text, sizeof(text)), 0);
	assert_int_equal(c.reply.last, 24);
	c.next = c.reply.first;
	for (unsigned int i = 0; i < 8; i++)
		assert_true(consumer_next(&c, &d));
	consumer_close(&c);
	request_init(&open);
	open.max_batches = 3;
	consumer_open(&c, p, &f, &open);
	assert_int_equal(c.reply.last, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(consumer_next(&c, &d));
	lane_counters(c.lane, counters, &lane_state);
	assert_int_equal(counters[STATS_LANE_batches], 3);
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_float_outputs_are_the_bytes_normalised),
		cmocka_unit_test(test_half_types_and_sizes),
		cmocka_unit_test(test_evaluation_pads_with_zeros),
		cmocka_unit_test(test_ids_of_the_client),
		cmocka_unit_test(test_parts_tile_the_batch),
		cmocka_unit_test(test_limits_of_a_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
