/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are empty, no files, gone, stale, cut or unreadable: A65 A73 B27 B28 B29 B31. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "feeder/status.h"
#include "fixture.h"

struct trial {
	struct fixture fixture;
	struct reader_faults faults;
	struct reader_config config;
	struct reader *reader;
	unsigned int opened;
};

static void trial_init(struct trial *t)
{
	memset(t, 0, sizeof(*t));
	fixture_init(&t->fixture);
	reader_config_init(&t->config);
	t->config.faults = &t->faults;
}

static void trial_start(struct trial *t, enum reader_backend backend)
{
	t->reader = start(&t->fixture, backend, &t->config);
}

static void trial_end(struct trial *t)
{
	reader_free(t->reader);
	for (size_t i = 0; i < t->fixture.count; i++)
		item_give(&t->fixture.items[i]);
	fixture_deinit(&t->fixture, false);
}

static void expect(struct trial *t, const char *name, uint64_t length, int status)
{
	struct item *item = fixture_add(&t->fixture, name, length);
	int got = read_one(&t->fixture, t->reader, item);

	if (got != status)
		fail_msg("%s: %d (%s), not %d", name, got, item->request.fault.text, status);
	item_give(item);
}

static void a65_files_of_no_and_few_bytes(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;

		trial_init(&t);
		trial_start(&t, backend_of(b));
		fixture_write(&t.fixture, "0.jpg", 0, 1);
		expect(&t, "0.jpg", 0, FEEDER_STATUS_EMPTY);
		expect(&t, "0.jpg", 100, FEEDER_STATUS_EMPTY);
		fixture_write(&t.fixture, "1.jpg", 1, 1);
		fixture_write(&t.fixture, "2.jpg", 2, 1);
		fixture_write(&t.fixture, "3.jpg", 3, 1);
		expect(&t, "1.jpg", 1, FEEDER_STATUS_OK);
		expect(&t, "2.jpg", 2, FEEDER_STATUS_OK);
		expect(&t, "3.jpg", 3, FEEDER_STATUS_OK);
		expect(&t, "3.jpg", 0, FEEDER_STATUS_EMPTY);
		trial_end(&t);
	}
}

static void make_socket(const struct fixture *f, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", f->dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void a73_what_is_no_file_never_blocks(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;

		trial_init(&t);
		trial_start(&t, backend_of(b));
		assert_int_equal(mkdirat(t.fixture.tree.dirfd, "dir.jpg", 0700), 0);
		assert_int_equal(mkfifoat(t.fixture.tree.dirfd, "fifo.jpg", 0600), 0);
		assert_int_equal(symlinkat("gone", t.fixture.tree.dirfd, "dangling.jpg"), 0);
		assert_int_equal(symlinkat("fifo.jpg", t.fixture.tree.dirfd, "link.jpg"), 0);
		make_socket(&t.fixture, "socket.jpg");
		expect(&t, "dir.jpg", 10, FEEDER_STATUS_NOT_REGULAR);
		expect(&t, "fifo.jpg", 10, FEEDER_STATUS_NOT_REGULAR);
		expect(&t, "link.jpg", 10, FEEDER_STATUS_NOT_REGULAR);
		expect(&t, "socket.jpg", 10, FEEDER_STATUS_NOT_REGULAR);
		expect(&t, "dangling.jpg", 10, FEEDER_STATUS_MISSING);
		trial_end(&t);
	}
}

/* A stale handle in the middle of a read: the file is opened anew and read from its start. */
static void b27_a_stale_file_is_opened_again(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct reader_stats stats;
		struct trial t;

		trial_init(&t);
		t.faults.read = (struct reader_fault_error){ ESTALE, 1000, 1, 0 };
		t.faults.shorten = 1000;
		fixture_files(&t.fixture, 50, 50000, 1);
		trial_start(&t, backend_of(b));
		fixture_run(&t.fixture, t.reader);
		reader_stats(t.reader, &stats);
		assert_int_equal(stats.retries, 50);
		fixture_check(&t.fixture, 0);
		trial_end(&t);
	}
}

static void b27_a_replaced_file_is_changed_not_mixed(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;

		trial_init(&t);
		t.faults.read = (struct reader_fault_error){ ESTALE, 1000, 0, 0 };
		fixture_files(&t.fixture, 3, 50000, 1);
		t.fixture.items[1].request.mtime_ns--;
		trial_start(&t, backend_of(b));
		fixture_run(&t.fixture, t.reader);
		assert_int_equal(t.fixture.items[0].request.fault.error, ESTALE);
		assert_int_equal(t.fixture.items[1].request.fault.status, FEEDER_STATUS_CHANGED);
		assert_non_null(strstr(t.fixture.items[0].request.fault.text, "ESTALE"));
		trial_end(&t);
	}
}

/* The first opening gives one file, the second another of the same size. */
static int another_each_time(const struct read_tree *tree, const char *path)
{
	struct trial *t = tree->context;
	const char *name = t->opened++ == 0 ? "old" : "new";
	int fd = open(fixture_path(&t->fixture, name), O_RDONLY | O_CLOEXEC);

	(void)path;
	return fd < 0 ? -errno : fd;
}

static void b27_a_read_that_went_stale_halfway_starts_again(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;
		struct read_tree tree;
		struct item *whole, *item;

		trial_init(&t);
		fixture_write(&t.fixture, "old", 50000, 1);
		fixture_write(&t.fixture, "new", 50000, 2);
		assert_int_equal(symlinkat("/nowhere", t.fixture.tree.dirfd, "link"), 0);
		t.faults.only = "link";
		t.faults.shorten = 1000;
		t.faults.read = (struct reader_fault_error){ ESTALE, 1000, 1, 2 };
		tree = (struct read_tree){ t.fixture.tree.dirfd, another_each_time, &t };
		trial_start(&t, backend_of(b));
		whole = fixture_add(&t.fixture, "new", 50000);
		assert_int_equal(read_one(&t.fixture, t.reader, whole), 0);
		item = fixture_add(&t.fixture, "link", 50000);
		item->request.tree = &tree;
		assert_int_equal(read_one(&t.fixture, t.reader, item), 0);
		assert_int_equal(t.opened, 2);
		assert_memory_equal(item->request.bytes->data, whole->request.bytes->data, 50000);
		trial_end(&t);
	}
}

static void b28_an_error_that_passes_and_one_that_stays(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct reader_stats stats;
		struct trial t;

		trial_init(&t);
		t.faults.read = (struct reader_fault_error){ EIO, 1000, 1, 0 };
		fixture_files(&t.fixture, 20, 50000, 1);
		trial_start(&t, backend_of(b));
		fixture_run(&t.fixture, t.reader);
		fixture_check(&t.fixture, 0);
		reader_stats(t.reader, &stats);
		assert_int_equal(stats.retries, 20);
		reader_free(t.reader);

		t.faults.read.times = 0;
		t.config.retries = 2;
		trial_start(&t, backend_of(b));
		assert_int_equal(read_one(&t.fixture, t.reader, &t.fixture.items[0]),
			FEEDER_STATUS_READ_ERROR);
		assert_string_equal(t.fixture.items[0].request.fault.text,
			"EIO when reading, after 2 repetitions");
		trial_end(&t);
	}
}

static void b29_too_many_open_files_wait_for_one_another(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, ETIMEDOUT };

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct trial t;

		trial_init(&t);
		t.faults.open = (struct reader_fault_error){ errors[i / 2], 500, 2, 0 };
		fixture_files(&t.fixture, 40, 50000, 1);
		trial_start(&t, backend_of(i % 2));
		fixture_run(&t.fixture, t.reader);
		fixture_check(&t.fixture, 0);
		trial_end(&t);
	}
}

/* The descriptor under which this process has the file open. */
static int wait_until_open(const char *path)
{
	char name[64], target[256];

	for (;;) {
		for (int fd = 0; fd < 256; fd++) {
			ssize_t length;

			snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
			length = readlink(name, target, sizeof(target) - 1);
			if (length < 0)
				continue;
			target[length] = '\0';
			if (strcmp(target, path) == 0)
				return fd;
		}
		sleep_ms(1);
	}
}

/* A read that hangs after its file was opened and checked, until let go. */
static struct item *hang(struct trial *t, enum reader_backend backend)
{
	struct item *item;

	trial_init(t);
	t->faults.never = 1000;
	t->faults.never_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fixture_write(&t->fixture, "cut", 100000, 1);
	item = fixture_add(&t->fixture, "cut", 100000);
	trial_start(t, backend);
	item_submit(t->reader, item);
	return item;
}

static void let_go(struct trial *t)
{
	uint64_t one = 1;

	assert_int_equal(write(t->faults.never_fd, &one, sizeof(one)), sizeof(one));
	fixture_wait(&t->fixture);
	close(t->faults.never_fd);
}

/* The other half of never blocking: a regular file is not left with O_NONBLOCK. */
static void a73_nonblock_ends_with_the_opening(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;
		struct item *item = hang(&t, backend_of(b));
		int fd = wait_until_open(fixture_path(&t.fixture, "cut"));

		for (unsigned int i = 0; i < 5000 && (fcntl(fd, F_GETFL) & O_NONBLOCK); i++)
			sleep_ms(1);
		assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
		let_go(&t);
		assert_int_equal(item->request.fault.status, FEEDER_STATUS_OK);
		trial_end(&t);
	}
}

/* Cut between open and read. Were it mapped, this would be SIGBUS. */
static void b31_a_file_cut_while_it_is_read_ends_early(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < 2; b++) {
		struct trial t;
		struct item *item = hang(&t, backend_of(b));

		wait_until_open(fixture_path(&t.fixture, "cut"));
		assert_int_equal(truncate(fixture_path(&t.fixture, "cut"), 1000), 0);
		let_go(&t);
		assert_int_equal(item->request.fault.status, FEEDER_STATUS_SHORT_FILE);
		assert_string_equal(item->request.fault.text, "ends after 1000 of 100000 bytes");
		assert_int_equal(item->request.bytes->length, 0);
		trial_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a65_files_of_no_and_few_bytes),
		cmocka_unit_test(a73_what_is_no_file_never_blocks),
		cmocka_unit_test(a73_nonblock_ends_with_the_opening),
		cmocka_unit_test(b27_a_stale_file_is_opened_again),
		cmocka_unit_test(b27_a_replaced_file_is_changed_not_mixed),
		cmocka_unit_test(b27_a_read_that_went_stale_halfway_starts_again),
		cmocka_unit_test(b28_an_error_that_passes_and_one_that_stays),
		cmocka_unit_test(b29_too_many_open_files_wait_for_one_another),
		cmocka_unit_test(b31_a_file_cut_while_it_is_read_ends_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
