/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read errors and refused files, from the reader to the consumer: what passes leaves no trace but
 * a counter, what stays is one named sample, and a set of nothing else ends its lane.
 */
#include "hazards/pipeline/faulty.h"

#include <stdio.h>
#include <string.h>

#define BATCHES 10
#define BAD_ID  11

static const enum reader_backend backends[] = { READER_PREAD, READER_AUTO };

struct run {
	struct consumer sums; /* closed */
	uint64_t retries;
	uint32_t bad_places;
	uint32_t status; /* of the last bad place */
};

/* Drains BATCHES batches over faults and looks at every place. */
static struct run drain(struct folder *f, const struct reader_faults *faults,
	enum reader_backend backend, const struct control_open_lane *open)
{
	struct pipeline_options options = { .workers = 2, .reader = (int)backend };
	struct ring_descriptor d;
	struct pipeline *p;
	struct run run = { 0 };

	faulty_next(faults);
	p = pipeline_make(&options);
	consumer_open(&run.sums, p, f, open);
	for (unsigned int i = 0; i < BATCHES; i++) {
		assert_true(consumer_take(&run.sums, &d));
		for (uint32_t k = 0; k < d.count; k++) {
			const struct ring_place *place = ring_map_place(&run.sums.map, d.number, k);

			if (!place->status)
				continue;
			assert_int_equal(place->id_asked, BAD_ID);
			run.bad_places++;
			run.status = place->status;
		}
		consumer_release(&run.sums, d.number);
	}
	run.retries = daemon_counter(p, STATS_DAEMON_read_retries);
	if (run.bad_places > 0) {
		struct stats_case c;

		assert_int_equal(lane_cases(run.sums.lane, &c, 1), 1);
		assert_int_equal(c.id, BAD_ID);
		assert_string_equal(c.path, "a/011.jpg");
		assert_int_equal(c.count, run.bad_places);
	}
	consumer_close(&run.sums);
	pipeline_free(p);
	return run;
}

static void make(struct folder *f, struct control_open_lane *open)
{
	folder_make(f);
	folder_open(f);
	request_init(open);
}

/* Every read fails at first: the consumer gets the bytes of a run without faults. */
static void passes_unseen(const struct reader_faults *faults)
{
	struct control_open_lane open;
	struct folder f;
	struct run clean, got;

	make(&f, &open);
	clean = drain(&f, NULL, READER_PREAD, &open);
	assert_int_equal(clean.retries, 0);
	for (unsigned int i = 0; i < 2; i++) {
		got = drain(&f, faults, backends[i], &open);
		assert_int_equal(got.bad_places, 0);
		assert_true(got.sums.order_digest == clean.sums.order_digest);
		assert_true(got.sums.pixel_digest == clean.sums.pixel_digest);
		assert_true(got.sums.bytes_hash == clean.sums.bytes_hash);
		assert_true(got.retries >= (uint64_t)8 * (BATCHES - 1));
	}
	folder_free(&f);
}

static void b28_an_error_that_passes_is_only_counted(void **state)
{
	static const struct reader_faults faults = { .seed = 1,
		.read = { .error = EIO, .chance = 1000, .times = 1 } };

	(void)state;
	passes_unseen(&faults);
}

static void b27_stale_handles_are_opened_again_and_nobody_notices(void **state)
{
	static const struct reader_faults reading = { .seed = 1,
		.read = { .error = ESTALE, .chance = 1000, .times = 1 } };
	static const struct reader_faults opening = { .seed = 1,
		.open = { .error = ESTALE, .chance = 1000, .times = 1 } };

	(void)state;
	passes_unseen(&reading);
	passes_unseen(&opening);
}

/* The error of one file stays: its places are filled by another, and the run goes on. */
static void b28_an_error_that_stays_is_one_bad_sample(void **state)
{
	static const struct reader_faults faults = {
		.seed = 1, .only = "a/011.jpg", .read = { .error = EIO, .chance = 1000 }
	};
	struct control_open_lane open;
	struct folder f;
	struct run clean, got;

	(void)state;
	make(&f, &open);
	clean = drain(&f, NULL, READER_PREAD, &open);
	for (unsigned int i = 0; i < 2; i++) {
		got = drain(&f, &faults, backends[i], &open);
		assert_true(got.bad_places > 0);
		assert_int_equal(got.status, FEEDER_STATUS_READ_ERROR);
		assert_true(got.sums.order_digest == clean.sums.order_digest);
		assert_true(got.sums.pixel_digest != clean.sums.pixel_digest);
		assert_true(got.retries >= 3);
	}
	folder_free(&f);
}

static void b27_what_was_replaced_meanwhile_is_changed_and_not_mixed(void **state)
{
	static const struct reader_faults faults = { .seed = 1,
		.read = { .error = ESTALE, .chance = 1000, .times = 1 } };
	struct control_open_lane open;
	struct folder f;
	struct run got;

	(void)state;
	make(&f, &open);
	folder_put(&f, BAD_ID, "another file", 12);
	for (unsigned int i = 0; i < 2; i++) {
		got = drain(&f, &faults, backends[i], &open);
		assert_true(got.bad_places > 0);
		assert_int_equal(got.status, FEEDER_STATUS_CHANGED);
	}
	folder_free(&f);
}

/* All files are refused, each for its reason: the lane ends, and every one met is named. */
static void a05_a67_a_set_of_refused_files_ends_its_lane(void **state)
{
	static const uint32_t policies[] = { CONTROL_BAD_SUBSTITUTE, CONTROL_BAD_MASK,
		CONTROL_BAD_FAIL };
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct control_error error;
	struct stats_case cases[FOLDER_FILES];
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;

	(void)state;
	folder_make(&f);
	for (unsigned int i = 0; i < FOLDER_FILES; i++)
		folder_put(&f, i, i % 2 ? "GIF89a\1\0\1\0" : "\xff\xd8\xff\xdb, cut.", 10);
	folder_open(&f);
	request_init(&open);
	open.order = ORDER_SEQUENTIAL;
	faulty_next(NULL);
	p = pipeline_make(&options);
	for (unsigned int k = 0; k < 3; k++) {
		uint32_t n, batches = 0;

		open.bad = policies[k];
		consumer_open(&c, p, &f, &open);
		while (consumer_next(&c, &d))
			assert_true(++batches < 10);
		/* the budget is 16, two whole batches; fail has none */
		assert_int_equal(batches, open.bad == CONTROL_BAD_FAIL ? 0 : 2);
		assert_int_equal(lane_error(c.lane, &error), -EBADMSG);
		assert_non_null(strstr(error.text, "a/000.jpg (sample 0)"));
		assert_int_equal(lane_counter(c.lane, STATS_LANE_bad_samples),
			open.bad == CONTROL_BAD_FAIL ? 8 : 24);
		n = lane_cases(c.lane, cases, FOLDER_FILES);
		assert_int_equal(n, open.bad == CONTROL_BAD_FAIL ? 8 : 24);
		for (uint32_t i = 0; i < n; i++) {
			char path[32];

			snprintf(path, sizeof(path), "a/%03u.jpg", i);
			assert_string_equal(cases[i].path, path);
			assert_int_equal(cases[i].id, i);
			assert_int_equal(cases[i].status,
				i % 2 ? FEEDER_STATUS_OTHER_FORMAT : cases[0].status);
			assert_true(cases[i].status != FEEDER_STATUS_OK && cases[i].text[0]);
		}
		consumer_close(&c);
	}
	pipeline_free(p);
	folder_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b28_an_error_that_passes_is_only_counted),
		cmocka_unit_test(b27_stale_handles_are_opened_again_and_nobody_notices),
		cmocka_unit_test(b28_an_error_that_stays_is_one_bad_sample),
		cmocka_unit_test(b27_what_was_replaced_meanwhile_is_changed_and_not_mixed),
		cmocka_unit_test(a05_a67_a_set_of_refused_files_ends_its_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
