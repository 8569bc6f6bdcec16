/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring as a hostile daemon would hand it over: the input's first byte chooses seals and sizes,
 * then come the header and what follows it. Whatever ring_map_open takes can be used: every
 * pointer that the map gives lies in the mapping, aligned, and nothing faults.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "protocol/ring.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define PAYLOAD_MOST ((uint64_t)64 << 20) /* sparse */

/* Options, the first byte. */
#define UNSEALED      0x01u
#define SHORT_PAYLOAD 0x02u
#define SHORT_CONTROL 0x04u
#define MENDED        0x08u /* magic and version are put right */
#define FUTURE_WRITE  0x10u
#define SAME_MEMFD    0x20u

static int make_memfd(const void *bytes, size_t given, uint64_t size, int seals)
{
	int fd = fuzz_memfd(bytes, given);

	REQUIRE(ftruncate(fd, (off_t)size) == 0);
	if (seals)
		REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void must_lie_in(
	const void *p, uint64_t bytes, const void *base, uint64_t size, uintptr_t alignment)
{
	uintptr_t at = (uintptr_t)p, from = (uintptr_t)base;

	REQUIRE(at >= from && bytes <= size && at - from <= size - bytes);
	REQUIRE(at % alignment == 0);
}

static uint8_t touch(const void *p, uint64_t bytes)
{
	const volatile uint8_t *at = p;

	return bytes ? at[0] ^ at[bytes / 2] ^ at[bytes - 1] : 0;
}

static void use_batch(const struct ring_map *map, uint64_t n)
{
	const struct ring_header *h = &map->header;
	const struct ring_descriptor *d = ring_map_descriptor(map, n);
	uint32_t places[3] = { 0, h->capacity / 2, h->capacity - 1 };
	uint32_t *word = ring_map_release_word(map, n);

	must_lie_in(d, sizeof(*d), map->payload, h->total_size, 8);
	touch(d, sizeof(*d));
	REQUIRE(d->capacity + d->count + 1 > 0);
	for (int i = 0; i < 3; i++) {
		const struct ring_place *p = ring_map_place(map, n, places[i]);

		must_lie_in(p, sizeof(*p), map->payload, h->total_size, 8);
		must_lie_in(p, sizeof(*p), d, h->descriptor_stride, 8);
		touch(p, sizeof(*p));
	}
	must_lie_in(ring_map_slot(map, n), h->slot_stride, map->payload, h->total_size, 1);
	touch(ring_map_slot(map, n), h->slot_stride);
	must_lie_in(word, sizeof(*word), map->control, h->control_size, 4);
	ring_store_release(word, (uint32_t)n);
}

static void use(const struct ring_map *map)
{
	const struct ring_header *h = &map->header;
	const struct ring_words *words = ring_map_words(map);
	struct ring_telemetry *telemetry = ring_map_telemetry(map);
	uint32_t *waiting = ring_map_waiting_word(map);

	REQUIRE(h->slots >= RING_SLOTS_MIN && h->slots <= RING_SLOTS_MAX && h->capacity > 0);
	must_lie_in(words, sizeof(*words), map->payload, h->total_size, 4);
	ring_load_acquire(&words->published);
	ring_load_acquire(&words->state);
	for (uint32_t i = 0; i < h->field_count; i++) {
		const struct ring_field *f = ring_map_field(map, i);

		must_lie_in(f, sizeof(*f), map->payload, h->total_size, 8);
		touch(f, sizeof(*f));
	}
	for (uint64_t n = 1; n <= h->slots + 1u && n < 8; n++)
		use_batch(map, n);
	use_batch(map, h->slots);
	use_batch(map, UINT64_MAX);
	must_lie_in(waiting, sizeof(*waiting), map->control, h->control_size, 4);
	ring_store_seq(waiting, 0);
	must_lie_in(telemetry, sizeof(*telemetry), map->control, h->control_size, 8);
	ring_store_relaxed64(&telemetry->wait_ns, 1);
	ring_store_relaxed64(&telemetry->copy_ns, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned int options = input_u8(&in);
	int before = fuzz_lowest_fd(), payload, control;
	int seals = options & UNSEALED ? 0 : F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct ring_header h = { .magic = 0 };
	struct ring_map map;
	uint64_t total, control_size;
	char text[256] = "";
	uint8_t *bytes;
	int r;

	bytes = fuzz_copy(in.at, in.left);
	memcpy(&h, bytes, in.left < sizeof(h) ? in.left : sizeof(h));
	if (options & MENDED) {
		h.magic = RING_MAGIC;
		h.major = RING_MAJOR;
		memcpy(bytes, &h, in.left < sizeof(h) ? in.left : sizeof(h));
	}
	total = h.total_size >= in.left && h.total_size <= PAYLOAD_MOST ? h.total_size : in.left;
	control_size = h.control_size <= PAYLOAD_MOST ? h.control_size : 4096;
	total -= (options & SHORT_PAYLOAD) && total > in.left;
	control_size -= (options & SHORT_CONTROL) && control_size > 0;
	payload = make_memfd(bytes, in.left, total,
		seals && (options & FUTURE_WRITE) ? seals | F_SEAL_FUTURE_WRITE : seals);
	control = options & SAME_MEMFD ? dup(payload) : make_memfd("", 0, control_size, seals);
	r = ring_map_open(&map, payload, control, text, sizeof(text));
	REQUIRE(r <= 0);
	if (r == 0) {
		REQUIRE(seals && map.header.total_size == total);
		use(&map);
		ring_map_close(&map);
	}
	close(payload);
	close(control);
	free(bytes);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
