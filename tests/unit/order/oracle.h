/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DistributedSampler and DataLoader would deliver, written as torch writes it: with lists.
 * (torch/utils/data/distributed.py and sampler.py; drop_last means both of them.)
 */
#ifndef TESTS_ORDER_ORACLE_H
#define TESTS_ORDER_ORACLE_H

#include "test.h"

#define ORACLE_MAX 512

struct oracle {
	uint64_t ids[ORACLE_MAX]; /* of one rank, batch after batch */
	uint64_t count;
	uint64_t batches;
	uint64_t last; /* size of the last batch */
};

static inline void oracle_deal(struct oracle *o, const struct permutation *order, uint64_t world,
	uint64_t rank, uint64_t batch, bool drop_last)
{
	uint64_t n = permutation_length(order);
	uint64_t indices[ORACLE_MAX], length = 0;
	uint64_t per_rank = drop_last ? n / world : (n + world - 1) / world;
	uint64_t total = per_rank * world;

	for (uint64_t p = 0; p < n; p++)
		indices[length++] = permutation_at(order, p);
	while (length < total) { /* indices += indices[:padding], as often as needed */
		uint64_t padding = total - length, have = length;

		for (uint64_t i = 0; i < padding && i < have; i++)
			indices[length++] = indices[i];
	}
	length = total;
	memset(o, 0, sizeof(*o));
	for (uint64_t p = rank; p < length; p += world)
		o->ids[o->count++] = indices[p];
	if (drop_last)
		o->count = o->count / batch * batch;
	o->batches = (o->count + batch - 1) / batch;
	o->last = o->count - (o->batches > 0 ? o->batches - 1 : 0) * batch;
}

#endif
