/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of what goes over the socket: packet, control, client, lane, ring, cursor. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "order/order.h"
#include "protocol/control.h"
#include "protocol/ring.h"
#include "seeds.h"

/* ---- messages ---- */

static const struct control_hello hello = {
	.size = sizeof(hello), .major = CONTROL_MAJOR, .version = "0.1.0", .program = "seed"
};
static const struct control_open_dataset dataset = { .size = sizeof(dataset), .path = "/data/set" };
static const struct control_paths paths = { .size = sizeof(paths), .dataset = 1, .count = 9 };
static const struct control_stats stats = { .size = sizeof(stats) };
static const struct control_close close_both = {
	.size = sizeof(close_both), .lane = 2, .dataset = 1
};
static const struct control_set_epoch epoch = { .size = sizeof(epoch), .lane = 2, .epoch = 5 };
static const struct control_set_epoch ids = {
	.size = sizeof(ids), .lane = 2, .epoch = 5, .ids = 4
};

static struct control_open_lane make_lane(void)
{
	struct control_open_lane lane = {
		.size = sizeof(lane),
		.dataset = 1,
		.world = 4,
		.batch = 8,
		.accumulate = 1,
		.order = ORDER_TORCH,
		.tail = ORDER_PAD,
		.bad = CONTROL_BAD_SUBSTITUTE,
		.numa_node = -1,
		.job = "job",
		.name = "train:set:0",
		.operation_count = 2,
	};

	lane.operations[0] = (struct control_operation){
		.code = CONTROL_OP_RANDOM_RESIZED_CROP,
		.version = 1,
		.parameter.f = { 0.08f, 1.0f, 0.75f, 1.333f },
	};
	lane.operations[0].parameter.u[4] = 16;
	lane.operations[0].parameter.u[5] = 16;
	lane.operations[0].parameter.u[6] = 1;
	lane.operations[1] = (struct control_operation){
		.code = CONTROL_OP_HORIZONTAL_FLIP, .version = 1, .parameter.f = { 0.5f }
	};
	return lane;
}

static void packet(const char *name, uint32_t type, const void *body, size_t size)
{
	struct control_header header = {
		.size = (uint32_t)(sizeof(header) + size), .type = type, .serial = 1
	};
	struct row row = { .size = 0 };

	row_u8(&row, type == CONTROL_OPEN_DATASET ? 0x82 : 0x80);
	row_put(&row, &header, sizeof(header));
	row_put(&row, body, size);
	seed_put("packet", name, row.bytes, row.size);
}

static void seeds_packet(void)
{
	struct control_open_lane lane = make_lane();
	struct control_error error = { .size = sizeof(error), .code = -2, .text = "not there" };
	struct control_header many = { .size = sizeof(many), .type = 8, .serial = 9 };
	struct row row = { .size = 0 };

	packet("hello", CONTROL_HELLO, &hello, sizeof(hello));
	packet("dataset", CONTROL_OPEN_DATASET, &dataset, 64);
	packet("lane", CONTROL_OPEN_LANE, &lane, sizeof(lane));
	packet("paths", CONTROL_PATHS, &paths, sizeof(paths));
	packet("close", CONTROL_CLOSE, &close_both, sizeof(close_both));
	packet("error", CONTROL_ERROR, &error, sizeof(error));
	packet("empty", CONTROL_DRAINING, "", 0);
	row_u8(&row, 0x88); /* more descriptors than a packet may have */
	row_put(&row, &many, sizeof(many));
	seed_put("packet", "descriptors", row.bytes, row.size);
}

/* ---- control ---- */

static void record(
	struct row *row, unsigned int type, unsigned int options, const void *body, size_t size)
{
	row_u8(row, type);
	row_u8(row, options);
	row_u16(row, (unsigned int)size);
	row_put(row, body, size);
}

static void put_control(const char *name, const struct row *row)
{
	seed_put("control", name, row->bytes, row->size);
}

#define SET  (1u << 4)
#define IDS  (3u << 4)
#define LIST (5u << 4)

static void seeds_control(void)
{
	struct control_open_lane lane = make_lane();
	struct control_seek seek = { .size = sizeof(seek), .lane = 2, .cursor_size = 16 };
	struct row row = { .size = 0 };

	row_u8(&row, 0);
	record(&row, CONTROL_OPEN_DATASET, SET, &dataset, 64);
	record(&row, CONTROL_OPEN_LANE, 0, &lane, sizeof(lane));
	record(&row, CONTROL_SEEK, 0, &seek, sizeof(seek));
	record(&row, CONTROL_SET_EPOCH, 0, &epoch, sizeof(epoch));
	record(&row, CONTROL_SET_EPOCH, IDS, &ids, sizeof(ids));
	record(&row, CONTROL_STATS, 0, &stats, sizeof(stats));
	record(&row, CONTROL_PATHS, 0, &paths, sizeof(paths));
	record(&row, CONTROL_CLOSE, 0, &close_both, sizeof(close_both));
	put_control("whole", &row);
	row.size = 1;
	record(&row, CONTROL_OPEN_DATASET, SET, &dataset, 64);
	record(&row, CONTROL_OPEN_DATASET, SET | 1, &dataset, 64);
	record(&row, CONTROL_OPEN_LANE, 0, &lane, sizeof(lane));
	lane.flags = CONTROL_LANE_TAKEOVER;
	record(&row, CONTROL_OPEN_LANE, 1, &lane, sizeof(lane));
	record(&row, CONTROL_CLOSE, 0, &close_both, sizeof(close_both));
	put_control("takeover", &row);
	row.size = 1;
	record(&row, CONTROL_OPEN_DATASET, LIST | 8 | 128, &dataset, 64);
	record(&row, CONTROL_OPEN_DATASET, SET | 8, &dataset, 64);
	record(&row, 0xf0, 0, "\1", 1);
	record(&row, CONTROL_OPEN_LANE, 8, &lane, sizeof(lane));
	record(&row, 0xf3, 0, "", 0);
	record(&row, CONTROL_STATS, 0, &stats, sizeof(stats));
	put_control("no-wait", &row);
	row.size = 1;
	row.bytes[0] = 1;
	record(&row, CONTROL_HELLO, 0, &hello, sizeof(hello));
	record(&row, CONTROL_HELLO, 0, &hello, sizeof(hello));
	record(&row, 0x42, 1, &stats, sizeof(stats));
	put_control("hello", &row);
	row.size = 1;
	row.bytes[0] = 0;
	record(&row, 0xf1, 0, "\7", 1);
	record(&row, CONTROL_OPEN_DATASET, SET, &dataset, 64);
	lane.flags = 0;
	record(&row, CONTROL_OPEN_LANE, 0, &lane, sizeof(lane));
	record(&row, 0xf2, 0, "\1", 1);
	record(&row, CONTROL_STATS, 2, &stats, sizeof(stats));
	put_control("lane-fails", &row);
}

/* ---- client ---- */

static void patch(struct row *row, unsigned int where, unsigned int at, const char *bytes, size_t n)
{
	row_u8(row, where);
	row_u16(row, at);
	row_u8(row, (unsigned int)n);
	row_put(row, bytes, n);
}

static void put_patch(const char *name, unsigned int deeds, unsigned int where, unsigned int at,
	const char *bytes, size_t n)
{
	struct row row = { .size = 0 };

	row_u8(&row, deeds);
	if (n > 0)
		patch(&row, where, at, bytes, n);
	seed_put("client", name, row.bytes, row.size);
}

static void seeds_client(void)
{
	put_patch("plain", 0xff, 0, 0, "", 0);
	put_patch("plain-short", 0x20, 0, 0, "", 0);
	put_patch("header-slots", 0xff, 0, offsetof(struct ring_header, slots), "\1", 1);
	put_patch("header-capacity", 0xff, 0, offsetof(struct ring_header, capacity), "\3", 1);
	put_patch("header-offset", 0xff, 0, offsetof(struct ring_header, slot_offset), "\0\x10", 2);
	put_patch("images-ndim", 0xff, 1, offsetof(struct ring_field, ndim), "\1", 1);
	put_patch("images-stride", 0xff, 1, offsetof(struct ring_field, strides),
		"\1\1\0\0\0\0\0\x80", 8);
	put_patch("labels-dtype", 0xff, 2, offsetof(struct ring_field, dtype), "\1", 1);
	put_patch("reply-first", 0xff, 3, offsetof(struct control_lane, first), "\2", 1);
	put_patch("reply-cursor", 0xff, 3, offsetof(struct control_lane, cursor_size), "\0\1", 2);
	put_patch("descriptor-offset", 0xff, 4, 0x4000 | offsetof(struct ring_descriptor, fields),
		"\1", 1);
	put_patch("descriptor-bytes", 0xff, 4,
		0x8000 | (offsetof(struct ring_descriptor, fields) + 8), "\xff\xff", 2);
	put_patch("published", 0xff, 5, 0, "\x80", 1);
	put_patch("state", 0xff, 5, 4, "\2", 1);
	put_patch("answer-short", 0xff, 6, 0x0100, "\4\0\0\0", 4);
	put_patch(
		"answer-error", 0xff, 6, 0x0201, "\x10\0\0\0\xfe\xff\xff\xff\1\0\0\0\0\0\0\0", 16);
	put_patch("answer-event", 0xff, 6, 0x0323, "\x8\0\0\0\1\0\0\0", 8);
	put_patch("answer-fds", 0xff, 6, 0x0108, "\4\0\0\0", 4);
	put_patch("answer-end", 0xff, 6, 0x0207, "\0", 1);
}

/* ---- lane: what is xored into the fixture's request ---- */

static void put_lane(const char *name, unsigned int options, uint64_t at_epoch, uint64_t c,
	size_t offset, uint32_t bits)
{
	struct row row = { .size = 0 };

	row_u8(&row, options);
	row_u64(&row, at_epoch);
	row_u64(&row, c);
	for (size_t i = offsetof(struct control_open_lane, flags); bits && i < offset; i++)
		row_u8(&row, 0);
	if (bits)
		row_put(&row, &bits, sizeof(bits));
	seed_put("lane", name, row.bytes, row.size);
}

#define FIELD(name) offsetof(struct control_open_lane, name)

static void seeds_lane(void)
{
	const size_t op = FIELD(operations);
	const size_t next = sizeof(struct control_operation);

	put_lane("plain", 0, 0, 0, 0, 0);
	put_lane("cursor", 1, 3, 16, 0, 0);
	put_lane("cursor-end", 1, 3, 60, 0, 0);
	put_lane("cursor-far", 1, UINT64_MAX, UINT64_MAX, 0, 0);
	put_lane("seek", 0x0f, 2, 8, 0, 0);
	put_lane("world", 1, 0, 1, FIELD(world), 0xfffffffe);
	put_lane("batch-1", 0x0f, 0, 4, FIELD(batch), 8 ^ 1);
	put_lane("accumulate", 0x0f, 0, 8, FIELD(accumulate), 1 ^ 4);
	put_lane("drop", 0x0f, 0, 8, FIELD(tail), ORDER_PAD ^ ORDER_DROP);
	put_lane("mask", 0x0f, 0, 8, FIELD(tail), ORDER_PAD ^ ORDER_MASK);
	put_lane("feistel", 0x0f, 7, 8, FIELD(order), ORDER_TORCH ^ ORDER_FEISTEL);
	put_lane("sequential", 0x0f, 7, 8, FIELD(order), ORDER_TORCH ^ ORDER_SEQUENTIAL);
	put_lane("ids", 0x8f, 7, 8, FIELD(order), ORDER_TORCH ^ ORDER_IDS);
	put_lane("dataloader", 0x8f, 7, 8, FIELD(order), ORDER_TORCH ^ ORDER_DATALOADER);
	put_lane("fail", 0x0f, 0, 8, FIELD(bad), CONTROL_BAD_SUBSTITUTE ^ CONTROL_BAD_FAIL);
	put_lane("slots", 0, 0, 0, FIELD(slots), 5);
	put_lane("max-batches", 0x0f, 0, 0, FIELD(max_batches), 2);
	put_lane("parts", 0x0f, 0, 0, FIELD(parts), 3);
	put_lane("resize", 0, 0, 0, op, CONTROL_OP_RANDOM_RESIZED_CROP ^ CONTROL_OP_RESIZE);
	put_lane(
		"normalize", 0, 0, 0, op + next, CONTROL_OP_HORIZONTAL_FLIP ^ CONTROL_OP_NORMALIZE);
	put_lane("operations-0", 0, 0, 0, FIELD(operation_count), 2);
}

/* ---- ring ---- */

static void put_ring(const char *name, unsigned int options, const struct ring_header *h)
{
	struct ring_field field = { .name = "images",
		.dtype = 1,
		.ndim = 4,
		.shape = { 4, 8, 8, 3 },
		.strides = { 192, 24, 3, 1 } };
	struct row row = { .size = 0 };

	row_u8(&row, options);
	row_put(&row, h, sizeof(*h));
	row_put(&row, &field, sizeof(field));
	seed_put("ring", name, row.bytes, row.size);
}

static void seeds_ring(void)
{
	struct ring_header h = {
		.magic = RING_MAGIC,
		.major = RING_MAJOR,
		.header_size = sizeof(h),
		.slots = 4,
		.capacity = 4,
		.field_count = 2,
		.field_size = sizeof(struct ring_field),
		.place_size = sizeof(struct ring_place),
		.fields_offset = sizeof(h),
		.words_offset = 1024,
		.descriptor_offset = 4096,
		.descriptor_stride = 4096,
		.places_offset = sizeof(struct ring_descriptor),
		.slot_offset = 20480,
		.slot_stride = 4096,
		.total_size = 20480 + 4 * 4096,
		.control_size = 4096,
		.waiting_offset = RING_CONTROL_WAITING,
		.telemetry_offset = RING_CONTROL_TELEMETRY,
		.release_offset = RING_CONTROL_RELEASE,
		.release_stride = 128,
	};

	put_ring("plain", 8, &h);
	put_ring("future-write", 8 | 16, &h);
	put_ring("unsealed", 9, &h);
	put_ring("short-payload", 10, &h);
	put_ring("short-control", 12, &h);
	put_ring("same-memfd", 40, &h);
	h.slots = 1;
	put_ring("slots-1", 8, &h);
	h.slots = 4;
	h.flags = RING_PAYLOAD_RW;
	put_ring("writable", 8, &h);
	h.capacity = UINT32_MAX;
	put_ring("capacity", 8, &h);
	h.capacity = 26; /* as many as fit */
	h.field_size = 512;
	h.parcel_offset = 1024;
	h.parcel_size = 3072;
	put_ring("grown", 8, &h);
	h.slot_stride = UINT64_MAX;
	put_ring("stride", 8, &h);
}

/* ---- cursor ---- */

static void put_cursor(const char *name, const struct cursor *cursor, const struct shard *s)
{
	char whole[64];
	uint8_t bytes[CURSOR_SIZE];
	struct row row = { .size = 0 };

	cursor_encode(cursor, bytes);
	row_put(&row, bytes, sizeof(bytes));
	seed_put("cursor", name, row.bytes, row.size);
	row_u64(&row, s->n);
	row_put(&row, &s->world, 7 * sizeof(uint32_t)); /* world … parts, as they stand */
	snprintf(whole, sizeof(whole), "%s-shard", name);
	seed_put("cursor", whole, row.bytes, row.size);
}

static void seeds_cursor(void)
{
	uint8_t bytes[CURSOR_SIZE];
	const struct cursor cursor = { .order = ORDER_TORCH, .seed = 7, .epoch = 3, .c = 512 };
	const struct cursor end = {
		.order = ORDER_IDS, .seed = UINT64_MAX, .epoch = UINT64_MAX, .c = UINT64_MAX
	};
	const struct shard s = { .n = 1000,
		.world = 4,
		.rank = 1,
		.batch = 8,
		.accumulate = 2,
		.tail = ORDER_PAD,
		.parts = 1 };

	put_cursor("end", &end, &s);
	put_cursor("plain", &cursor, &s);
	cursor_encode(&cursor, bytes);
	bytes[CURSOR_SIZE - 1] = 1;
	seed_put("cursor", "spare", bytes, sizeof(bytes));
}

void seeds_wire(void)
{
	seeds_packet();
	seeds_control();
	seeds_client();
	seeds_lane();
	seeds_ring();
	seeds_cursor();
}
