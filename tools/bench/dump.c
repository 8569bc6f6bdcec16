/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was delivered, as .npy files (NumPy's format 1.0: magic, version, u16 header length, a
 * Python dict literal padded so that the data is 64-byte aligned).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"

static int write_npy(const char *directory, uint64_t number, const char *what, const char *type,
	const char *shape, const void *data, size_t bytes)
{
	char path[4096], header[256];
	uint8_t preamble[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0 };
	int length;
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/step-%06llu-%s.npy", directory, (unsigned long long)number,
		what);
	length = snprintf(header, sizeof(header),
		"{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
	while ((sizeof(preamble) + (size_t)length + 1) % 64)
		header[length++] = ' ';
	header[length++] = '\n';
	preamble[8] = (uint8_t)length;
	preamble[9] = (uint8_t)(length >> 8);
	f = fopen(path, "wb");
	ok = f && fwrite(preamble, sizeof(preamble), 1, f) == 1 &&
	     fwrite(header, (size_t)length, 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
	if (f && fclose(f) != 0)
		ok = false;
	if (!ok)
		fprintf(stderr, "feeder-bench: writing %s failed: %s\n", path, strerror(errno));
	return ok ? 0 : -1;
}

static int write_places(const char *directory, uint64_t number, struct feeder_lane *lane,
	const struct feeder_batch *batch)
{
	int64_t *ids = calloc(batch->count + 1, sizeof(*ids));
	uint8_t *valid = calloc(batch->count + 1, sizeof(*valid));
	int32_t(*boxes)[5] = calloc(batch->count + 1, sizeof(*boxes));
	char shape[64], shape5[64];
	int r = -1;

	for (uint32_t i = 0; ids && valid && boxes && i < batch->count; i++) {
		struct feeder_place place = { 0 };

		feeder_batch_place(lane, batch->number, i, &place);
		ids[i] = (int64_t)place.id;
		valid[i] = (uint8_t)place.valid;
		boxes[i][0] = (int32_t)place.box_x;
		boxes[i][1] = (int32_t)place.box_y;
		boxes[i][2] = (int32_t)place.box_w;
		boxes[i][3] = (int32_t)place.box_h;
		boxes[i][4] = (int32_t)place.flip;
	}
	snprintf(shape, sizeof(shape), "(%u,)", batch->count);
	snprintf(shape5, sizeof(shape5), "(%u, 5)", batch->count);
	if (ids && valid && boxes)
		r = write_npy(directory, number, "ids", "<i8", shape, ids, batch->count * 8u) |
		    write_npy(directory, number, "valid", "|u1", shape, valid, batch->count) |
		    write_npy(
			    directory, number, "boxes", "<i4", shape5, boxes, batch->count * 20u) |
		    write_npy(directory, number, "labels", "<i8", shape, batch->labels,
			    batch->count * 8u);
	free(ids);
	free(valid);
	free(boxes);
	return r;
}

int bench_dump(const char *directory, uint64_t number, struct feeder_lane *lane,
	const struct feeder_batch *batch, unsigned int size)
{
	char shape[96];

	if (mkdir(directory, 0777) < 0 && errno != EEXIST) {
		fprintf(stderr, "feeder-bench: %s cannot be made: %s\n", directory,
			strerror(errno));
		return -1;
	}
	snprintf(shape, sizeof(shape), "(%u, %u, %u, 3)", batch->count, size, size);
	if (write_npy(directory, number, "images", "|u1", shape, batch->images,
		    batch->count * batch->image_stride) < 0)
		return -1;
	return write_places(directory, number, lane, batch);
}
