/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints every member of every shared struct as the compiler lays it out, "struct member offset
 * size" a line, and every number of the ABI. Members of protocol structs must follow one another
 * without a gap: so none is missing here, and all padding is explicit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "feeder/feeder.h"
#include "protocol/control.h"
#include "protocol/ring.h"
#include "protocol/stats.h"

static const char *current;
static size_t end;
static size_t total;
static int tight;
static int failures;

static void check_gap(size_t offset, const char *what)
{
	if (tight && offset != end) {
		fprintf(stderr, "struct %s: %s at %zu, the member before it ends at %zu\n", current,
			what, offset, end);
		failures++;
	}
}

static void finish(void)
{
	if (current) {
		check_gap(total, "the end");
		printf("%s . %zu\n", current, total);
	}
}

static void begin(const char *name, size_t size, int gaps_allowed)
{
	finish();
	current = name;
	total = size;
	end = 0;
	tight = !gaps_allowed;
}

static void member(const char *name, size_t offset, size_t size)
{
	check_gap(offset, name);
	end = offset + size;
	printf("%s %s %zu %zu\n", current, name, offset, size);
}

#define SHARED(name)  begin(#name, sizeof(struct name), 0)
#define PUBLIC(name)  begin(#name, sizeof(struct name), 1)
#define M(type, name) member(#name, offsetof(struct type, name), sizeof(((struct type *)0)->name))
#define NUMBER(name)  printf("number %s %lld\n", #name, (long long)(name))

static void dump_ring(void)
{
#define H(name) M(ring_header, name)
	SHARED(ring_header);
	H(magic), H(major), H(minor), H(header_size), H(total_size), H(flags), H(slots);
	H(capacity), H(field_count), H(field_size), H(place_size), H(fields_offset);
	H(words_offset), H(descriptor_offset), H(descriptor_stride), H(places_offset);
	H(slot_offset), H(slot_stride), H(parcel_offset), H(parcel_size), H(lane);
	H(fingerprint), H(control_size), H(waiting_offset), H(telemetry_offset);
	H(release_offset), H(release_stride), H(zero0), H(zero);
#define W(name) M(ring_words, name)
	SHARED(ring_words);
	W(published), W(zero0), W(state), W(zero1);
#define F(name) M(ring_field, name)
	SHARED(ring_field);
	F(name), F(dtype), F(ndim), F(shape), F(strides), F(ragged), F(zero0), F(zero);
#define E(name) M(ring_extent, name)
	SHARED(ring_extent);
	E(offset), E(bytes);
#define D(name) M(ring_descriptor, name)
	SHARED(ring_descriptor);
	D(number), D(generation), D(flags), D(epoch), D(step), D(capacity), D(count);
	D(batches_left), D(order_digest), D(pixel_digest), D(read_ns), D(ready_ns);
	D(published_ns), D(bad_count), D(cursor_size), D(cursor), D(fields), D(zero);
#define P(name) M(ring_place, name)
	SHARED(ring_place);
	P(id_asked), P(id), P(position), P(kind), P(status), P(offset), P(length), P(box_x);
	P(box_y), P(box_w), P(box_h), P(flip), P(source_w), P(source_h), P(valid), P(label);
	P(substitute), P(zero);
#define T(name) M(ring_telemetry, name)
	SHARED(ring_telemetry);
	T(wait_ns), T(consumed), T(copied_bytes), T(copy_ns), T(zero);
#undef H
#undef W
#undef F
#undef E
#undef D
#undef P
#undef T
}

static void dump_requests(void)
{
	SHARED(control_header);
	M(control_header, size), M(control_header, type), M(control_header, serial);
	M(control_header, zero);
#define H(name) M(control_hello, name)
	SHARED(control_hello);
	H(size), H(major), H(minor), H(features), H(private_daemon), H(workers), H(start_ns);
	H(version), H(program);
	SHARED(control_open_dataset);
	M(control_open_dataset, size), M(control_open_dataset, flags);
	M(control_open_dataset, path);
#define O(name) M(control_operation, name)
	SHARED(control_operation);
	O(code), O(version), O(parameter);
#define L(name) M(control_open_lane, name)
	SHARED(control_open_lane);
	L(size), L(dataset), L(flags), L(rank), L(world), L(part), L(parts), L(batch);
	L(accumulate), L(order), L(tail), L(bad), L(seed), L(slots), L(numa_node), L(pci_id);
	L(job), L(name), L(cursor_size), L(operation_count), L(cursor), L(operations), L(weight);
	L(zero), L(max_batches), L(max_epochs), L(epoch);
#define S(name) M(control_seek, name)
	SHARED(control_seek);
	S(size), S(lane), S(cursor_size), S(zero), S(cursor);
	SHARED(control_set_epoch);
	M(control_set_epoch, size), M(control_set_epoch, lane), M(control_set_epoch, epoch);
	M(control_set_epoch, ids);
	SHARED(control_stats);
	M(control_stats, size), M(control_stats, zero);
#define P(name) M(control_paths, name)
	SHARED(control_paths);
	P(size), P(dataset), P(first), P(count), P(zero);
	SHARED(control_close);
	M(control_close, size), M(control_close, lane), M(control_close, dataset);
	M(control_close, zero);
#undef H
#undef O
#undef L
#undef S
#undef P
}

static void dump_replies(void)
{
#define E(name) M(control_error, name)
	SHARED(control_error);
	E(size), E(code), E(lane), E(status), E(sample), E(text);
#define D(name) M(control_dataset, name)
	SHARED(control_dataset);
	D(size), D(dataset), D(samples), D(fingerprint), D(class_count), D(index_used), D(format);
	SHARED(control_progress);
	M(control_progress, size), M(control_progress, zero), M(control_progress, files);
	M(control_progress, directories);
#define L(name) M(control_lane, name)
	SHARED(control_lane);
	L(size), L(lane), L(generation), L(zero), L(first), L(steps), L(steps_epoch);
	L(ring_bytes), L(moved), L(cursor_size), L(cursor), L(last);
	SHARED(control_stats_reply);
	M(control_stats_reply, size), M(control_stats_reply, zero);
	M(control_stats_reply, bytes);
#define P(name) M(control_paths_reply, name)
	SHARED(control_paths_reply);
	P(size), P(count), P(bytes), P(zero);
	SHARED(control_lane_lost);
	M(control_lane_lost, size), M(control_lane_lost, lane), M(control_lane_lost, text);
#undef E
#undef D
#undef L
#undef P
}

static void dump_stats(void)
{
#define H(name) M(stats_header, name)
	SHARED(stats_header);
	H(magic), H(major), H(minor), H(header_size), H(total_size), H(snapshot_ns);
	H(daemon_offset), H(daemon_count), H(lane_offset), H(lane_count), H(lane_size);
	H(case_offset), H(case_count), H(case_size), H(pid), H(private_daemon), H(version);
	H(reader), H(reader_note), H(codec), H(simd), H(entropy), H(draining), H(daemon_uid);
#define L(name) M(stats_lane_record, name)
	SHARED(stats_lane_record);
	L(lane), L(uid), L(pid), L(rank), L(world), L(batch), L(state), L(order), L(tail), L(bad);
	L(accumulate), L(job), L(name), L(dataset), L(client), L(counters);
#define C(name) M(stats_case, name)
	SHARED(stats_case);
	C(lane), C(id), C(epoch), C(status), C(count), C(path), C(text);
#undef H
#undef L
#undef C
	for (int i = 0; i < STATS_DAEMON_COUNT; i++)
		printf("daemon-counter %d %s\n", i, stats_daemon_counters[i].name);
	for (int i = 0; i < STATS_LANE_COUNT; i++)
		printf("lane-counter %d %s\n", i, stats_lane_counters[i].name);
}

static void dump_public(void)
{
#define O(name) M(feeder_connect_options, name)
	PUBLIC(feeder_connect_options);
	O(size), O(socket), O(job), O(program), O(timeout_ms), O(workers), O(set), O(daemon_path);
	O(fresh), O(notice), O(context);
#define C(name) M(feeder_lane_config, name)
	PUBLIC(feeder_lane_config);
	C(size), C(train), C(batch_size), C(rank), C(world_size), C(part), C(parts);
	C(accumulate), C(order), C(tail), C(bad), C(seed), C(height), C(width), C(resize);
	C(scale), C(ratio), C(hflip), C(filter), C(dtype), C(layout), C(normalize), C(mean);
	C(std), C(apply_orientation), C(pixel_digest), C(slots), C(hidden), C(allow_empty);
	C(rebuild), C(reopen), C(takeover), C(lane_name), C(cursor), C(cursor_size), C(epoch);
	C(weight), C(numa_node), C(timeout_ms), C(progress), C(context), C(max_batches);
	C(max_epochs);
#define I(name) M(feeder_lane_info, name)
	PUBLIC(feeder_lane_info);
	I(size), I(samples), I(fingerprint), I(class_count), I(capacity), I(slots), I(steps);
	I(steps_epoch), I(ring_bytes), I(image_bytes), I(name), I(format), I(index_used);
	I(moved);
#define P(name) M(feeder_place, name)
	PUBLIC(feeder_place);
	P(id_asked), P(id), P(position), P(label), P(valid), P(status), P(box_x), P(box_y);
	P(box_w), P(box_h), P(flip), P(source_w), P(source_h), P(substitute);
#define B(name) M(feeder_batch, name)
	PUBLIC(feeder_batch);
	B(size), B(number), B(generation), B(count), B(capacity), B(last_of_epoch), B(epoch);
	B(step), B(batches_left), B(images), B(images_bytes), B(image_stride), B(labels);
	B(bad_count), B(dtype), B(order_digest), B(pixel_digest), B(read_ns), B(ready_ns);
	B(published_ns), B(wait_ns);
#undef O
#undef C
#undef I
#undef P
#undef B
}

static void dump_numbers(void)
{
	NUMBER(RING_MAGIC);
	NUMBER(RING_MAJOR);
	NUMBER(RING_SLOTS_MIN);
	NUMBER(RING_SLOTS_MAX);
	NUMBER(RING_FIELDS_MAX);
	NUMBER(RING_LINE);
	NUMBER(RING_PAYLOAD_RW);
	NUMBER(RING_RUNNING);
	NUMBER(RING_DRAINING);
	NUMBER(RING_FAILED);
	NUMBER(RING_CLOSED);
	NUMBER(RING_LAST_OF_EPOCH);
	NUMBER(RING_PIXELS);
	NUMBER(RING_PARCEL);
	NUMBER(RING_BLANK);
	NUMBER(RING_CONTROL_WAITING);
	NUMBER(RING_CONTROL_TELEMETRY);
	NUMBER(RING_CONTROL_RELEASE);
	NUMBER(CONTROL_MAJOR);
	NUMBER(CONTROL_PACKET_MAX);
	NUMBER(CONTROL_FDS_MAX);
	NUMBER(CONTROL_HELLO);
	NUMBER(CONTROL_OPEN_DATASET);
	NUMBER(CONTROL_OPEN_LANE);
	NUMBER(CONTROL_SEEK);
	NUMBER(CONTROL_SET_EPOCH);
	NUMBER(CONTROL_STATS);
	NUMBER(CONTROL_PATHS);
	NUMBER(CONTROL_CLOSE);
	NUMBER(CONTROL_REPLY);
	NUMBER(CONTROL_ERROR);
	NUMBER(CONTROL_DRAINING);
	NUMBER(CONTROL_LANE_LOST);
	NUMBER(CONTROL_PROGRESS);
	NUMBER(CONTROL_OP_RANDOM_RESIZED_CROP);
	NUMBER(CONTROL_OP_RESIZE);
	NUMBER(CONTROL_OP_CENTER_CROP);
	NUMBER(CONTROL_OP_HORIZONTAL_FLIP);
	NUMBER(CONTROL_OP_NORMALIZE);
	NUMBER(CONTROL_OP_DECODE);
	NUMBER(CONTROL_LANE_REOPEN);
	NUMBER(CONTROL_LANE_TAKEOVER);
	NUMBER(CONTROL_LANE_PIXEL_DIGEST);
	NUMBER(CONTROL_LANE_PAYLOAD_RW);
	NUMBER(CONTROL_DATASET_HIDDEN);
	NUMBER(CONTROL_DATASET_ALLOW_EMPTY);
	NUMBER(CONTROL_DATASET_REBUILD);
	NUMBER(STATS_MAGIC);
	NUMBER(STATS_MAJOR);
}

static void dump_public_numbers(void)
{
	NUMBER(FEEDER_ORDER_TORCH);
	NUMBER(FEEDER_ORDER_FEISTEL);
	NUMBER(FEEDER_ORDER_SEQUENTIAL);
	NUMBER(FEEDER_ORDER_DATALOADER);
	NUMBER(FEEDER_ORDER_IDS);
	NUMBER(FEEDER_TAIL_PAD);
	NUMBER(FEEDER_TAIL_DROP);
	NUMBER(FEEDER_TAIL_MASK);
	NUMBER(FEEDER_BAD_FAIL);
	NUMBER(FEEDER_BAD_MASK);
	NUMBER(FEEDER_BAD_SUBSTITUTE);
	NUMBER(FEEDER_BILINEAR);
	NUMBER(FEEDER_BICUBIC);
	NUMBER(FEEDER_UINT8);
	NUMBER(FEEDER_FLOAT32);
	NUMBER(FEEDER_FLOAT16);
	NUMBER(FEEDER_BFLOAT16);
	NUMBER(FEEDER_INT64);
	NUMBER(FEEDER_INT32);
	NUMBER(FEEDER_NHWC);
	NUMBER(FEEDER_NCHW);
#define STATUS(name, number, word, sentence) printf("number FEEDER_STATUS_%s %d\n", #name, number);
	FEEDER_STATUS_LIST(STATUS)
#undef STATUS
}

int main(void)
{
	dump_ring();
	dump_requests();
	dump_replies();
	dump_stats();
	dump_public();
	finish();
	dump_numbers();
	dump_public_numbers();
	return failures > 0;
}
