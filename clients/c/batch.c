/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller may do with a batch that it holds. */
#include "client.h"

#include <errno.h>
#include <string.h>

static struct fdr_held *find_held(struct feeder_lane *lane, uint64_t number)
{
	struct fdr_held *held = &lane->held[ring_slot_of(number, lane->map.header.slots)];

	return number != 0 && held->number == number ? held : NULL;
}

static int fail_not_held(uint64_t number)
{
	return fdr_fail(-EINVAL,
		"batch %llu is not held: it was never given, or is released already",
		(unsigned long long)number);
}

int feeder_release(struct feeder_lane *lane, uint64_t number)
{
	struct fdr_held *held = find_held(lane, number);

	if (lane->f->forked)
		return fdr_fail_forked();
	if (!held)
		return fail_not_held(number);
	held->number = 0;
	fdr_give_back(lane, number);
	fdr_doorbell(lane);
	return 0;
}

int feeder_batch_place(
	struct feeder_lane *lane, uint64_t number, uint32_t i, struct feeder_place *ret)
{
	struct ring_place place;

	if (lane->f->forked)
		return fdr_fail_forked();
	if (!find_held(lane, number))
		return fail_not_held(number);
	if (i >= lane->map.header.capacity)
		return fdr_fail(-EINVAL, "place %u of a batch with %u places", i,
			lane->map.header.capacity);
	memcpy(&place, ring_map_place(&lane->map, number, i), sizeof(place));
	*ret = (struct feeder_place){
		.id_asked = place.id_asked,
		.id = place.id,
		.position = place.position,
		.label = place.label,
		.valid = place.valid,
		.status = place.status,
		.box_x = place.box_x,
		.box_y = place.box_y,
		.box_w = place.box_w,
		.box_h = place.box_h,
		.flip = place.flip,
		.source_w = place.source_w,
		.source_h = place.source_h,
		.substitute = place.substitute,
	};
	return 0;
}

int feeder_batch_field(struct feeder_lane *lane, uint64_t number, const char *name,
	const void **ret_data, uint64_t *ret_bytes)
{
	const struct fdr_held *held = find_held(lane, number);
	uint64_t stride = lane->map.header.slot_stride;

	if (lane->f->forked)
		return fdr_fail_forked();
	if (!held)
		return fail_not_held(number);
	for (uint32_t i = 0; i < lane->field_count; i++) {
		const struct ring_extent *extent = &held->extents[i];

		if (strcmp(lane->fields[i].name, name) != 0)
			continue;
		if (extent->offset > stride || extent->bytes > stride - extent->offset)
			return fdr_fail(-EPROTO,
				"the daemon's ring is malformed: field %s of batch %llu", name,
				(unsigned long long)number);
		*ret_data = ring_map_slot(&lane->map, number) + extent->offset;
		*ret_bytes = extent->bytes;
		return 0;
	}
	return fdr_fail(-ENOENT, "batches of lane %s have no field %s", lane->name, name);
}
