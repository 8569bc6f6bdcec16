/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A measurement, not a test: CPU time per file of both back ends and of a plain loop of open,
 * read and close, interleaved, on 2,000 files of about 90 kB in the page cache. Medians of 5.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fixture.h"

#define FILES  2000
#define ROUNDS 5
#define BATCH  200 /* submitted together, as a batch of tickets would be */

/* As many buffers as a batch has in flight, for the plain loop too: they are not in the cache. */
static void take_buffers(struct fixture *f, struct bytes **buffers)
{
	for (size_t i = 0; i < BATCH; i++) {
		buffers[i] = bytes_take(f->pool, 100000);
		memset(buffers[i]->data, 0, 100000);
	}
}

static void give_buffers(struct fixture *f, struct bytes **buffers)
{
	for (size_t i = 0; i < BATCH; i++)
		bytes_give(f->pool, buffers[i]);
}

static double plain_loop(struct fixture *f)
{
	struct bytes *buffers[BATCH];
	uint64_t before;

	take_buffers(f, buffers);
	before = process_cpu_ns();
	for (size_t i = 0; i < f->count; i++) {
		int fd = openat(f->tree.dirfd, f->items[i].path, O_RDONLY | O_CLOEXEC);
		ssize_t got = read(fd, buffers[i % BATCH]->data, f->items[i].size);

		assert_int_equal(got, (ssize_t)f->items[i].size);
		close(fd);
	}
	before = process_cpu_ns() - before;
	give_buffers(f, buffers);
	return (double)before / 1e3 / (double)f->count;
}

static double through(struct fixture *f, enum reader_backend backend)
{
	struct bytes *buffers[BATCH];
	struct reader_config config;
	struct reader *r;
	uint64_t before;

	reader_config_init(&config);
	r = start(f, backend, &config);
	take_buffers(f, buffers);
	before = process_cpu_ns();
	for (size_t i = 0; i < f->count; i += BATCH) {
		pthread_mutex_lock(&f->lock);
		f->outstanding = BATCH;
		pthread_mutex_unlock(&f->lock);
		for (size_t k = 0; k < BATCH; k++) {
			f->items[i + k].request.bytes = buffers[k];
			reader_submit(r, &f->items[i + k].request);
		}
		fixture_wait(f);
	}
	before = process_cpu_ns() - before;
	for (size_t i = 0; i < f->count; i++)
		assert_int_equal(f->items[i].request.fault.status, 0);
	give_buffers(f, buffers);
	reader_free(r);
	return (double)before / 1e3 / (double)f->count;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	double us[3][ROUNDS];
	struct fixture f;

	fixture_init(&f);
	for (unsigned int i = 0; i < FILES; i++) {
		size_t size = 80000 + i * 7919 % 20000;
		char name[32];

		snprintf(name, sizeof(name), "f%04u.bin", i);
		fixture_write(&f, name, size, i);
		fixture_add(&f, name, size);
	}
	plain_loop(&f);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		us[0][i] = plain_loop(&f);
		us[1][i] = through(&f, backend_of(0));
		us[2][i] = through(&f, READER_PREAD);
	}
	for (unsigned int k = 0; k < 3; k++)
		qsort(us[k], ROUNDS, sizeof(double), by_value);
	printf("CPU us per file: plain loop %.1f, io_uring %.1f (x%.2f), pread %.1f (x%.2f)\n",
		us[0][ROUNDS / 2], us[1][ROUNDS / 2], us[1][ROUNDS / 2] / us[0][ROUNDS / 2],
		us[2][ROUNDS / 2], us[2][ROUNDS / 2] / us[0][ROUNDS / 2]);
	fixture_deinit(&f, false);
	return 0;
}
