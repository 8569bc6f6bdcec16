/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index files: used while they are the dataset, and not a moment longer; verdicts beside them.
 * The clock is put forward here, so that directories made just now count as old ones.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "source/image.h"
#include "tests/unit/source/tree.h"

static time_t ahead;

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_REALTIME)
		ret->tv_sec += ahead;
	return r;
}

/* Not really: a disk would make these tests slow. What counts is when it is asked for. */
static unsigned int syncs, renames_unsynced;

int fsync(int fd)
{
	(void)fd;
	syncs++;
	return 0;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	if (!syncs)
		renames_unsynced++;
	syncs = 0;
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

static void fill(struct tree *t)
{
	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "a/sub/2.jpg", "22");
	tree_file(t, "b/3.jpg", "333");
}

static bool reopen_uses_index(struct tree *t)
{
	struct dataset *d = tree_open(t);
	bool used = dataset_index_used(d);

	dataset_unref(d);
	return used;
}

static void is_used_at_the_next_open(void **state)
{
	struct tree *t = *state;
	uint8_t fingerprint[FINGERPRINT_SIZE];
	struct dataset *d;
	struct stat st;

	fill(t);
	syncs = 0;
	d = tree_open(t);
	assert_false(dataset_index_used(d));
	assert_int_equal(syncs, 1); /* of the directory, after the rename; before it: next line */
	assert_int_equal(renames_unsynced, 0);
	assert_memory_equal(dataset_index_path(d), t->cache, strlen(t->cache));
	assert_int_equal(stat(dataset_index_path(d), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(t->cache, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	memcpy(fingerprint, dataset_fingerprint(d), sizeof(fingerprint));
	dataset_unref(d);
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_samples(d, SAMPLES("a/1.jpg 0", "a/sub/2.jpg 0", "b/3.jpg 1"));
	assert_memory_equal(fingerprint, dataset_fingerprint(d), sizeof(fingerprint));
	dataset_unref(d);
	t->options.rebuild = true;
	assert_false(reopen_uses_index(t));
}

/* Every way in which names come, go or are replaced, with times that are proof and without. */
static void any_change_of_names_is_seen(void **state)
{
	struct tree *t = *state;

	for (ahead = 0; ahead <= 3600; ahead += 3600) {
		fill(t);
		reopen_uses_index(t);
		assert_true(reopen_uses_index(t));
		tree_file(t, "a/sub/new.jpg", "1");
		assert_false(reopen_uses_index(t));
		assert_true(reopen_uses_index(t));
		unlink(tree_at(t, "a/sub/new.jpg"));
		assert_false(reopen_uses_index(t));
		rename(tree_at(t, "b/3.jpg"), tree_at(t, "b/4.jpg"));
		assert_false(reopen_uses_index(t));
		tree_directory(t, "b/more");
		assert_false(reopen_uses_index(t));
		tree_file(t, "b/more/1.jpg", "1");
		assert_false(reopen_uses_index(t));
		tree_file(t, "c/1.jpg", "1");
		assert_false(reopen_uses_index(t));
		nftw(tree_at(t, "c"), tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
		assert_false(reopen_uses_index(t));
		assert_true(reopen_uses_index(t));
		nftw(tree_at(t, "b"), tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	ahead = 0;
}

/* Old directories are believed by their times alone: replacing one by its twin is seen too. */
static void a_replaced_directory_is_seen(void **state)
{
	struct tree *t = *state;

	ahead = 3600;
	fill(t);
	reopen_uses_index(t);
	tree_file(t, "../twin/3.jpg", "4444");
	rename(tree_at(t, "b"), tree_at(t, "../old"));
	rename(tree_at(t, "../twin"), tree_at(t, "b"));
	assert_false(reopen_uses_index(t));
	ahead = 0;
}

static void options_have_indexes_of_their_own(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	fill(t);
	tree_file(t, "a/.h.jpg", "1");
	d = tree_open(t);
	assert_int_equal(dataset_length(d), 3);
	assert_int_equal(t->warned, 1);
	dataset_unref(d);
	t->options.hidden = true;
	d = tree_open(t);
	assert_int_equal(dataset_length(d), 4);
	assert_int_equal(t->warned, 0);
	dataset_unref(d);
	assert_true(reopen_uses_index(t));
	t->options.hidden = false;
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_int_equal(dataset_length(d), 3);
	assert_int_equal(t->warned, 1); /* said again, from the index */
	dataset_unref(d);
}

static void in_place_is_found_by_others(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	char path[128];

	fill(t);
	t->options.in_place = true;
	d = tree_open(t);
	snprintf(path, sizeof(path), "%s/.feeder-index", t->data);
	assert_string_equal(dataset_index_path(d), path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(t->cache, F_OK), -1);
	dataset_unref(d);
	assert_true(reopen_uses_index(t));
	t->options.in_place = false;
	d = tree_open(t); /* a daemon that keeps its own elsewhere */
	assert_true(dataset_index_used(d));
	assert_string_equal(dataset_index_path(d), path);
	assert_int_equal(t->warned, 0);
	/* its verdicts stay in its cache */
	dataset_set_verdict(d, 0, 1);
	assert_int_equal(dataset_save_verdicts(d), 0);
	dataset_unref(d);
	snprintf(path, sizeof(path), "%s/.feeder-index.verdicts", t->data);
	assert_int_equal(access(path, F_OK), -1);
	d = tree_open(t);
	assert_int_equal(dataset_verdict(d, 0), 1);
	dataset_unref(d);
	t->options.hidden = true; /* not what that index was made with */
	assert_false(reopen_uses_index(t));
	t->options.hidden = false;
	tree_directory(t, "c"); /* in the directory whose times do not count */
	tree_file(t, "c/1.jpg", "1");
	assert_false(reopen_uses_index(t));
}

static void nowhere_to_write_means_memory(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	fill(t);
	tree_file(t, "../cache", "a file is in the way");
	d = tree_open(t);
	assert_int_equal(t->warned, 1);
	assert_non_null(strstr(t->warnings, t->cache));
	assert_non_null(strstr(t->warnings, "memory"));
	assert_string_equal(dataset_index_path(d), "");
	dataset_set_verdict(d, 0, 1);
	assert_int_equal(dataset_verdict(d, 0), 1);
	assert_int_equal(dataset_save_verdicts(d), 0);
	dataset_unref(d);
	assert_false(reopen_uses_index(t));
	t->options.cache_dir = NULL; /* asked for: no warning */
	d = tree_open(t);
	assert_int_equal(t->warned, 0);
	assert_string_equal(dataset_index_path(d), "");
	dataset_unref(d);
}

static void verdicts_are_kept_and_belong_to_one_index(void **state)
{
	struct tree *t = *state;
	struct dataset *d, *other;

	fill(t);
	d = tree_open(t);
	other = tree_open(t); /* as another process */
	assert_int_equal(dataset_verdict(d, 2), 0);
	dataset_set_verdict(d, 2, 16 + 13);
	assert_int_equal(dataset_save_verdicts(d), 0);
	dataset_set_verdict(other, 0, 1);
	assert_int_equal(dataset_save_verdicts(other), 0); /* keeps what d knew */
	dataset_unref(d);
	dataset_unref(other);
	d = tree_open(t);
	assert_int_equal(dataset_verdict(d, 0), 1);
	assert_int_equal(dataset_verdict(d, 1), 0);
	assert_int_equal(dataset_verdict(d, 2), 16 + 13);
	dataset_unref(d);
	rename(tree_at(t, "b/3.jpg"), tree_at(t, "b/0.jpg")); /* as many, but another file */
	d = tree_open(t);
	for (uint64_t i = 0; i < dataset_length(d); i++)
		assert_int_equal(dataset_verdict(d, i), 0);
	dataset_unref(d);
}

/*
 * Any one byte of either file changed, or the file cut: harmless, and the dataset the same. Behind
 * the header every seventh byte, or all with FEEDER_LONG.
 */
static void a_damaged_file_is_harmless(const struct tree *t, const char *path)
{
	struct tree copy = *t;
	char bytes[8192];
	struct dataset *d;
	size_t n;
	FILE *f;

	copy.options.context = &copy;
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_true(n > 0 && n < sizeof(bytes));
	for (size_t i = 0; i <= n; i++) {
		if (i > sizeof(struct index_header) && i < n && i % 7 && !getenv("FEEDER_LONG"))
			continue;
		f = fopen(path, "r+");
		if (i < n) {
			fseek(f, (long)i, SEEK_SET);
			fputc(bytes[i] ^ 0x41, f);
			fclose(f);
		} else {
			fclose(f);
			assert_int_equal(truncate(path, (off_t)n / 2), 0);
		}
		d = tree_open(&copy);
		assert_samples(d, SAMPLES("a/1.jpg 0", "a/sub/2.jpg 0", "b/3.jpg 1"));
		for (uint64_t id = 0; id < 3; id++)
			assert_true(dataset_verdict(d, id) <= 1);
		dataset_unref(d);
		f = fopen(path, "w");
		fwrite(bytes, 1, n, f);
		fclose(f);
	}
}

static void damage_is_harmless_at_every_byte(void **state)
{
	struct tree *t = *state;
	char index[PATH_MAX], verdicts[PATH_MAX];
	struct dataset *d;

	fill(t);
	d = tree_open(t);
	dataset_set_verdict(d, 1, 1);
	assert_int_equal(dataset_save_verdicts(d), 0);
	snprintf(index, sizeof(index), "%s", dataset_index_path(d));
	snprintf(verdicts, sizeof(verdicts), "%.*s.verdicts",
		(int)(strlen(index) - strlen(".index")), index);
	dataset_unref(d);
	a_damaged_file_is_harmless(t, verdicts);
	a_damaged_file_is_harmless(t, index);
}

static void old_temporaries_are_swept(void **state)
{
	static const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct tree *t = *state;
	char left[PATH_MAX + 32], young[PATH_MAX + 32], foreign[PATH_MAX];
	struct dataset *d;

	fill(t);
	d = tree_open(t);
	snprintf(left, sizeof(left), "%s.tmp-0123456789abcdef", dataset_index_path(d));
	snprintf(young, sizeof(young), "%s.tmp-fedcba9876543210", dataset_index_path(d));
	snprintf(foreign, sizeof(foreign), "%s/notes.tmp-1", t->cache);
	dataset_unref(d);
	close(open(left, O_CREAT | O_WRONLY, 0600));
	close(open(young, O_CREAT | O_WRONLY, 0600));
	close(open(foreign, O_CREAT | O_WRONLY, 0600));
	utimensat(AT_FDCWD, left, old, 0);
	utimensat(AT_FDCWD, foreign, old, 0);
	t->options.rebuild = true;
	reopen_uses_index(t);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(access(young, F_OK), 0); /* somebody may be writing it */
	assert_int_equal(access(foreign, F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(is_used_at_the_next_open),
		TEST(any_change_of_names_is_seen),
		TEST(a_replaced_directory_is_seen),
		TEST(options_have_indexes_of_their_own),
		TEST(in_place_is_found_by_others),
		TEST(nowhere_to_write_means_memory),
		TEST(verdicts_are_kept_and_belong_to_one_index),
		TEST(damage_is_harmless_at_every_byte),
		TEST(old_temporaries_are_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
