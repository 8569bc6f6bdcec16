/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open-lane message on the real pipeline: sizes, checks, and (where the ring is small) the
 * lane itself, sought and moved about. The dataset is a folder of small JPEGs.
 *
 * The input: a byte of options, the epoch and c of a cursor, then the message's bytes from its
 * `flags` on, xored into a good one. The cursor in the message is encoded anew from these two,
 * since its check word would let none pass.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "unit/pipeline/fixture.h"

#define RING_MOST   (1u << 20)

#define WITH_CURSOR 0x01u
#define WITH_SEEK   0x02u
#define WITH_EPOCH  0x04u
#define WITH_DRAIN  0x08u

static struct folder folder;
static struct pipeline *pipeline;

static void end(void)
{
	pipeline_free(pipeline);
	folder_free(&folder);
}

static void start(void)
{
	folder_make(&folder);
	folder_open(&folder);
	pipeline =
		pipeline_make(&(struct pipeline_options){ .workers = 1, .reader = READER_PREAD });
	atexit(end);
}

static void put_cursor(struct control_open_lane *open, uint64_t epoch, uint64_t c)
{
	struct cursor cursor = { .order = open->order, .seed = open->seed, .epoch = epoch, .c = c };

	memcpy(cursor.fingerprint, dataset_fingerprint(folder.dataset), 16);
	cursor_encode(&cursor, open->cursor);
	open->cursor_size = CURSOR_SIZE;
}

static void check_result(int r, const char *text)
{
	REQUIRE(r == 0 || r == -ENOMEM || (r < 0 && text[0]));
}

/* Takes what comes within a few turns. */
static void take_batches(struct lane *lane, const struct ring_map *map, uint64_t first)
{
	const struct ring_words *words = ring_map_words(map);
	uint64_t n = first;

	for (int i = 0; i < 8 && n < first + 3; i++) {
		uint32_t published = ring_load_acquire(&words->published); /* E1 */

		if ((int32_t)(published - (uint32_t)n) < 0) {
			if (ring_load_acquire(&words->state) != RING_RUNNING)
				return;
			ring_store_seq(ring_map_waiting_word(map), 1); /* E3 */
			if (ring_load_seq(&words->published) == published)
				ring_futex_wait(&words->published, published, 2000000);
			continue;
		}
		const struct ring_descriptor *d = ring_map_descriptor(map, n);

		REQUIRE(d->number == n && d->count <= d->capacity);
		REQUIRE(d->fields[0].offset <= map->header.slot_stride &&
			d->fields[0].bytes <= map->header.slot_stride - d->fields[0].offset);
		for (uint32_t k = 0; k < d->capacity; k++) {
			const struct ring_place *p = ring_map_place(map, n, k);

			REQUIRE(p->id < FOLDER_FILES && p->id_asked < FOLDER_FILES);
		}
		ring_store_release(ring_map_release_word(map, n), (uint32_t)n); /* E2 */
		lane_doorbell(lane);
		n++;
	}
}

static void use_lane(
	const struct lane_request *request, unsigned int options, uint64_t epoch, uint64_t c)
{
	struct control_open_lane open = *request->open;
	struct control_lane reply = { 0 };
	struct lane *lane;
	struct ring_map map;
	char text[1024] = "";
	int fds[3], r;

	if (pipeline_lane_new(&lane, pipeline, request, &reply, fds, text, sizeof(text)) < 0)
		return;
	REQUIRE(ring_map_open(&map, fds[0], fds[1], text, sizeof(text)) == 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	take_batches(lane, &map, reply.first);
	if (options & WITH_SEEK) {
		put_cursor(&open, epoch ^ 1, c / 2);
		text[0] = '\0';
		r = lane_seek(lane, open.cursor, open.cursor_size, &reply, text, sizeof(text));
		check_result(r, text);
		if (r == 0)
			take_batches(lane, &map, reply.first);
	}
	if (options & WITH_EPOCH) {
		const int64_t ids[5] = { 1, 2, (int64_t)(c % 70), 0, 59 };

		text[0] = '\0';
		r = lane_set_epoch(lane, epoch, options & 0x80 ? ids : NULL, options & 0x80 ? 5 : 0,
			&reply, text, sizeof(text));
		check_result(r, text);
		if (r == 0)
			take_batches(lane, &map, reply.first);
	}
	if (options & WITH_DRAIN)
		lane_drain(lane);
	ring_map_close(&map);
	pipeline_lane_free(lane);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned int options = input_u8(&in);
	uint64_t epoch = input_u64(&in), c = input_u64(&in), bytes = 0;
	struct lane_identity identity;
	struct control_open_lane open;
	struct lane_request request = { .open = &open, .job_key = 1, .worker_share = 100 };
	char text[1024] = "";
	int before, r, s;

	if (!pipeline)
		start();
	before = fuzz_lowest_fd();
	request.dataset = folder.dataset;
	request_init(&open);
	for (size_t i = offsetof(struct control_open_lane, flags); i < sizeof(open); i++)
		((uint8_t *)&open)[i] ^= input_u8(&in);
	/* As control has checked it. */
	if (open.cursor_size > sizeof(open.cursor) || open.operation_count > CONTROL_OPS_MAX)
		return 0;
	if (options & WITH_CURSOR)
		put_cursor(&open, epoch, c);
	r = pipeline_lane_size(pipeline, &request, &bytes, text, sizeof(text));
	check_result(r, text);
	text[0] = '\0';
	s = lane_request_identity(&request, &identity, text, sizeof(text));
	check_result(s, text);
	if (r == 0 && bytes <= RING_MOST)
		use_lane(&request, options, epoch, c);
	/* The reader may be about to close what it had open. */
	for (int i = 0; i < 2000 && fuzz_lowest_fd() != before; i++)
		usleep(1000);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
