/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader's tests share. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "base/clock.h"

#define ITEMS_MAX 4096

size_t long_or(size_t many, size_t few)
{
	const char *wanted = getenv("FEEDER_LONG");

	return wanted && *wanted && *wanted != '0' ? many : few;
}

void sleep_ms(unsigned int ms)
{
	faults_sleep(ms * NS_PER_MS);
}

void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/feeder-reader-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->tree.dirfd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->tree.dirfd >= 0);
	assert_int_equal(bytes_pool_new(&f->pool, (size_t)1 << 30), 0);
	f->items = calloc(ITEMS_MAX, sizeof(*f->items));
	assert_non_null(f->items);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->answered, NULL);
}

void fixture_deinit(struct fixture *f, bool leaks)
{
	DIR *dir = opendir(f->dir);
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, entry->d_type == DT_DIR ? AT_REMOVEDIR : 0);
	closedir(dir);
	assert_int_equal(rmdir(f->dir), 0);
	close(f->tree.dirfd);
	if (leaks)
		return;
	assert_int_equal(bytes_pool_out(f->pool), 0);
	bytes_pool_free(f->pool);
	free(f->items);
}

const char *fixture_path(const struct fixture *f, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return path;
}

static uint64_t next(uint64_t *state)
{
	*state += 0x9E3779B97F4A7C15u;
	return XXH64(state, sizeof(*state), 0);
}

static void fill(unsigned char *data, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = next(&seed);

		memcpy(data + i, &word, size - i < 8 ? size - i : 8);
	}
}

void fixture_write(const struct fixture *f, const char *name, size_t size, uint64_t seed)
{
	unsigned char *data = malloc(size + 1);
	int fd = open(fixture_path(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && data);
	fill(data, size, seed);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
	free(data);
}

static void done(struct read_request *req)
{
	struct item *item = req->context;
	struct fixture *f = item->fixture;

	pthread_mutex_lock(&f->lock);
	item->answers++;
	if (--f->outstanding == 0)
		pthread_cond_broadcast(&f->answered);
	pthread_mutex_unlock(&f->lock);
}

struct item *fixture_add(struct fixture *f, const char *name, uint64_t length)
{
	struct item *item = &f->items[f->count++];

	assert_true(f->count <= ITEMS_MAX);
	item->fixture = f;
	snprintf(item->path, sizeof(item->path), "%s", name);
	item->size = length;
	item->request = (struct read_request){
		.tree = &f->tree,
		.path = item->path,
		.length = length,
		.mtime_ns = INT64_MIN,
		.done = done,
		.context = item,
	};
	return item;
}

void fixture_files(struct fixture *f, size_t count, size_t most, uint64_t seed)
{
	uint64_t state = seed;
	unsigned char *data = malloc(most + 8);

	assert_non_null(data);
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = next(&state) % 19, key = next(&state);
		size_t size = 1 + (size_t)(next(&state) % (most >> bits > 0 ? most >> bits : 1));
		char name[32];
		struct item *item;
		struct stat st;

		snprintf(name, sizeof(name), "f%04zu.bin", i);
		fixture_write(f, name, size, key);
		item = fixture_add(f, name, size);
		assert_int_equal(stat(fixture_path(f, name), &st), 0);
		item->request.file_size = size;
		item->request.mtime_ns =
			(int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec;
		fill(data, size, key);
		item->digest = XXH64(data, size, 0);
	}
	free(data);
}

void item_submit(struct reader *r, struct item *item)
{
	struct fixture *f = item->fixture;
	struct bytes *bytes = bytes_take(f->pool, item->request.length);

	assert_non_null(bytes);
	memset(bytes->data, POISON, bytes->capacity + BYTES_TAIL);
	item->request.bytes = bytes;
	item->answers = 0;
	pthread_mutex_lock(&f->lock);
	f->outstanding++;
	pthread_mutex_unlock(&f->lock);
	reader_submit(r, &item->request);
}

void fixture_wait(struct fixture *f)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	pthread_mutex_lock(&f->lock);
	while (f->outstanding > 0) {
		if (pthread_cond_timedwait(&f->answered, &f->lock, &limit) == ETIMEDOUT) {
			fprintf(stderr, "%zu reads were never answered\n", f->outstanding);
			abort();
		}
	}
	pthread_mutex_unlock(&f->lock);
}

void item_give(struct item *item)
{
	bytes_give(item->fixture->pool, item->request.bytes);
	item->request.bytes = NULL;
}

bool item_is_whole(const struct item *item)
{
	const struct bytes *b = item->request.bytes;
	static const unsigned char zeros[BYTES_TAIL];

	if (item->request.fault.status != 0 || !b || b->length != item->request.length)
		return false;
	return memcmp(b->data + b->length, zeros, BYTES_TAIL) == 0 &&
	       XXH64(b->data, b->length, 0) == item->digest;
}

static void check_item(struct item *item, int other_status)
{
	const struct read_request *req = &item->request;

	if (item->answers == 1 && item_is_whole(item)) {
		item_give(item);
		return;
	}
	if (item->answers == 1 && other_status != 0 && req->fault.status == other_status &&
		(!req->bytes || req->bytes->length == 0)) {
		item_give(item);
		return;
	}
	fail_msg("%s: %u answers, status %d (%s)%s", item->path, item->answers, req->fault.status,
		req->fault.text, req->fault.status == 0 ? ", wrong bytes" : "");
}

void fixture_check(struct fixture *f, int other_status)
{
	for (size_t i = 0; i < f->count; i++)
		check_item(&f->items[i], other_status);
}

void fixture_run(struct fixture *f, struct reader *r)
{
	for (size_t i = 0; i < f->count; i++)
		item_submit(r, &f->items[i]);
	fixture_wait(f);
}

enum reader_backend backend_of(unsigned int i)
{
	static enum reader_backend first = READER_AUTO;
	struct reader_config config;
	struct reader *r;
	char text[256];

	if (i > 0)
		return READER_PREAD;
	if (first == READER_AUTO) {
		reader_config_init(&config);
		config.backend = first = READER_URING;
		if (reader_new(&r, &config, text, sizeof(text)) == 0) {
			reader_free(r);
		} else {
			print_message("testing pread only: %s\n", text);
			first = READER_PREAD;
		}
	}
	return first;
}

void need_uring(void)
{
	if (backend_of(0) != READER_URING)
		skip();
}

struct reader *start(struct fixture *f, enum reader_backend backend, struct reader_config *config)
{
	struct reader *r = NULL;
	char text[256];

	config->backend = backend;
	config->give = f->pool;
	if (reader_new(&r, config, text, sizeof(text)) < 0)
		fail_msg("no reader: %s", text);
	return r;
}

int read_one(struct fixture *f, struct reader *r, struct item *item)
{
	item_submit(r, item);
	fixture_wait(f);
	assert_int_equal(item->answers, 1);
	return item->request.fault.status;
}

int in_child(int (*fn)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

unsigned int count_threads(const char *prefix)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int count = 0;
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		count += fgets(name, sizeof(name), file) &&
			 strncmp(name, prefix, strlen(prefix)) == 0;
		fclose(file);
	}
	closedir(dir);
	return count;
}
