/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of file gives, the same on both back ends. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "fixture.h"
#include "feeder/status.h"

struct state {
	struct fixture fixture;
	struct reader *reader;
};

static int setup(void **state, enum reader_backend backend)
{
	struct state *s = calloc(1, sizeof(*s));
	struct reader_config config;

	fixture_init(&s->fixture);
	reader_config_init(&config);
	s->reader = start(&s->fixture, backend, &config);
	*state = s;
	return 0;
}

static int setup_uring(void **state)
{
	return setup(state, backend_of(0));
}

static int setup_pread(void **state)
{
	return setup(state, READER_PREAD);
}

static int teardown(void **state)
{
	struct state *s = *state;

	reader_free(s->reader);
	for (size_t i = 0; i < s->fixture.count; i++)
		item_give(&s->fixture.items[i]);
	fixture_deinit(&s->fixture, false);
	free(s);
	return 0;
}

static void expect(struct state *s, struct item *item, int status, const char *text)
{
	int got = read_one(&s->fixture, s->reader, item);

	if (got != status || (text && strcmp(item->request.fault.text, text) != 0))
		fail_msg("%s: status %d (%s), not %d (%s)", item->path, got,
			item->request.fault.text, status, text ? text : "any");
	if (status != 0)
		assert_int_equal(item->request.bytes->length, 0);
	assert_true(item->request.done_ns >= item->request.started_ns);
	item_give(item);
}

static void whole_files_and_extents(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct reader_stats stats;
	uint64_t total = 0;

	fixture_files(f, 40, 300000, 1);
	fixture_run(f, s->reader);
	for (size_t i = 0; i < f->count; i++)
		total += f->items[i].size;
	fixture_check(f, 0);
	reader_stats(s->reader, &stats);
	assert_int_equal(stats.submitted, 40);
	assert_int_equal(stats.completed, 40);
	assert_int_equal(stats.bytes, total);
	assert_int_equal(stats.in_flight, 0);
	assert_int_equal(stats.overflow, 0);
	assert_true(stats.cpu_ns > 0);
}

static void a_damaged_byte_is_seen_by_these_tests(void **state)
{
	struct state *s = *state;
	struct item *item;

	fixture_files(&s->fixture, 1, 5000, 3);
	item = &s->fixture.items[0];
	assert_int_equal(read_one(&s->fixture, s->reader, item), 0);
	assert_true(item_is_whole(item));
	item->request.bytes->data[item->size - 1] ^= 1;
	assert_false(item_is_whole(item));
	item_give(item);
}

static void changed_files(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct item *item;

	fixture_files(f, 3, 5000, 7);
	item = &f->items[0];
	item->request.file_size++;
	expect(s, item, FEEDER_STATUS_CHANGED, NULL);
	item = &f->items[1];
	item->request.mtime_ns--;
	expect(s, item, FEEDER_STATUS_CHANGED, "it was modified after it was indexed");
	item = &f->items[2];
	fixture_write(f, "new", item->size + 1, 8);
	assert_int_equal(renameat(f->tree.dirfd, "new", f->tree.dirfd, item->path), 0);
	expect(s, item, FEEDER_STATUS_CHANGED, NULL);
	assert_int_equal(truncate(fixture_path(f, item->path), 0), 0);
	expect(s, item, FEEDER_STATUS_EMPTY, NULL);
}

static void files_that_end_early(void **state)
{
	struct state *s = *state;
	struct item *item;

	fixture_write(&s->fixture, "short", 4096, 1);
	expect(s, fixture_add(&s->fixture, "short", 93120), FEEDER_STATUS_SHORT_FILE,
		"ends after 4096 of 93120 bytes");
	item = fixture_add(&s->fixture, "short", 10);
	item->request.offset = 5000;
	expect(s, item, FEEDER_STATUS_SHORT_FILE, "ends after 0 of 10 bytes");
}

static void paths_that_lead_nowhere(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	static char longest[PATH_MAX + 2];
	struct item *item;

	memset(longest, 'x', PATH_MAX);
	fixture_write(f, "file", 10, 1);
	assert_int_equal(symlinkat("loop", f->tree.dirfd, "loop"), 0);
	expect(s, fixture_add(f, "absent", 1), FEEDER_STATUS_MISSING, "ENOENT when opening");
	expect(s, fixture_add(f, "file/x", 1), FEEDER_STATUS_MISSING, "ENOTDIR when opening");
	expect(s, fixture_add(f, "loop", 1), FEEDER_STATUS_MISSING, "ELOOP when opening");
	expect(s, fixture_add(f, "../x", 1), FEEDER_STATUS_OUTSIDE_ROOT, NULL);
	expect(s, fixture_add(f, "/etc/passwd", 1), FEEDER_STATUS_OUTSIDE_ROOT, NULL);
	item = fixture_add(f, "", 1);
	item->request.path = longest;
	expect(s, item, FEEDER_STATUS_MISSING, NULL);
}

static const char *outside_path;

static int outside_allows(const struct read_tree *tree, const char *path)
{
	int fd;

	assert_ptr_equal(tree->context, &outside_path);
	assert_string_equal(path, "out");
	fd = open(outside_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int outside_refuses(const struct read_tree *tree, const char *path)
{
	(void)tree;
	(void)path;
	return -EXDEV;
}

static void links(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct read_tree allowing = { f->tree.dirfd, outside_allows, &outside_path };
	struct read_tree refusing = { f->tree.dirfd, outside_refuses, NULL };
	struct item *item;

	fixture_files(f, 1, 5000, 5);
	assert_int_equal(symlinkat("f0000.bin", f->tree.dirfd, "in"), 0);
	assert_int_equal(symlinkat("/proc/self/exe", f->tree.dirfd, "out"), 0);
	assert_int_equal(symlinkat("/nowhere/at/all", f->tree.dirfd, "off"), 0);
	outside_path = "/proc/self/exe";

	item = fixture_add(f, "in", f->items[0].size);
	item->digest = f->items[0].digest;
	assert_int_equal(read_one(f, s->reader, item), 0);
	assert_true(item_is_whole(item));
	item_give(item);

	item = fixture_add(f, "out", 4);
	item->digest = XXH64("\177ELF", 4, 0);
	expect(s, item, FEEDER_STATUS_OUTSIDE_ROOT, NULL);
	item->request.tree = &refusing;
	expect(s, item, FEEDER_STATUS_OUTSIDE_ROOT, NULL);
	item->request.tree = &allowing;
	assert_int_equal(read_one(f, s->reader, item), 0);
	assert_true(item_is_whole(item));
	item_give(item);
	outside_path = "/nowhere/at/all";
	expect(s, item, FEEDER_STATUS_MISSING, NULL);
}

/* The tree's descriptor is the file: an O_PATH one, and one for reading. */
static void empty_path_is_the_tree_itself(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;
	struct item *item;

	fixture_files(f, 1, 5000, 5);
	for (unsigned int i = 0; i < 2; i++) {
		struct read_tree tree = { -1, NULL, NULL };

		tree.dirfd = open(fixture_path(f, "f0000.bin"), i ? O_RDONLY : O_PATH);
		assert_true(tree.dirfd >= 0);
		item = fixture_add(f, "", f->items[0].size);
		item->digest = f->items[0].digest;
		item->request.tree = &tree;
		assert_int_equal(read_one(f, s->reader, item), 0);
		assert_true(item_is_whole(item));
		item_give(item);
		close(tree.dirfd);
	}
}

static void no_permission(void **state)
{
	struct state *s = *state;
	struct fixture *f = &s->fixture;

	fixture_write(f, "secret", 10, 1);
	assert_int_equal(fchmodat(f->tree.dirfd, "secret", 0, 0), 0);
	/* Root reads it all the same. */
	expect(s, fixture_add(f, "secret", 10),
		access(fixture_path(f, "secret"), R_OK) == 0 ? 0 : FEEDER_STATUS_NO_PERMISSION,
		NULL);
}

/* Kernel files have no FMODE_NOWAIT: io_uring reads them in a worker. */
static void file_systems_that_cannot_read_without_waiting(void **state)
{
	static const char *const candidates[] = { "/sys/kernel/notes", "/sys/kernel/btf/vmlinux" };
	struct state *s = *state;
	struct read_tree tree = { -1, NULL, NULL };
	struct stat st;
	struct item *item;

	for (unsigned int i = 0; i < 2 && tree.dirfd < 0; i++)
		tree.dirfd = open(candidates[i], O_RDONLY | O_CLOEXEC);
	if (tree.dirfd < 0) {
		print_message("no file in /sys/kernel to read\n");
		skip();
	}
	assert_int_equal(fstat(tree.dirfd, &st), 0);
	item = fixture_add(&s->fixture, "", (uint64_t)st.st_size);
	item->request.tree = &tree;
	assert_int_equal(read_one(&s->fixture, s->reader, item), 0);
	assert_int_equal(item->request.bytes->length, st.st_size);
	item_give(item);
	close(tree.dirfd);
}

static void a_buffer_that_is_too_small_is_our_fault(void **state)
{
	struct state *s = *state;
	struct item *item = fixture_add(&s->fixture, "x", 10);

	item_submit(s->reader, item);
	fixture_wait(&s->fixture);
	item_give(item);
	item->request.bytes = bytes_take(s->fixture.pool, 10);
	item->request.length = item->request.bytes->capacity + 1;
	s->fixture.outstanding = 1;
	item->answers = 0;
	reader_submit(s->reader, &item->request);
	fixture_wait(&s->fixture);
	assert_int_equal(item->request.fault.status, FEEDER_STATUS_INTERNAL);
}

#define BOTH(test)                                                    \
	cmocka_unit_test_setup_teardown(test, setup_uring, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_pread, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(whole_files_and_extents),
		BOTH(a_damaged_byte_is_seen_by_these_tests),
		BOTH(changed_files),
		BOTH(files_that_end_early),
		BOTH(paths_that_lead_nowhere),
		BOTH(links),
		BOTH(empty_path_is_the_tree_itself),
		BOTH(no_permission),
		BOTH(file_systems_that_cannot_read_without_waiting),
		BOTH(a_buffer_that_is_too_small_is_our_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
