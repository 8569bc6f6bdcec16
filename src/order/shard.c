/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dealing positions to ranks, steps and places.
 *
 * A rank's places of an epoch are numbered j = step·B + i, and stand at positions p = c + j·W +
 * rank. shard_check() keeps N and a group of all ranks (W·B·K) at or below 2^62, so that no sum
 * here can overflow; whoever calls the others has passed it, and has c < N or gets no steps.
 */
#include "order/order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define POSITIONS_MAX (UINT64_C(1) << 62)

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

__attribute__((format(printf, 4, 5))) static int refuse(
	int error, char *text, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, size, format, ap);
	va_end(ap);
	return error;
}

static int check_fields(const struct shard *s, char *text, size_t size)
{
	if (s->world == 0)
		return refuse(-EINVAL, text, size, "world is 0, it must be at least 1");
	if (s->rank >= s->world)
		return refuse(
			-EINVAL, text, size, "rank %u is not below world %u", s->rank, s->world);
	if (s->batch == 0)
		return refuse(-EINVAL, text, size, "batch is 0, it must be at least 1");
	if (s->accumulate == 0)
		return refuse(-EINVAL, text, size, "accumulate is 0, it must be at least 1");
	if (!order_tail_name((int)s->tail))
		return refuse(
			-EINVAL, text, size, "tail %u is none of pad, drop and mask", s->tail);
	if (s->parts == 0 || s->parts > s->batch)
		return refuse(-EINVAL, text, size, "a batch of %u cannot be split into %u parts",
			s->batch, s->parts);
	if (s->part >= s->parts)
		return refuse(-EINVAL, text, size, "part %u is not below the number of parts %u",
			s->part, s->parts);
	return 0;
}

/* Positions of a group of K steps of all ranks; 0 if beyond POSITIONS_MAX. */
static uint64_t group_size(const struct shard *s)
{
	uint64_t group = (uint64_t)s->world * s->batch;

	if (__builtin_mul_overflow(group, (uint64_t)s->accumulate, &group) || group > POSITIONS_MAX)
		return 0;
	return group;
}

int shard_check(const struct shard *s, char *text, size_t size)
{
	int r = check_fields(s, text, size);

	if (r < 0)
		return r;
	if (s->n == 0)
		return refuse(-ERANGE, text, size, "there are no samples: the order has length 0");
	if (s->n > POSITIONS_MAX)
		return refuse(-ERANGE, text, size, "%" PRIu64 " samples are more than 2^62", s->n);
	if (group_size(s) == 0)
		return refuse(-ERANGE, text, size,
			"world %u x batch %u x accumulate %u is more than 2^62", s->world, s->batch,
			s->accumulate);
	if (shard_steps(s, 0) == 0)
		return refuse(-ERANGE, text, size,
			"tail drop leaves no step: %" PRIu64
			" samples do not fill one group of world %u"
			" x batch %u x accumulate %u = %" PRIu64,
			s->n, s->world, s->batch, s->accumulate, group_size(s));
	return 0;
}

uint64_t shard_steps(const struct shard *s, uint64_t c)
{
	uint64_t group = group_size(s);

	if (c >= s->n)
		return 0;
	if (s->tail == ORDER_DROP)
		return (s->n - c) / group * s->accumulate;
	return ceil_div(s->n - c, group) * s->accumulate;
}

uint32_t shard_first_place(const struct shard *s)
{
	return (uint32_t)((uint64_t)s->part * s->batch / s->parts);
}

uint32_t shard_capacity(const struct shard *s)
{
	uint64_t end = (uint64_t)(s->part + 1) * s->batch / s->parts;

	return (uint32_t)(end - shard_first_place(s));
}

/* pad with K = 1 is DataLoader's short last batch; all other forms have whole batches. */
static bool trims(const struct shard *s)
{
	return s->tail == ORDER_PAD && s->accumulate == 1;
}

/* Places of this rank's epoch that pad delivers with K = 1: DistributedSampler's num_samples. */
static uint64_t samples_of_rank(const struct shard *s, uint64_t c)
{
	return c < s->n ? ceil_div(s->n - c, s->world) : 0;
}

/* How many of a batch's first `places` places belong to this lane's part. */
static uint32_t part_of(const struct shard *s, uint64_t places)
{
	uint32_t first = shard_first_place(s);
	uint32_t capacity = shard_capacity(s);

	if (places <= first)
		return 0;
	return places - first < capacity ? (uint32_t)(places - first) : capacity;
}

uint32_t shard_count(const struct shard *s, uint64_t c, uint64_t step)
{
	uint64_t places = samples_of_rank(s, c);
	uint64_t before = step * s->batch;

	if (!trims(s))
		return shard_capacity(s);
	return before < places ? part_of(s, places - before) : 0;
}

struct place shard_place(const struct shard *s, uint64_t c, uint64_t step, uint32_t i)
{
	uint64_t j = step * s->batch + shard_first_place(s) + i;
	uint64_t p = c + j * s->world + s->rank;
	bool inside = p < s->n;

	return (struct place){
		.position = p,
		.index = inside ? p : p % s->n,
		.valid = inside || (trims(s) ? j < samples_of_rank(s, c) : s->tail == ORDER_PAD),
	};
}

uint64_t shard_valid(const struct shard *s, uint64_t c)
{
	uint64_t places; /* of this rank, the valid ones of which are the first */

	if (trims(s))
		places = samples_of_rank(s, c);
	else if (s->tail == ORDER_MASK)
		places =
			c < s->n && s->rank < s->n - c ? ceil_div(s->n - c - s->rank, s->world) : 0;
	else
		places = shard_steps(s, c) * s->batch;
	return places / s->batch * shard_capacity(s) + part_of(s, places % s->batch);
}
