/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of the ring: layout, seals, the one rule of release, waking. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ring/ring.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SLOTS    3
#define CAPACITY 5

static struct ring_shape shape(void)
{
	return (struct ring_shape){
		.slots = SLOTS,
		.capacity = CAPACITY,
		.field_count = 2,
		.fields = {
			{ .name = "images", .dtype = 1, .ndim = 4,
				.shape = { CAPACITY, 10, 10, 3 }, .place_bytes = 300 },
			{ .name = "labels", .dtype = 5, .ndim = 1, .shape = { CAPACITY },
				.place_bytes = 8 },
		},
		.lane = 77,
		.numa_node = -1,
	};
}

static struct ring *make(const struct ring_shape *s)
{
	struct ring *ring = NULL;
	char text[512] = "";

	if (ring_new(&ring, s, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	/* until the rest is reserved, only the first slot may be used */
	assert_true(ring_slot_free(ring, 1));
	assert_false(ring_slot_free(ring, 2));
	assert_int_equal(ring_reserve_rest(ring, text, sizeof(text)), 0);
	ring_open_rest(ring);
	assert_true(ring_slot_free(ring, 2));
	return ring;
}

static void map(struct ring *ring, struct ring_map *ret)
{
	char text[512] = "";

	if (ring_map_open(ret, ring_payload_fd(ring), ring_control_fd(ring), text, sizeof(text)) <
		0)
		fail_msg("%s", text);
}

static void release(const struct ring_map *m, uint64_t n)
{
	ring_store_release(ring_map_release_word(m, n), (uint32_t)n);
}

static void test_layout(void **state)
{
	struct ring_shape s = shape();
	struct ring *ring = make(&s);
	struct ring_map m;
	uint64_t bytes;

	(void)state;
	map(ring, &m);
	assert_int_equal(ring_size(&s, &bytes), 0);
	assert_int_equal(bytes, ring_bytes(ring));
	assert_int_equal(m.header.lane, 77);
	assert_int_equal(m.header.slot_offset % 4096, 0);
	assert_int_equal(m.header.slot_stride % 4096, 0);
	assert_string_equal(ring_map_field(&m, 0)->name, "images");
	assert_string_equal(ring_map_field(&m, 1)->name, "labels");
	/* what the daemon writes for a batch is where the client looks for it */
	for (uint64_t n = 1; n <= 2 * SLOTS; n++) {
		struct ring_extent labels = ring_field_extent(ring, 1);

		ring_descriptor(ring, n)->number = n;
		assert_int_equal(ring_map_descriptor(&m, n)->number, n);
		ring_place(ring, n, CAPACITY - 1)->id = n * 10;
		assert_int_equal(ring_map_place(&m, n, CAPACITY - 1)->id, n * 10);
		memset(ring_field_data(ring, n, 1), (int)n, labels.bytes);
		assert_int_equal(ring_map_slot(&m, n)[labels.offset], n);
	}
	ring_map_close(&m);
	ring_free(ring);
}

/* The receiver of the payload can write in no way; the ring cannot change its size. */
static void test_seals(void **state)
{
	struct ring_shape s = shape();
	struct ring *ring = make(&s);
	int fd = ring_payload_fd(ring);
	char path[64];
	int again;

	(void)state;
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(write(fd, "x", 1), -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC); /* root and the owner may reopen: the seal holds */
	if (again >= 0) {
		assert_int_equal(pwrite(again, "x", 1, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_true(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
		assert_int_equal(ftruncate(again, 0), -1);
		close(again);
	}
	assert_int_equal(ftruncate(ring_control_fd(ring), 0), -1);
	assert_int_equal(fcntl(fd, F_GET_SEALS) &
				 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE),
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE);
	ring_free(ring);
	s.flags = RING_PAYLOAD_RW;
	ring = make(&s);
	assert_false(fcntl(ring_payload_fd(ring), F_GET_SEALS) & F_SEAL_FUTURE_WRITE);
	ring_free(ring);
}

static void test_release_rule(void **state)
{
	struct ring_shape s = shape();
	struct ring *ring = make(&s);
	struct ring_map m;

	(void)state;
	map(ring, &m);
	for (uint64_t n = 1; n <= SLOTS; n++) {
		assert_true(ring_slot_free(ring, n));
		ring_publish(ring, n);
	}
	assert_int_equal(ring_held(ring), SLOTS);
	for (uint64_t n = SLOTS + 1; n <= 2 * SLOTS; n++)
		assert_false(ring_slot_free(ring, n));
	/* in any order; a wrong number frees nothing */
	release(&m, 2);
	assert_true(ring_slot_free(ring, SLOTS + 2));
	assert_false(ring_slot_free(ring, SLOTS + 1));
	ring_store_release(ring_map_release_word(&m, 1), 2);
	assert_false(ring_slot_free(ring, SLOTS + 1));
	ring_store_release(ring_map_release_word(&m, 1), (uint32_t)(SLOTS + 1));
	assert_false(ring_slot_free(ring, SLOTS + 1));
	release(&m, 1);
	assert_true(ring_slot_free(ring, SLOTS + 1));
	ring_publish(ring, SLOTS + 1);
	assert_false(ring_slot_free(ring, 2 * SLOTS + 1));
	/* a late word of the batch before means nothing */
	release(&m, 1);
	assert_false(ring_slot_free(ring, 2 * SLOTS + 1));
	ring_map_close(&m);
	ring_free(ring);
}

static void test_numbers_wrap_in_32_bits(void **state)
{
	struct ring_shape s = shape();
	struct ring *ring = make(&s);
	struct ring_map m;
	uint64_t base = ((uint64_t)1 << 32) / SLOTS * SLOTS - SLOTS;

	(void)state;
	map(ring, &m);
	for (uint64_t n = base + 1; n <= base + 4 * SLOTS; n++) {
		if (n > base + SLOTS)
			assert_true(ring_slot_free(ring, n));
		ring_publish(ring, n);
		assert_int_equal(ring_load_acquire(&ring_map_words(&m)->published), (uint32_t)n);
		if (n > base + SLOTS)
			assert_false(ring_slot_free(ring, n + SLOTS));
		release(&m, n);
	}
	ring_map_close(&m);
	ring_free(ring);
}

static void *sleeper(void *arg)
{
	const struct ring_map *m = arg;
	const uint32_t *published = &ring_map_words(m)->published;

	while (ring_load_acquire(published) == 0) {
		ring_store_seq(ring_map_waiting_word(m), 1);
		if (ring_load_seq(published) == 0)
			ring_futex_wait(published, 0, 10000000000ull);
		ring_store_seq(ring_map_waiting_word(m), 0);
	}
	return NULL;
}

static void test_publish_wakes(void **state)
{
	struct ring_shape s = shape();

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct ring *ring = make(&s);
		struct ring_map m;
		pthread_t thread;

		map(ring, &m);
		assert_int_equal(pthread_create(&thread, NULL, sleeper, &m), 0);
		if (i % 2)
			usleep(200);
		ring_publish(ring, 1);
		pthread_join(thread, NULL); /* hangs for 10 s a round if the wake is lost */
		ring_map_close(&m);
		ring_free(ring);
	}
}

static void test_too_large_is_a_sentence(void **state)
{
	struct ring_shape s = shape();
	struct ring *ring = NULL;
	char text[512] = "";
	uint64_t bytes;

	(void)state;
	s.fields[0].place_bytes = (uint64_t)1 << 62;
	assert_int_equal(ring_size(&s, &bytes), -EOVERFLOW);
	s.fields[0].place_bytes = (uint64_t)1 << 41; /* more than any machine has */
	assert_true(ring_new(&ring, &s, text, sizeof(text)) < 0);
	assert_non_null(strstr(text, "MiB"));
	assert_null(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_seals),
		cmocka_unit_test(test_release_rule),
		cmocka_unit_test(test_numbers_wrap_in_32_bits),
		cmocka_unit_test(test_publish_wakes),
		cmocka_unit_test(test_too_large_is_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
