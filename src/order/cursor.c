/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place from which a lane continues, and its bytes: little-endian, of fixed size, the same
 * on every rank. The check word tells a cursor from a damaged or foreign one; it is no signature.
 *
 *   0 version u32     4 check u32       8 fingerprint, 16 bytes
 *  24 order u32      28 zero u32       32 seed u64
 *  40 epoch u64      48 c u64          56 zero u64
 */
#include "order/order.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "order/hash.h"

#define AT_VERSION     0
#define AT_CHECK       4
#define AT_FINGERPRINT 8
#define AT_ORDER       24
#define AT_ZERO32      28
#define AT_SEED        32
#define AT_EPOCH       40
#define AT_C           48
#define AT_ZERO64      56

_Static_assert(AT_ZERO64 + 8 == CURSOR_SIZE, "a cursor's last field ends it");

static void put32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static void put64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

/* The low half of XXH64 (seed: the version) of all that follows the check word. */
static uint32_t check_word(const uint8_t *bytes)
{
	return (uint32_t)XXH64(
		bytes + AT_FINGERPRINT, CURSOR_SIZE - AT_FINGERPRINT, get32(bytes + AT_VERSION));
}

void cursor_encode(const struct cursor *cursor, uint8_t ret[CURSOR_SIZE])
{
	memset(ret, 0, CURSOR_SIZE);
	put32(ret + AT_VERSION, CURSOR_VERSION);
	memcpy(ret + AT_FINGERPRINT, cursor->fingerprint, sizeof(cursor->fingerprint));
	put32(ret + AT_ORDER, cursor->order);
	put64(ret + AT_SEED, cursor->seed);
	put64(ret + AT_EPOCH, cursor->epoch);
	put64(ret + AT_C, cursor->c);
	put32(ret + AT_CHECK, check_word(ret));
}

static int check_bytes(const uint8_t *bytes, size_t size, char *text, size_t text_size)
{
	if (size < AT_CHECK) {
		snprintf(text, text_size, "the cursor has %zu bytes, too few for a version", size);
	} else if (get32(bytes + AT_VERSION) != CURSOR_VERSION) {
		snprintf(text, text_size,
			"the cursor is of version %u, this feeder knows version %u",
			get32(bytes + AT_VERSION), CURSOR_VERSION);
	} else if (size != CURSOR_SIZE) {
		snprintf(text, text_size, "the cursor has %zu bytes, version %u has %u", size,
			CURSOR_VERSION, CURSOR_SIZE);
	} else if (get32(bytes + AT_CHECK) != check_word(bytes)) {
		snprintf(text, text_size,
			"the cursor is damaged: check word %08x, its bytes give %08x",
			get32(bytes + AT_CHECK), check_word(bytes));
	} else if (!order_kind_name((int)get32(bytes + AT_ORDER))) {
		snprintf(text, text_size, "the cursor has the unknown order %u",
			get32(bytes + AT_ORDER));
	} else if (get32(bytes + AT_ZERO32) != 0 || get64(bytes + AT_ZERO64) != 0) {
		snprintf(text, text_size, "the cursor's spare bytes are not zero");
	} else {
		return 0;
	}
	return -EBADMSG;
}

int cursor_decode(struct cursor *ret, const void *bytes, size_t size, char *text, size_t text_size)
{
	const uint8_t *from = bytes;
	int r = check_bytes(from, size, text, text_size);

	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->fingerprint, from + AT_FINGERPRINT, sizeof(ret->fingerprint));
	ret->order = get32(from + AT_ORDER);
	ret->seed = get64(from + AT_SEED);
	ret->epoch = get64(from + AT_EPOCH);
	ret->c = get64(from + AT_C);
	return 0;
}

static struct cursor next_epoch(const struct cursor *at)
{
	struct cursor next = *at;

	next.epoch++;
	next.c = 0;
	return next;
}

struct cursor cursor_after(const struct cursor *at, const struct shard *s, uint64_t steps)
{
	struct cursor after = *at;

	if (steps == 0)
		return after;
	if (steps >= shard_steps(s, at->c))
		return next_epoch(at);
	after.c += steps * s->batch * s->world;
	return after;
}

struct cursor cursor_settle(const struct cursor *at, const struct shard *s, bool *ret_moved)
{
	*ret_moved = at->c > 0 && shard_steps(s, at->c) == 0;
	return *ret_moved ? next_epoch(at) : *at;
}
