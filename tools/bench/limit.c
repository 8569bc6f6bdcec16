/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: the crops that feeder delivered, decoded by libjpeg-turbo and nothing else
 * (decode/limit.h). Files are read into memory first, outside of every clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "bench/bench.h"
#include "decode/limit.h"

#define CROPS_MAX 4096 /* a round */

struct crop {
	uint64_t id;
	uint8_t *bytes;
	size_t size;
	struct box box;
};

struct limit_crops {
	int directory;
	unsigned int threads;
	unsigned int count;
	struct crop crops[CROPS_MAX];
};

/* The directory that sample paths are relative to: the dataset, or that of a list file. */
static int open_directory(const char *dataset)
{
	int fd = open(dataset, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char parent[4096];
	char *slash;

	if (fd >= 0)
		return fd;
	snprintf(parent, sizeof(parent), "%s", dataset);
	slash = strrchr(parent, '/');
	if (slash)
		*(slash == parent ? slash + 1 : slash) = '\0';
	return open(slash ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

struct limit_crops *limit_crops_new(const char *dataset, unsigned int threads)
{
	struct limit_crops *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->threads = threads ? threads : 1;
	c->directory = open_directory(dataset);
	return c;
}

static void forget(struct limit_crops *c)
{
	for (unsigned int i = 0; i < c->count; i++) {
		free(c->crops[i].bytes);
	}
	memset(c->crops, 0, c->count * sizeof(c->crops[0]));
	c->count = 0;
}

void limit_crops_free(struct limit_crops *c)
{
	if (!c)
		return;
	forget(c);
	fd_close(c->directory);
	free(c);
}

int limit_crops_add(
	struct limit_crops *c, struct feeder_lane *lane, const struct feeder_batch *batch)
{
	for (uint32_t i = 0; i < batch->count && c->count < CROPS_MAX; i++) {
		struct feeder_place place;
		int r = feeder_batch_place(lane, batch->number, i, &place);

		if (r < 0)
			return r;
		if (!place.valid)
			continue;
		c->crops[c->count++] = (struct crop){
			.id = place.id,
			.box = { place.box_x, place.box_y, place.box_w, place.box_h },
		};
	}
	return 0;
}

static int load(int directory, struct feeder_lane *lane, struct crop *crop)
{
	CLEANUP(fd_closep) int fd = -1;
	char path[4096];
	struct stat st;
	size_t got = 0;
	int r = feeder_sample_path(lane, crop->id, path, sizeof(path));

	if (r < 0)
		return r;
	fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	crop->bytes = calloc(1, (size_t)st.st_size + BYTES_TAIL);
	if (!crop->bytes)
		return -ENOMEM;
	while (got < (size_t)st.st_size) {
		ssize_t n = read(fd, crop->bytes + got, (size_t)st.st_size - got);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	crop->size = got;
	return 0;
}

struct limit_thread {
	struct limit_crops *crops;
	unsigned int first;
	pthread_t thread;
	uint64_t cpu_ns;
	unsigned int images;
	int error;
};

static void *limit_main(void *arg)
{
	struct limit_thread *t = arg;
	struct limit_crops *c = t->crops;
	struct limit *limit;
	uint64_t start;

	t->error = limit_new(&limit);
	if (t->error < 0)
		return NULL;
	/* one picture first: tables and pools are warm, as feeder's are */
	if (t->first < c->count)
		limit_region(limit, c->crops[t->first].bytes, c->crops[t->first].size,
			&c->crops[t->first].box);
	start = thread_cpu_ns();
	for (unsigned int i = t->first; i < c->count; i += c->threads) {
		const struct crop *crop = &c->crops[i];

		if (limit_region(limit, crop->bytes, crop->size, &crop->box) == 0)
			t->images++;
	}
	t->cpu_ns = thread_cpu_ns() - start;
	limit_free(limit);
	return NULL;
}

double limit_crops_run(struct limit_crops *c, struct feeder_lane *lane)
{
	struct limit_thread *threads = calloc(c->threads, sizeof(*threads));
	uint64_t cpu_ns = 0, images = 0;
	int error = threads ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < c->count && error == 0; i++)
		error = load(c->directory, lane, &c->crops[i]);
	if (error < 0) {
		fprintf(stderr, "feeder-bench: reading the samples for --limit failed: %s\n",
			strerror(-error));
		free(threads);
		return -1.0;
	}
	for (unsigned int i = 0; i < c->threads; i++) {
		threads[i].crops = c;
		threads[i].first = i;
		if (pthread_create(&threads[i].thread, NULL, limit_main, &threads[i]) != 0)
			threads[i].error = -EAGAIN;
	}
	for (unsigned int i = 0; i < c->threads; i++) {
		if (threads[i].error != -EAGAIN)
			pthread_join(threads[i].thread, NULL);
		cpu_ns += threads[i].cpu_ns;
		images += threads[i].images;
	}
	free(threads);
	forget(c);
	return cpu_ns ? (double)images * 1e9 / (double)cpu_ns : 0.0;
}
