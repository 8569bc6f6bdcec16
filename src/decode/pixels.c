/* SPDX-License-Identifier: Apache-2.0 */
/* A reusable buffer of rows. */
#include "decode/pixels.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGNMENT 64
#define OFFSET    8 /* of each row, mod ALIGNMENT */

/* What a 4,000 x 5,000 picture takes whole; beyond that the memory is given back. */
#define KEPT_BYTES ((size_t)64 << 20)

static int grow_memory(struct pixels *p, size_t bytes)
{
	size_t capacity = bytes + bytes / 4;
	uint8_t *memory;

	if (bytes <= p->capacity)
		return 0;
	capacity = (capacity + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	memory = aligned_alloc(ALIGNMENT, capacity);
	if (!memory)
		return -ENOMEM;
	free(p->memory);
	p->memory = memory;
	p->capacity = capacity;
	return 0;
}

static int grow_rows(struct pixels *p, size_t rows)
{
	uint8_t **grown;

	if (rows <= p->row_capacity)
		return 0;
	grown = malloc((rows + rows / 4) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	free(p->rows);
	p->rows = grown;
	p->row_capacity = rows + rows / 4;
	return 0;
}

int pixels_reserve(struct pixels *p, size_t row_bytes, size_t rows, uint64_t max_bytes)
{
	size_t stride = (row_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	int r;

	if ((uint64_t)row_bytes * rows > max_bytes)
		return -EFBIG;
	r = grow_memory(p, stride * rows + ALIGNMENT);
	if (r < 0)
		return r;
	r = grow_rows(p, rows);
	if (r < 0)
		return r;
	p->stride = stride;
	for (size_t i = 0; i < rows; i++)
		p->rows[i] = p->memory + OFFSET + i * stride;
	return 0;
}

void pixels_trim(struct pixels *p)
{
	if (p->capacity > KEPT_BYTES)
		pixels_deinit(p);
}

void pixels_deinit(struct pixels *p)
{
	free(p->memory);
	free(p->rows);
	*p = (struct pixels){ 0 };
}
