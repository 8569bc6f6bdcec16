/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazards of scanning: B21, B39, B40. statx and readdir are replaced here, to count them, to make
 * them slow, and to withhold what a file system need not say; the clock, so that directories made
 * just now count as old ones.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/source/tree.h"

static time_t ahead;
static unsigned int stat_sleep_us;
static unsigned int stats, stats_now, stats_at_once, reads; /* atomic */
static bool types_withheld;
static time_t all_times; /* every file system time stamp, unless 0: as coarse as can be */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_REALTIME)
		ret->tv_sec += ahead;
	return r;
}

int statx(
	int fd, const char *restrict path, int flags, unsigned int mask, struct statx *restrict ret)
{
	unsigned int now = __atomic_add_fetch(&stats_now, 1, __ATOMIC_SEQ_CST);
	unsigned int most = __atomic_load_n(&stats_at_once, __ATOMIC_SEQ_CST);
	int r;

	while (now > most && !__atomic_compare_exchange_n(&stats_at_once, &most, now, false,
				     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	__atomic_add_fetch(&stats, 1, __ATOMIC_SEQ_CST);
	if (stat_sleep_us)
		usleep(stat_sleep_us);
	r = (int)syscall(SYS_statx, fd, path, flags, mask, ret);
	if (all_times)
		ret->stx_mtime = ret->stx_ctime = (struct statx_timestamp){ .tv_sec = all_times };
	__atomic_sub_fetch(&stats_now, 1, __ATOMIC_SEQ_CST);
	return r;
}

static struct dirent *(*real_readdir)(DIR *);

__attribute__((constructor)) static void find_readdir(void)
{
	void *found = dlsym(RTLD_NEXT, "readdir64"); /* the headers' name with 64-bit offsets */

	memcpy(&real_readdir, &found, sizeof(found));
}

struct dirent *readdir(DIR *dir)
{
	struct dirent *d = real_readdir(dir);

	__atomic_add_fetch(&reads, 1, __ATOMIC_SEQ_CST);
	if (d && types_withheld)
		d->d_type = DT_UNKNOWN;
	return d;
}

static int scan_setup(void **state)
{
	ahead = 0;
	stat_sleep_us = 0;
	types_withheld = false;
	all_times = 0;
	return tree_setup(state);
}

static void forget_counts(void)
{
	stats = stats_at_once = reads = 0;
}

static void fill(struct tree *t, int classes, int files)
{
	char name[64];

	for (int c = 0; c < classes; c++)
		for (int f = 0; f < files; f++) {
			snprintf(name, sizeof(name), "c%02d/%03d.jpg", c, f);
			tree_file(t, name, "12");
		}
}

/* Exit status of a process that opens: 0 it scanned, 1 it used an index, 2 it failed. */
static int open_status(struct tree *t)
{
	struct dataset *d;
	int status;

	if (tree_open_at(t, "", &d) < 0)
		return 2;
	status = dataset_length(d) == 40 ? dataset_index_used(d) : 2;
	dataset_unref(d);
	return status;
}

static void b21_of_many_one_scans_and_the_others_wait(void **state)
{
	enum { PROCESSES = 5 };
	struct tree *t = *state;
	int counts[3] = { 0 };
	struct dirent *e;
	DIR *dir;

	fill(t, 4, 10);
	stat_sleep_us = 2000;
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			_exit(open_status(t));
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 3);
		counts[WEXITSTATUS(status)]++;
	}
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], PROCESSES - 1);
	dir = opendir(t->cache);
	while ((e = readdir(dir)))
		assert_null(strstr(e->d_name, ".tmp-"));
	closedir(dir);
}

static void b39_one_stat_a_file_and_later_one_a_directory(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	ahead = 3600;
	fill(t, 10, 20);
	for (int i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof(name), "c%02d/meta.json", i); /* no sample: no stat */
		tree_file(t, name, "{}");
	}
	forget_counts();
	stat_sleep_us = 1000;
	d = tree_open(t);
	stat_sleep_us = 0;
	assert_int_equal(dataset_length(d), 200);
	assert_in_range(stats, 200, 200 + 2 * 10 + 8);
	assert_in_range(stats_at_once, 3, SIZE_MAX); /* they wait for the server together */
	dataset_unref(d);
	forget_counts();
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_in_range(stats, 11, 11 + 8);
	assert_int_equal(reads, 0);
	dataset_unref(d);
}

struct watch {
	struct tree *tree;
	unsigned int calls;
	uint64_t files;
	bool end;
};

static bool watch_progress(void *context, uint64_t files, uint64_t directories)
{
	struct watch *w = context;

	assert_true(files >= w->files);
	assert_true(directories <= 11);
	w->files = files;
	w->calls++;
	return w->end;
}

static void b39_a_slow_scan_tells_and_can_be_ended(void **state)
{
	struct tree *t = *state;
	struct watch w = { .tree = t };
	struct dataset *d = NULL;

	fill(t, 8, 20);
	t->options.progress = watch_progress;
	t->options.warning = NULL;
	t->options.context = &w;
	stat_sleep_us = 15000;
	assert_int_equal(tree_open_at(t, "", &d), 0);
	assert_true(w.calls > 0);
	dataset_unref(d);
	w = (struct watch){ .tree = t, .end = true };
	t->options.rebuild = true;
	tree_refused(t, "", -ECANCELED, t->data, NULL);
	assert_int_equal(w.calls, 1);
	w.end = false; /* nothing is left that would be in the way */
	stat_sleep_us = 0;
	assert_int_equal(tree_open_at(t, "", &d), 0);
	assert_int_equal(dataset_length(d), 160);
	dataset_unref(d);
}

static void b40_without_types_the_list_is_the_same(void **state)
{
	uint8_t fingerprint[FINGERPRINT_SIZE];
	struct tree *t = *state;
	char warnings[sizeof(t->warnings)];
	struct dataset *d;

	fill(t, 3, 3);
	tree_file(t, "c00/sub.jpg/1.jpg", "1");
	tree_file(t, "c00/.hidden/1.jpg", "1");
	tree_file(t, "c00/.notes", "1");
	tree_file(t, "c01/.h.jpg", "1");
	tree_file(t, "readme", "1");
	tree_link(t, "../c00", "c01/all");
	tree_link(t, "000.jpg", "c02/link.jpg");
	tree_link(t, "nothing", "c02/gone.png");
	assert_int_equal(mkfifo(tree_at(t, "c02/fifo.jpg"), 0600), 0);
	t->options.cache_dir = NULL;
	d = tree_open(t);
	assert_int_equal(dataset_length(d), 17);
	memcpy(fingerprint, dataset_fingerprint(d), sizeof(fingerprint));
	memcpy(warnings, t->warnings, sizeof(warnings));
	dataset_unref(d);
	types_withheld = true;
	forget_counts();
	d = tree_open(t);
	assert_true(reads > 0);
	assert_memory_equal(fingerprint, dataset_fingerprint(d), sizeof(fingerprint));
	assert_string_equal(warnings, t->warnings);
	dataset_unref(d);
}

/* A change within the granularity of the file system's time stamps moves none of them. */
static void b38_times_that_stand_still_prove_nothing(void **state)
{
	struct tree *t = *state;
	struct dataset *d = NULL;

	fill(t, 2, 3);
	all_times = time(NULL);
	dataset_unref(tree_open(t));
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	dataset_unref(d);
	rename(tree_at(t, "c00/001.jpg"), tree_at(t, "c00/100.jpg"));
	d = tree_open(t);
	assert_false(dataset_index_used(d));
	dataset_unref(d);
	tree_file(t, "list.txt", "c00/000.jpg\t0\n");
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	dataset_unref(d);
	tree_file(t, "list.txt", "c00/000.jpg\t1\n");
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	assert_samples(d, SAMPLES("c00/000.jpg 1"));
	dataset_unref(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scan_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(b21_of_many_one_scans_and_the_others_wait),
		TEST(b38_times_that_stand_still_prove_nothing),
		TEST(b39_one_stat_a_file_and_later_one_a_directory),
		TEST(b39_a_slow_scan_tells_and_can_be_ended),
		TEST(b40_without_types_the_list_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
