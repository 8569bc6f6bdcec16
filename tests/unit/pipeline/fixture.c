/* SPDX-License-Identifier: Apache-2.0 */
/* A folder, a pipeline and a consumer for tests. */
#include "unit/pipeline/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "unit/decode/make-jpeg.h"

static void file_path(const struct folder *f, unsigned int i, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%c/%03u.jpg", f->path, i < FOLDER_FILES / 2 ? 'a' : 'b', i);
}

void folder_put(struct folder *f, unsigned int i, const void *bytes, size_t size)
{
	char path[128];
	FILE *file;

	file_path(f, i, path, sizeof(path));
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

void folder_make(struct folder *ret)
{
	char path[128];

	snprintf(ret->path, sizeof(ret->path), "/tmp/feeder-test-XXXXXX");
	assert_non_null(mkdtemp(ret->path));
	ret->dataset = NULL;
	for (int c = 'a'; c <= 'b'; c++) {
		snprintf(path, sizeof(path), "%s/%c", ret->path, c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned int i = 0; i < FOLDER_FILES; i++) {
		struct jpeg_recipe r = {
			.width = 40 + i % 23,
			.height = 33 + i % 17,
			.sampling = { { 2, 2 } },
			.progressive = i % 9 == 4,
			.seed = i,
		};
		struct jpeg_file file;

		jpeg_make(&r, &file);
		folder_put(ret, i, file.bytes, file.size);
		jpeg_file_free(&file);
	}
}

void folder_open(struct folder *f)
{
	struct dataset_options options = { .cache_dir = NULL };
	char text[512] = "";
	int fd = open(f->path, O_PATH | O_CLOEXEC);

	assert_true(fd >= 0);
	if (dataset_open(&f->dataset, fd, -1, f->path, &options, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	close(fd);
	assert_int_equal(dataset_length(f->dataset), FOLDER_FILES);
}

void folder_free(struct folder *f)
{
	char command[128];

	dataset_unref(f->dataset);
	snprintf(command, sizeof(command), "rm -rf %s", f->path);
	assert_int_equal(system(command), 0);
}

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_cond = PTHREAD_COND_INITIALIZER;
static uint64_t event_lane;

static void lane_event(void *context, uint64_t lane)
{
	(void)context;
	pthread_mutex_lock(&event_lock);
	event_lane = lane;
	pthread_cond_broadcast(&event_cond);
	pthread_mutex_unlock(&event_lock);
}

void wait_event(uint64_t lane)
{
	pthread_mutex_lock(&event_lock);
	while (event_lane != lane)
		pthread_cond_wait(&event_cond, &event_lock);
	event_lane = 0;
	pthread_mutex_unlock(&event_lock);
}

struct pipeline *pipeline_make(const struct pipeline_options *options)
{
	struct pipeline_config config = {
		.workers = options->workers,
		.reader = options->reader,
		.readahead_bytes = options->readahead ? options->readahead : 8u << 20,
		.slots = 3,
		.read_deadline_ns = 30000000000ull,
		.lane_event = lane_event,
	};
	struct pipeline *p = NULL;
	char text[512] = "";

	event_lane = 0;
	if (pipeline_new(&p, &config, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	return p;
}

void request_init(struct control_open_lane *open)
{
	memset(open, 0, sizeof(*open));
	open->size = sizeof(*open);
	open->flags = CONTROL_LANE_PIXEL_DIGEST;
	open->world = 1;
	open->batch = 8;
	open->accumulate = 1;
	open->order = ORDER_TORCH;
	open->tail = ORDER_PAD;
	open->bad = CONTROL_BAD_SUBSTITUTE;
	open->numa_node = -1;
	open->seed = 7;
	open->operation_count = 2;
	open->operations[0] = (struct control_operation){
		.code = OPERATION_RANDOM_RESIZED_CROP,
		.version = 1,
		.parameter.f = { 0.08f, 1.0f, 0.75f, 4.0f / 3.0f },
	};
	open->operations[0].parameter.u[4] = 32;
	open->operations[0].parameter.u[5] = 32;
	open->operations[0].parameter.u[6] = FILTER_BILINEAR;
	open->operations[1] = (struct control_operation){
		.code = OPERATION_HORIZONTAL_FLIP,
		.version = 1,
		.parameter.f = { 0.5f },
	};
}

void consumer_open(struct consumer *ret, struct pipeline *p, struct folder *f,
	const struct control_open_lane *open)
{
	struct lane_request request = { .open = open, .dataset = f->dataset, .job_key = 1 };
	char text[1024] = "";
	int fds[3];

	memset(ret, 0, sizeof(*ret));
	if (pipeline_lane_new(&ret->lane, p, &request, &ret->reply, fds, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	if (ring_map_open(&ret->map, fds[0], fds[1], text, sizeof(text)) < 0)
		fail_msg("%s", text);
	close(fds[0]);
	close(fds[1]);
	ret->doorbell = fds[2];
	ret->next = ret->reply.first;
}

bool consumer_take(struct consumer *c, struct ring_descriptor *ret)
{
	const struct ring_words *words = ring_map_words(&c->map);
	const struct ring_extent *images;
	const uint8_t *slot;
	uint32_t published;

	while ((int32_t)((published = ring_load_acquire(&words->published)) - (uint32_t)c->next) <
		0) {
		if (ring_load_acquire(&words->state) != RING_RUNNING) {
			if ((int32_t)(ring_load_acquire(&words->published) - (uint32_t)c->next) < 0)
				return false;
			break;
		}
		ring_store_seq(ring_map_waiting_word(&c->map), 1);
		if (ring_load_seq(&words->published) == published)
			ring_futex_wait(&words->published, published, 20000000);
		ring_store_seq(ring_map_waiting_word(&c->map), 0);
	}
	*ret = *ring_map_descriptor(&c->map, c->next);
	assert_int_equal(ret->number, c->next);
	slot = ring_map_slot(&c->map, c->next);
	images = &ret->fields[0];
	c->order_digest += ret->order_digest;
	c->pixel_digest += ret->pixel_digest;
	c->bytes_hash = XXH64(&ret->count, sizeof(ret->count), c->bytes_hash);
	c->bytes_hash = XXH64(slot + images->offset, images->bytes, c->bytes_hash);
	c->bytes_hash = XXH64(slot + ret->fields[1].offset, ret->fields[1].bytes, c->bytes_hash);
	memcpy(c->cursor, ret->cursor, sizeof(c->cursor));
	c->next++;
	return true;
}

void consumer_release(struct consumer *c, uint64_t n)
{
	ring_store_release(ring_map_release_word(&c->map, n), (uint32_t)n);
	lane_doorbell(c->lane);
}

bool consumer_next(struct consumer *c, struct ring_descriptor *ret)
{
	if (!consumer_take(c, ret))
		return false;
	consumer_release(c, ret->number);
	return true;
}

void consumer_close(struct consumer *c)
{
	ring_map_close(&c->map);
	close(c->doorbell);
	pipeline_lane_free(c->lane);
}
