/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring's consumer. With a batch ready, feeder_next makes no system call: two loads (E1, E4),
 * a copy of the descriptor, whose every offset is checked against the mapping before use, and
 * the caller's struct. feeder_release is a store (E2) and the doorbell's write.
 */
#include "client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int fdr_available(struct feeder_lane *lane)
{
	uint32_t published = ring_load_acquire(&lane->words->published); /* E1 */
	uint32_t ahead = published - (uint32_t)lane->next + 1;

	if (ahead == 0)
		return 0;
	if (ahead <= lane->map.header.slots)
		return 1;
	fdr_fail(-EPROTO, "the daemon's ring is malformed: batch %u is published while %llu is due",
		published, (unsigned long long)lane->next);
	return fdr_lane_fail(lane, -EPROTO, feeder_last_error());
}

void fdr_doorbell(struct feeder_lane *lane)
{
	uint64_t one = 1;

	/* a daemon that has gone needs no bell; what it missed it sees by HUP */
	if (write(lane->doorbell, &one, sizeof(one)) < 0)
		return;
}

void fdr_give_back(struct feeder_lane *lane, uint64_t number)
{
	ring_store_release(ring_map_release_word(&lane->map, number), (uint32_t)number); /* E2 */
}

static int fail_lane(struct feeder_lane *lane)
{
	return fdr_fail(lane->error, "%s", lane->error_text);
}

static int fail_descriptor(struct feeder_lane *lane, const char *what)
{
	fdr_fail(-EPROTO, "the daemon's ring is malformed: %s of batch %llu", what,
		(unsigned long long)lane->next);
	return fdr_lane_fail(lane, -EPROTO, feeder_last_error());
}

/* Whether the extent lies in the slot and holds bytes at least. */
static bool extent_fits(
	const struct feeder_lane *lane, const struct ring_extent *extent, uint64_t bytes)
{
	uint64_t stride = lane->map.header.slot_stride;

	return extent->bytes >= bytes && extent->offset <= stride &&
	       extent->bytes <= stride - extent->offset;
}

static int check_descriptor(struct feeder_lane *lane, const struct ring_descriptor *d)
{
	uint64_t capacity = lane->map.header.capacity;
	uint64_t stride = (uint64_t)lane->fields[lane->images].strides[0];
	uint64_t images;

	if (d->number != lane->next || d->generation != lane->generation)
		return fail_descriptor(lane, "number or generation");
	if (d->capacity != capacity || d->count > capacity)
		return fail_descriptor(lane, "places");
	if (d->cursor_size > sizeof(d->cursor))
		return fail_descriptor(lane, "the cursor");
	if (__builtin_mul_overflow(stride, capacity - 1, &images) ||
		__builtin_add_overflow(images, lane->image_bytes, &images) ||
		!extent_fits(lane, &d->fields[lane->images], images))
		return fail_descriptor(lane, "images");
	if (!extent_fits(lane, &d->fields[lane->labels], capacity * sizeof(int64_t)) ||
		d->fields[lane->labels].offset % sizeof(int64_t))
		return fail_descriptor(lane, "labels");
	return 0;
}

static int fill_batch(struct feeder_lane *lane, const struct ring_descriptor *d, uint64_t wait_ns,
	struct feeder_batch *ret)
{
	const uint8_t *slot = ring_map_slot(&lane->map, d->number);
	const struct ring_extent *images = &d->fields[lane->images];
	struct feeder_batch batch = {
		.number = d->number,
		.generation = d->generation,
		.count = d->count,
		.capacity = d->capacity,
		.last_of_epoch = (d->flags & RING_LAST_OF_EPOCH) != 0,
		.epoch = d->epoch,
		.step = d->step,
		.batches_left = d->batches_left,
		.images = slot + images->offset,
		.images_bytes = images->bytes,
		.image_stride = (uint64_t)lane->fields[lane->images].strides[0],
		.labels = (const int64_t *)(const void *)(slot + d->fields[lane->labels].offset),
		.bad_count = d->bad_count,
		.dtype = lane->fields[lane->images].dtype,
		.order_digest = d->order_digest,
		.pixel_digest = d->pixel_digest,
		.read_ns = d->read_ns,
		.ready_ns = d->ready_ns,
		.published_ns = d->published_ns,
		.wait_ns = wait_ns,
	};

	return fdr_struct_out(ret, &batch, sizeof(batch), "feeder_batch");
}

/* The lane's position is now behind this batch: it is consumed. */
static void advance(struct feeder_lane *lane, const struct ring_descriptor *d)
{
	struct fdr_held *held = &lane->held[ring_slot_of(d->number, lane->map.header.slots)];
	struct ring_telemetry *telemetry = ring_map_telemetry(&lane->map);

	held->number = d->number;
	memcpy(held->extents, d->fields, sizeof(held->extents));
	memcpy(lane->cursor, d->cursor, d->cursor_size);
	lane->cursor_size = d->cursor_size;
	lane->at_start = (d->flags & RING_LAST_OF_EPOCH) != 0;
	lane->at_epoch = d->epoch + 1;
	lane->order_digest += d->order_digest;
	lane->pixel_digest += d->pixel_digest;
	lane->next++;
	lane->stalled_ns = 0;
	ring_store_relaxed64(&telemetry->consumed, ++lane->consumed); /* E5 */
}

static int take(struct feeder_lane *lane, uint64_t wait_ns, struct feeder_batch *ret)
{
	struct ring_descriptor d;
	int r;

	memcpy(&d, ring_map_descriptor(&lane->map, lane->next), sizeof(d));
	r = check_descriptor(lane, &d);
	if (r == 0)
		r = fill_batch(lane, &d, wait_ns, ret);
	if (r == 0)
		advance(lane, &d);
	return r;
}

/* What forbids waiting for the next batch at all. */
static int check_lane(struct feeder_lane *lane)
{
	const struct fdr_held *held = &lane->held[ring_slot_of(lane->next, lane->map.header.slots)];

	if (lane->f->forked)
		return fdr_fail_forked();
	if (lane->error == -EPROTO || lane->error == -ESTALE)
		return fail_lane(lane);
	if (lane->last && lane->next > lane->last)
		return fdr_fail(-ENODATA, "the lane has delivered all of its %llu batches",
			(unsigned long long)lane->last);
	if (held->number)
		return fdr_fail(-EDEADLK,
			"batch %llu needs the slot that batch %llu, still held, occupies: release "
			"it "
			"first, or open the lane with more than %u slots",
			(unsigned long long)lane->next, (unsigned long long)held->number,
			lane->map.header.slots);
	return 0;
}

int feeder_next(struct feeder_lane *lane, struct feeder_batch *ret, int timeout_ms)
{
	uint64_t wait_ns = 0;
	int r = check_lane(lane);

	if (r < 0)
		return r;
	if (lane->pending || ring_load_acquire(&lane->words->state) == RING_CLOSED) /* E4 */
		r = 0;
	else
		r = fdr_available(lane);
	if (r == 0)
		r = fdr_wait(lane, timeout_ms, &wait_ns);
	return r < 0 ? r : take(lane, wait_ns, ret);
}
