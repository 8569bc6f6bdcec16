/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader's tests share: a directory of files, requests over poisoned buffers, checks. */
#ifndef TESTS_READER_FIXTURE_H
#define TESTS_READER_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "reader/faults.h"
#include "reader/reader.h"

#define POISON 0xA5

struct item {
	struct read_request request;
	struct fixture *fixture;
	char path[64];
	uint64_t size;
	int64_t mtime_ns;
	uint64_t digest; /* XXH64 of the extent */
	unsigned int answers;
};

struct fixture {
	char dir[64];
	struct read_tree tree;
	struct bytes_pool *pool;
	struct item *items;
	size_t count;

	pthread_mutex_t lock;
	pthread_cond_t answered;
	size_t outstanding; /* guarded by lock */
};

/* FEEDER_LONG=1 asks for the larger numbers. */
size_t long_or(size_t many, size_t few);

void fixture_init(struct fixture *f);
/* Removes the directory. Buffers may still be out if `leaks`: the pool then stays. */
void fixture_deinit(struct fixture *f, bool leaks);

/* A path inside the directory, in a static buffer. */
const char *fixture_path(const struct fixture *f, const char *name);
/* A file of so many bytes that depend on seed. */
void fixture_write(const struct fixture *f, const char *name, size_t size, uint64_t seed);
/* Adds count files f0000.bin… of 1..most bytes, small ones more often. */
void fixture_files(struct fixture *f, size_t count, size_t most, uint64_t seed);
/* Adds one item for an existing file: its whole length; size and mtime are not checked. */
struct item *fixture_add(struct fixture *f, const char *name, uint64_t length);

/* Takes a poisoned buffer and submits. */
void item_submit(struct reader *r, struct item *item);
void fixture_wait(struct fixture *f); /* for all answers; fails the test after a minute */
/* Submits all and waits. */
void fixture_run(struct fixture *f, struct reader *r);
void item_give(struct item *item);

/* status is 0, every byte and the zeroed tail are right. */
bool item_is_whole(const struct item *item);
/* Answered once, either whole or with this status and no bytes; then gives the buffers back. */
void fixture_check(struct fixture *f, int other_status);

/*
 * The back end number i: 0 is io_uring, or pread again where io_uring is not to be had (said once,
 * with the cause), 1 is pread.
 */
enum reader_backend backend_of(unsigned int i);
/* Skips the test where there is no io_uring. */
void need_uring(void);
struct reader *start(struct fixture *f, enum reader_backend backend, struct reader_config *config);
/* One request, run alone: its status; the text is left in the item. */
int read_one(struct fixture *f, struct reader *r, struct item *item);

/* Runs fn in a child process; its return value, or -1 if it died. */
int in_child(int (*fn)(void *), void *arg);
/* Threads of this process whose name begins so. */
unsigned int count_threads(const char *prefix);
void sleep_ms(unsigned int ms);

#endif
