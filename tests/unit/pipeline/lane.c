/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes end to end, without a daemon: the same bytes however they were made; policies; seeks. */
#include "unit/pipeline/fixture.h"

#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

struct sums {
	uint64_t order;
	uint64_t pixels;
	uint64_t bytes;
	uint64_t bad;
};

static struct sums drain(struct folder *f, const struct pipeline_options *options,
	const struct control_open_lane *open, unsigned int batches)
{
	struct pipeline *p = pipeline_make(options);
	struct consumer c;
	struct ring_descriptor d;
	struct sums sums;
	uint64_t bad = 0;

	consumer_open(&c, p, f, open);
	for (unsigned int i = 0; i < batches; i++) {
		assert_true(consumer_next(&c, &d));
		bad += d.bad_count;
	}
	sums = (struct sums){ c.order_digest, c.pixel_digest, c.bytes_hash, bad };
	consumer_close(&c);
	pipeline_free(p);
	return sums;
}

static void assert_same(const struct sums *a, const struct sums *b)
{
	assert_true(a->order == b->order);
	assert_true(a->pixels == b->pixels);
	assert_true(a->bytes == b->bytes);
	assert_true(a->bad == b->bad);
}

static void test_same_bytes_for_any_workers_and_reader(void **state)
{
	static const struct pipeline_options variants[] = {
		{ .workers = 1, .reader = READER_PREAD },
		{ .workers = 2, .reader = READER_AUTO },
		{ .workers = 5, .reader = READER_PREAD },
		{ .workers = 5, .reader = READER_AUTO },
		{ .workers = 3, .reader = READER_AUTO, .readahead = 4096 },
	};
	struct control_open_lane open;
	struct folder f;
	struct sums first, other;

	(void)state;
	folder_make(&f);
	folder_put(&f, 5, "junk", 4);
	folder_put(&f, 41, "", 0);
	folder_open(&f);
	request_init(&open);
	first = drain(&f, &variants[0], &open, 20);
	assert_true(first.bad > 0);
	for (size_t i = 1; i < sizeof(variants) / sizeof(variants[0]); i++) {
		other = drain(&f, &variants[i], &open, 20);
		assert_same(&first, &other);
	}
	open.seed++;
	other = drain(&f, &variants[0], &open, 20);
	assert_true(first.bytes != other.bytes && first.order != other.order);
	folder_free(&f);
}

/* Every batch of two epochs by descriptor: steps, flags, places, short last batch. */
static void test_descriptors(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;
	unsigned int seen[FOLDER_FILES] = { 0 };

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	assert_int_equal(c.reply.steps_epoch, 8);
	for (unsigned int i = 0; i < 16; i++) {
		assert_true(consumer_take(&c, &d));
		assert_int_equal(d.epoch, i / 8);
		assert_int_equal(d.step, i % 8);
		assert_int_equal(d.batches_left, 7 - i % 8);
		assert_int_equal(d.flags, i % 8 == 7 ? RING_LAST_OF_EPOCH : 0);
		assert_int_equal(d.count, i % 8 == 7 ? FOLDER_FILES - 56 : 8);
		for (uint32_t k = 0; k < d.count; k++) {
			const struct ring_place *place = ring_map_place(&c.map, d.number, k);
			const int64_t *labels = (const void *)(ring_map_slot(&c.map, d.number) +
							       d.fields[1].offset);

			assert_int_equal(place->kind, RING_PIXELS);
			assert_int_equal(place->id, place->id_asked);
			assert_int_equal(labels[k], place->id >= FOLDER_FILES / 2);
			assert_true(place->box_x + place->box_w <= place->source_w);
			seen[place->id]++;
		}
		consumer_release(&c, d.number);
	}
	for (unsigned int i = 0; i < FOLDER_FILES; i++)
		assert_int_equal(seen[i], 2);
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

/* From every cursor of an epoch, a lane opened or sought there gives what the uncut one gave. */
static void test_seek_and_reopen_at_every_cut(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer whole, cut;
	struct pipeline *p;
	struct folder f;
	uint64_t digests[12];
	uint8_t cursors[12][CURSOR_SIZE];
	char text[512];

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&whole, p, &f, &open);
	for (unsigned int i = 0; i < 12; i++) {
		assert_true(consumer_next(&whole, &d));
		digests[i] = d.pixel_digest;
		memcpy(cursors[i], d.cursor, CURSOR_SIZE);
	}
	consumer_open(&cut, p, &f, &open);
	for (unsigned int i = 0; i + 1 < 12; i += 3) {
		uint64_t first;

		assert_int_equal(lane_seek(cut.lane, cursors[i], CURSOR_SIZE, &cut.reply, text,
					 sizeof(text)),
			0);
		first = cut.reply.first;
		for (uint64_t n = cut.next; n < first; n++)
			consumer_release(&cut, n); /* published before the seek: unseen */
		cut.next = first;
		assert_true(consumer_next(&cut, &d));
		assert_int_equal(d.generation, cut.reply.generation);
		assert_true(d.pixel_digest == digests[i + 1]);
	}
	consumer_close(&cut);
	memcpy(open.cursor, cursors[4], CURSOR_SIZE);
	open.cursor_size = CURSOR_SIZE;
	consumer_open(&cut, p, &f, &open);
	assert_true(consumer_next(&cut, &d));
	assert_true(d.pixel_digest == digests[5]);
	consumer_close(&cut);
	consumer_close(&whole);
	pipeline_free(p);
	folder_free(&f);
}

static void test_mask_and_fail(void **state)
{
	struct pipeline_options options = { .workers = 3 };
	struct control_open_lane open;
	struct control_error error;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;
	unsigned int masked = 0;

	(void)state;
	folder_make(&f);
	folder_put(&f, 11, "\xff\xd8", 2);
	folder_put(&f, 12, "GIF89a............", 18);
	folder_open(&f);
	request_init(&open);
	open.order = ORDER_SEQUENTIAL;
	open.bad = CONTROL_BAD_MASK;
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	for (unsigned int i = 0; i < 8; i++) {
		assert_true(consumer_take(&c, &d));
		for (uint32_t k = 0; k < d.count; k++) {
			const struct ring_place *place = ring_map_place(&c.map, d.number, k);
			const uint8_t *pixels = ring_map_slot(&c.map, d.number) + place->offset;

			if (place->id_asked != 11 && place->id_asked != 12) {
				assert_true(place->valid && !place->status);
				continue;
			}
			masked++;
			assert_false(place->valid);
			assert_int_equal(place->label, -100);
			assert_true(place->status);
			for (uint64_t b = 0; b < place->length; b++)
				assert_int_equal(pixels[b], 0);
		}
		consumer_release(&c, d.number);
	}
	assert_int_equal(masked, 2);
	consumer_close(&c);

	open.bad = CONTROL_BAD_FAIL;
	consumer_open(&c, p, &f, &open);
	assert_true(consumer_next(&c, &d));
	wait_event(lane_id(c.lane));
	assert_false(consumer_next(&c, &d));
	assert_int_equal(lane_error(c.lane, &error), -EBADMSG);
	assert_int_equal(error.sample, 11);
	assert_non_null(strstr(error.text, "a/011.jpg (sample 11)"));
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

static void test_budget_stops_the_lane(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct control_error error;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;
	unsigned int batches = 0;

	(void)state;
	folder_make(&f);
	for (unsigned int i = 0; i < 17; i++)
		folder_put(&f, i, "x", 1);
	folder_open(&f);
	request_init(&open);
	open.order = ORDER_SEQUENTIAL;
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	while (consumer_next(&c, &d))
		batches++;
	/* 16 are allowed: the 17th is in the third batch */
	assert_int_equal(batches, 2);
	assert_int_equal(lane_error(c.lane, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "17 bad samples are over the budget of 16"));
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

static void test_drain_publishes_what_is_in_flight(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;
	unsigned int batches = 0;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	assert_true(consumer_next(&c, &d));
	lane_drain(c.lane);
	while (!lane_drained(c.lane))
		wait_event(lane_id(c.lane));
	while (consumer_next(&c, &d))
		batches++;
	assert_true(batches <= 3);
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

static void test_refusals_are_sentences(void **state)
{
	struct pipeline_options options = { .workers = 1 };
	struct control_open_lane open;
	struct lane_request request = { .open = &open };
	struct control_lane reply;
	struct pipeline *p;
	struct lane *lane;
	struct folder f;
	char text[1024];
	int fds[3];

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request.dataset = f.dataset;
	p = pipeline_make(&options);
	request_init(&open);
	open.operations[1].code = 99;
	assert_int_equal(
		pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text)), -ENOSYS);
	assert_non_null(strstr(text, "operation 99"));
	request_init(&open);
	open.tail = ORDER_DROP;
	open.batch = 61;
	assert_true(pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text)) < 0);
	assert_non_null(strstr(text, "60"));
	assert_non_null(strstr(text, "61"));
	request_init(&open);
	open.slots = 1;
	assert_int_equal(
		pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text)), -EINVAL);
	request_init(&open);
	open.cursor_size = 5;
	assert_true(pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text)) < 0);
	pipeline_free(p);
	folder_free(&f);
}

/* A consumer that stands still keeps nobody else from being served, within a tiny byte budget. */
static void test_a_standing_lane_starves_nobody(void **state)
{
	struct pipeline_options options = { .workers = 2, .readahead = 1 << 16 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer still, busy;
	struct pipeline *p;
	struct folder f;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&still, p, &f, &open);
	assert_true(consumer_take(&still, &d));
	consumer_open(&busy, p, &f, &open);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(consumer_next(&busy, &d));
	consumer_close(&busy);
	consumer_close(&still);
	pipeline_free(p);
	folder_free(&f);
}

/*
 * Substitutes of batches that wait for a slot, and for their share of the read-ahead, once stood
 * before those of the batch that was due: the lane never went on.
 */
static void test_substitutes_do_not_block_the_batch_that_is_due(void **state)
{
	struct pipeline_options options = { .workers = 2, .readahead = 5 << 16 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;

	(void)state;
	folder_make(&f);
	for (unsigned int i = 0; i < 15; i++)
		folder_put(&f, i * 4, "x", 1);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	for (unsigned int i = 0; i < 40; i++) {
		for (unsigned int k = 0; k < 3; k++)
			assert_true(consumer_take(&c, &d));
		usleep(5000); /* the read-ahead fills its share */
		for (uint64_t n = d.number - 2; n <= d.number; n++)
			consumer_release(&c, n);
	}
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

/* Release words with any other value than the batch's number free nothing. */
static void test_hostile_release_words(void **state)
{
	struct pipeline_options options = { .workers = 2 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct consumer c;
	struct pipeline *p;
	struct folder f;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	request_init(&open);
	p = pipeline_make(&options);
	consumer_open(&c, p, &f, &open);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(consumer_take(&c, &d));
	for (uint32_t wrong = 4; wrong < 400; wrong += 7) {
		for (uint64_t n = 1; n <= 3; n++)
			ring_store_release(ring_map_release_word(&c.map, n), wrong);
		lane_doorbell(c.lane);
	}
	assert_int_equal(ring_load_acquire(&ring_map_words(&c.map)->published), 3);
	for (uint64_t n = 1; n <= 3; n++)
		consumer_release(&c, n);
	assert_true(consumer_next(&c, &d));
	consumer_close(&c);
	pipeline_free(p);
	folder_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes_for_any_workers_and_reader),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_seek_and_reopen_at_every_cut),
		cmocka_unit_test(test_mask_and_fail),
		cmocka_unit_test(test_budget_stops_the_lane),
		cmocka_unit_test(test_drain_publishes_what_is_in_flight),
		cmocka_unit_test(test_refusals_are_sentences),
		cmocka_unit_test(test_a_standing_lane_starves_nobody),
		cmocka_unit_test(test_substitutes_do_not_block_the_batch_that_is_due),
		cmocka_unit_test(test_hostile_release_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
