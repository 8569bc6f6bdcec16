/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of the ring at full speed on one mapping (shared-map.c). Slots are poisoned before
 * reuse, so that a missing edge shows as a wrong byte, and under TSan as a report. FEEDER_LONG=1
 * runs longer.
 */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rounds(uint64_t few)
{
	return getenv("FEEDER_LONG") ? few * 50 : few;
}

static void no_byte_of_another_batch(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .shared_map = true, .slots = 2, .side = 4 }, 0);
	for (uint64_t n = 1; n <= rounds(1500); n++) {
		struct feeder_place place;

		fixture_next(&x, n);
		assert_int_equal(feeder_batch_place(x.lane, n, 1, &place), 0);
		assert_int_equal(place.id, n * 10 + 1);
		assert_int_equal(feeder_release(x.lane, n), 0);
	}
	fixture_stop(&x);
}

static void no_byte_of_another_batch_out_of_order(void **state)
{
	struct fixture x;
	struct feeder_batch held[3];
	unsigned int count = 0;
	unsigned int random = 1;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .shared_map = true, .slots = 4, .side = 4 }, 0);
	for (uint64_t n = 1; n <= rounds(1500); n++) {
		int r = feeder_next(x.lane, &x.batch, 5000);

		if (r == 0)
			held[count++] = x.batch;
		else
			assert_int_equal(r, -EDEADLK);
		n -= r != 0;
		while (count == 3 || (r != 0 && count > 0)) {
			unsigned int i = rand_r(&random) % count;

			fixture_check_pixels(&held[i]);
			assert_int_equal(feeder_release(x.lane, held[i].number), 0);
			held[i] = held[--count];
		}
	}
	fixture_stop(&x);
}

static void no_byte_of_another_batch_over_seeks(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .shared_map = true, .slots = 3, .side = 4 }, 0);
	for (uint64_t i = 1; i <= rounds(150); i++) {
		assert_int_equal(feeder_set_epoch(x.lane, i * 2), 0);
		for (uint64_t k = 0; k < i % 7; k++) {
			assert_int_equal(feeder_next(x.lane, &x.batch, 5000), 0);
			assert_int_equal(x.batch.epoch, i * 2 + k / 5);
			assert_int_equal(x.batch.step, k % 5);
			fixture_check_pixels(&x.batch);
			assert_int_equal(feeder_release(x.lane, x.batch.number), 0);
		}
	}
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_byte_of_another_batch),
		cmocka_unit_test(no_byte_of_another_batch_out_of_order),
		cmocka_unit_test(no_byte_of_another_batch_over_seeks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
