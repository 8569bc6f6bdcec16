/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lane stands: cursors, seek, set epoch, and what happens to batches in between. */
#include "fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static unsigned int moves(struct fixture *x)
{
	return fake_count(x->fake, &x->fake->moves);
}

static void assert_cursor(struct fixture *x, uint64_t epoch, uint64_t step)
{
	uint8_t cursor[FEEDER_CURSOR_MAX];
	uint64_t words[3];

	assert_int_equal(feeder_cursor(x->lane, cursor, sizeof(cursor)), FAKE_CURSOR);
	memcpy(words, cursor, sizeof(words));
	assert_int_equal(words[1], epoch);
	assert_int_equal(words[2], step);
}

static void make_cursor(uint8_t ret[FAKE_CURSOR], uint64_t epoch, uint64_t step)
{
	memcpy(ret, "FAKE\1\0\0\0", 8);
	memcpy(ret + 8, &epoch, 8);
	memcpy(ret + 16, &step, 8);
}

static void the_cursor_stands_behind_the_last_batch(void **state)
{
	struct fixture x;
	char small[8];

	(void)state;
	fixture_start(&x, NULL, 0);
	assert_cursor(&x, 0, 0);
	for (uint64_t n = 1; n <= 6; n++) {
		fixture_next(&x, n);
		assert_cursor(&x, n / 5, n % 5);
		feeder_release(x.lane, n);
	}
	assert_int_equal(feeder_cursor(x.lane, small, sizeof(small)), -ERANGE);
	assert_error_says("FEEDER_CURSOR_MAX");
	fixture_stop(&x);
}

static void a_lane_opens_where_it_is_told(void **state)
{
	struct fixture x;
	struct feeder_lane_config config;
	uint8_t cursor[FAKE_CURSOR];

	(void)state;
	fixture_connect(&x, NULL);
	make_cursor(cursor, 3, 2);
	feeder_lane_config_init(&config);
	config.cursor = cursor;
	config.cursor_size = sizeof(cursor);
	config.epoch = 9; /* not looked at where a cursor is given */
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", &config), 0);
	assert_cursor(&x, 3, 2);
	fixture_next(&x, 1);
	assert_int_equal(x.batch.epoch, 3);
	assert_int_equal(x.batch.step, 2);
	feeder_lane_close(x.lane);
	config.cursor = NULL;
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", &config), 0);
	assert_cursor(&x, 9, 0);
	/* opened there: no batch of another epoch is prepared, and ranks are compared by it */
	assert_int_equal(moves(&x), 0);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), 0);
	assert_int_equal(x.batch.epoch, 9);
	fixture_stop(&x);
}

static void seek_drops_what_was_prefetched(void **state)
{
	struct fixture x;
	uint8_t cursor[FAKE_CURSOR];

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	make_cursor(cursor, 7, 3);
	assert_int_equal(feeder_seek(x.lane, cursor, sizeof(cursor)), 0);
	assert_cursor(&x, 7, 3);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	/* up to 4 were published; none of the old generation is seen */
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), 0);
	assert_int_equal(x.batch.epoch, 7);
	assert_int_equal(x.batch.step, 3);
	assert_int_equal(x.batch.generation, 2);
	fixture_check_pixels(&x.batch);
	for (unsigned int i = 0; i < 12; i++) {
		feeder_release(x.lane, x.batch.number);
		assert_int_equal(feeder_next(x.lane, &x.batch, -1), 0);
		fixture_check_pixels(&x.batch);
	}
	fixture_stop(&x);
}

static void held_batches_stay_over_a_seek_and_are_released_late(void **state)
{
	struct fixture x;
	struct feeder_batch held[2];
	uint8_t cursor[FAKE_CURSOR];

	(void)state;
	fixture_start(&x, NULL, 0);
	fixture_next(&x, 1);
	held[0] = x.batch;
	fixture_next(&x, 2);
	held[1] = x.batch;
	make_cursor(cursor, 7, 0);
	assert_int_equal(feeder_seek(x.lane, cursor, sizeof(cursor)), 0);
	fixture_check_pixels(&held[0]);
	fixture_check_pixels(&held[1]);
	/*
	 * the seek's first batch is due in slot 1, which batch 1 still has, unless 3 and 4 were
	 * not out
	 */
	for (;;) {
		int r = feeder_next(x.lane, &x.batch, 2000);

		if (r == -EDEADLK)
			break;
		assert_int_equal(r, 0);
		assert_int_equal(x.batch.epoch, 7);
		fixture_check_pixels(&x.batch);
		assert_int_equal(feeder_release(x.lane, x.batch.number), 0);
	}
	fixture_check_pixels(&held[0]);
	assert_int_equal(feeder_release(x.lane, 2), 0);
	assert_int_equal(feeder_release(x.lane, 1), 0);
	for (unsigned int i = 0; i < 9; i++) {
		assert_int_equal(feeder_next(x.lane, &x.batch, 2000), 0);
		fixture_check_pixels(&x.batch);
		feeder_release(x.lane, x.batch.number);
	}
	fixture_stop(&x);
}

static void set_epoch_is_free_where_the_lane_stands(void **state)
{
	struct fixture x;

	(void)state;
	fixture_start(&x, NULL, 0);
	assert_int_equal(feeder_set_epoch(x.lane, 0), 0);
	for (uint64_t n = 1; n <= 5; n++) {
		fixture_next(&x, n);
		feeder_release(x.lane, n);
	}
	assert_int_equal(feeder_set_epoch(x.lane, 1), 0);
	assert_int_equal(moves(&x), 0);
	fixture_next(&x, 6);
	feeder_release(x.lane, 6);
	assert_int_equal(feeder_set_epoch(x.lane, 1), 0);
	assert_int_equal(moves(&x), 1);
	assert_int_equal(feeder_set_epoch(x.lane, 1), 0);
	assert_int_equal(moves(&x), 1);
	assert_int_equal(feeder_set_epoch(x.lane, 4), 0);
	assert_int_equal(moves(&x), 2);
	assert_cursor(&x, 4, 0);
	assert_int_equal(feeder_next(x.lane, &x.batch, -1), 0);
	assert_int_equal(x.batch.epoch, 4);
	assert_int_equal(x.batch.step, 0);
	fixture_stop(&x);
}

static void ids_go_over_in_a_sealed_file(void **state)
{
	static const int64_t ids[] = { 5, 0, 99, 5 };
	struct fixture x;
	unsigned int before;

	(void)state;
	fixture_start(&x, NULL, 0);
	before = count_fds();
	assert_int_equal(feeder_set_epoch_ids(x.lane, 2, ids, 4), 0);
	assert_int_equal(x.fake->ids_count, 4);
	assert_int_equal(x.fake->ids_sum, 109);
	/* the fake daemon, a thread of this process, closes its own after it has answered */
	for (unsigned int i = 0; i < 2000 && count_fds() > before; i++)
		usleep(1000);
	assert_int_equal(count_fds(), before);
	assert_int_equal(feeder_set_epoch_ids(x.lane, 2, ids, 0), -EINVAL);
	fixture_stop(&x);
}

static int refuse_seek(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	(void)fake;
	if (packet->header.type != CONTROL_SEEK || !*(bool *)context)
		return 0;
	fake_send_error(fd, packet->header.serial, -ESTALE, "the cursor is of another dataset");
	return 1;
}

static void a_refused_seek_changes_nothing(void **state)
{
	struct fixture x;
	bool refusing = true;
	uint8_t cursor[FAKE_CURSOR];

	(void)state;
	fixture_start(
		&x, &(struct fake_config){ .on_packet = refuse_seek, .context = &refusing }, 0);
	fixture_next(&x, 1);
	make_cursor(cursor, 7, 0);
	assert_int_equal(feeder_seek(x.lane, cursor, sizeof(cursor)), -ESTALE);
	assert_string_equal(feeder_last_error(), "the cursor is of another dataset");
	fixture_next(&x, 2);
	assert_cursor(&x, 0, 2);
	assert_int_equal(feeder_seek(x.lane, cursor, 0), -EINVAL);
	assert_int_equal(feeder_seek(x.lane, cursor, 300), -EINVAL);
	assert_error_says("a cursor of 300 bytes");
	fixture_stop(&x);
}

static int slow_seek(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	(void)fake;
	(void)fd;
	(void)context;
	if (packet->header.type == CONTROL_SEEK)
		usleep(250000);
	return 0;
}

/* The seek was given up, and takes effect all the same: no old batch is delivered after it. */
static void a_seek_that_was_given_up_is_waited_for(void **state)
{
	struct fixture x;
	uint8_t cursor[FAKE_CURSOR];
	int r;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .on_packet = slow_seek }, 100);
	fixture_next(&x, 1);
	feeder_release(x.lane, 1);
	make_cursor(cursor, 7, 1);
	assert_int_equal(feeder_seek(x.lane, cursor, sizeof(cursor)), -ETIMEDOUT);
	assert_int_equal(feeder_cursor(x.lane, cursor, sizeof(cursor)), -EAGAIN);
	assert_int_equal(feeder_next(x.lane, &x.batch, 0), -EAGAIN);
	while ((r = feeder_next(x.lane, &x.batch, 20)) == -EAGAIN || r == -ETIMEDOUT)
		;
	assert_int_equal(r, 0);
	assert_int_equal(x.batch.epoch, 7);
	assert_int_equal(x.batch.step, 1);
	assert_cursor(&x, 7, 2);
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cursor_stands_behind_the_last_batch),
		cmocka_unit_test(a_lane_opens_where_it_is_told),
		cmocka_unit_test(seek_drops_what_was_prefetched),
		cmocka_unit_test(held_batches_stay_over_a_seek_and_are_released_late),
		cmocka_unit_test(set_epoch_is_free_where_the_lane_stands),
		cmocka_unit_test(ids_go_over_in_a_sealed_file),
		cmocka_unit_test(a_refused_seek_changes_nothing),
		cmocka_unit_test(a_seek_that_was_given_up_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
