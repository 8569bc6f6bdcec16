/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terms of the digests. A digest is the plain sum of its terms modulo 2^64, so sums of ranks, of
 * parts and of pieces of an epoch add up, whatever the order in which the places were delivered.
 */
#include "order/order.h"

#include "order/hash.h"

uint64_t digest_order(uint64_t epoch, uint64_t position, uint64_t id)
{
	return hash_words((const uint64_t[]){ epoch, position, id }, 3);
}

static void hash_zeros(XXH64_state_t *state, size_t size)
{
	static const uint8_t zeros[4096];

	while (size > 0) {
		size_t piece = size < sizeof(zeros) ? size : sizeof(zeros);

		XXH64_update(state, zeros, piece);
		size -= piece;
	}
}

uint64_t digest_pixels(uint64_t epoch, uint64_t position, uint64_t id, const uint8_t *pixels,
	size_t size, int64_t label)
{
	const uint64_t head[3] = { htole64(epoch), htole64(position), htole64(id) };
	const uint64_t tail = htole64((uint64_t)label);
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	XXH64_update(&state, head, sizeof(head));
	if (pixels)
		XXH64_update(&state, pixels, size);
	else
		hash_zeros(&state, size);
	XXH64_update(&state, &tail, sizeof(tail));
	return XXH64_digest(&state);
}

uint64_t substitute_id(uint64_t id, uint64_t k, uint64_t n)
{
	return hash_words((const uint64_t[]){ id, k }, 2) % n;
}
