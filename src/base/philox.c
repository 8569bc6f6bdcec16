/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 and its per-sample streams. */
#include "base/philox.h"

#include <string.h>

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

void philox_stream_init(struct philox_stream *s, uint64_t seed, uint64_t id, uint32_t epoch,
	uint32_t view, uint32_t operation)
{
	memset(s, 0, sizeof(*s));
	s->key[0] = (uint32_t)seed;
	s->key[1] = (uint32_t)(seed >> 32);
	s->counter[0] = (uint32_t)id;
	s->counter[1] = (uint32_t)(id >> 32);
	s->counter[2] = epoch;
	s->counter[3] = (view << 24) + (operation << 16);
	s->used = 4;
}

uint32_t philox_stream_next(struct philox_stream *s)
{
	if (s->used == 4) {
		philox4x32_10(s->counter, s->key, s->words);
		s->counter[3]++;
		s->used = 0;
	}
	return s->words[s->used++];
}
