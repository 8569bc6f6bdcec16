/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors as a client sends them, and the arithmetic of lanes that start at any of them. */
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"
#include "order/order.h"

/* As cursor_encode computes it: without it hardly an input gets behind the first check. */
static void mend(uint8_t bytes[CURSOR_SIZE])
{
	uint32_t version = CURSOR_VERSION, check;

	check = (uint32_t)XXH64(bytes + 8, CURSOR_SIZE - 8, version);
	memcpy(bytes, &version, 4);
	memcpy(bytes + 4, &check, 4);
}

static int decode(struct cursor *ret, const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_copy(data, size);
	char text[256] = "";
	int r = cursor_decode(ret, copy, size, text, sizeof(text));

	REQUIRE(r == 0 || text[0]);
	if (r == 0) {
		uint8_t again[CURSOR_SIZE];

		cursor_encode(ret, again);
		REQUIRE(size == CURSOR_SIZE && memcmp(again, copy, size) == 0);
	}
	free(copy);
	return r;
}

static void walk(const struct cursor *at, const struct shard *s)
{
	bool moved;
	struct cursor c = cursor_settle(at, s, &moved);
	uint64_t steps = shard_steps(s, c.c);

	REQUIRE(moved == (c.epoch != at->epoch));
	REQUIRE(c.c == 0 || c.c < s->n);
	REQUIRE(c.c == 0 || steps > 0);
	for (uint64_t step = 0; step < steps && step < 3; step++) {
		uint64_t which = step == 2 ? steps - 1 : step;
		uint32_t count = shard_count(s, c.c, which);
		struct cursor after = cursor_after(&c, s, which + 1);

		REQUIRE(count <= shard_capacity(s));
		for (uint32_t i = 0; i < shard_capacity(s) && i < 4; i++) {
			struct place p = shard_place(s, c.c, which, i);

			REQUIRE(p.index < s->n);
			REQUIRE(!p.valid || i < count);
			REQUIRE(p.index == p.position % s->n);
		}
		if (which + 1 == steps)
			REQUIRE(after.c == 0 && after.epoch == c.epoch + 1);
		else
			REQUIRE(after.c > c.c && after.epoch == c.epoch);
		REQUIRE(shard_steps(s, after.c) <= shard_steps(s, 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t bytes[CURSOR_SIZE] = { 0 };
	struct cursor cursor;
	char text[256] = "";
	struct shard s;
	size_t given;
	const uint8_t *from;

	decode(&cursor, data, size);
	from = input_take(&in, sizeof(bytes), &given);
	if (given > 0)
		memcpy(bytes, from, given);
	mend(bytes);
	if (decode(&cursor, bytes, sizeof(bytes)) < 0)
		return 0;
	s.n = input_u64(&in);
	s.world = input_u32(&in);
	s.rank = input_u32(&in);
	s.batch = input_u32(&in);
	s.accumulate = input_u32(&in);
	s.tail = input_u32(&in);
	s.part = input_u32(&in);
	s.parts = input_u32(&in);
	if (shard_check(&s, text, sizeof(text)) < 0)
		REQUIRE(text[0]);
	else
		walk(&cursor, &s);
	return 0;
}
