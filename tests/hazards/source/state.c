/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of state that is kept: B20, B22, B23, B24, B31, B38, D08. */
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <xxhash.h>

#include "source/image.h"
#include "tests/unit/source/tree.h"

static const char lfs_pointer[] =
	"version https://git-lfs.github.com/spec/v1\n"
	"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
	"size 12345\n";

static void fill(struct tree *t)
{
	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "b/2.jpg", "22");
}

/* Opens once and gives the index's path. */
static void make_index(struct tree *t, char ret[PATH_MAX])
{
	struct dataset *d;

	fill(t);
	d = tree_open(t);
	snprintf(ret, PATH_MAX, "%s", dataset_index_path(d));
	dataset_unref(d);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
}

/* Changes the header of the index and makes its checksum right again. */
static void change_header(const char *path, uint64_t samples, uint32_t version)
{
	size_t from = offsetof(struct index_header, checksum) + 8, n;
	unsigned char bytes[4096];
	struct index_header *h = (void *)bytes;
	FILE *f = fopen(path, "r");

	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (h->sample_count != samples) { /* an index of an empty list, otherwise faultless */
		size_t gone = h->sample_count * sizeof(struct index_sample);

		memmove(bytes + sizeof(*h), bytes + sizeof(*h) + gone, n - sizeof(*h) - gone);
		n -= gone;
		h->sample_count = samples;
		h->file_size = n;
	}
	h->version = version;
	h->checksum = XXH3_64bits(bytes + from, n - from);
	write_file(path, bytes, n);
}

static void assert_made_anew(struct tree *t, unsigned int warnings)
{
	struct dataset *d = tree_open(t);

	assert_false(dataset_index_used(d));
	assert_samples(d, SAMPLES("a/1.jpg 0", "b/2.jpg 1"));
	assert_int_equal(t->warned, warnings);
	dataset_unref(d);
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_int_equal(t->warned, 0);
	dataset_unref(d);
}

static void b20_an_empty_index_is_made_anew(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX];

	make_index(t, path);
	write_file(path, "", 0);
	assert_made_anew(t, 1);
	change_header(path, 0, INDEX_VERSION);
	assert_made_anew(t, 1);
}

static void b22_state_of_another_version_is_not_used(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX], verdicts[PATH_MAX];
	struct dataset *d;
	FILE *f;

	make_index(t, path);
	change_header(path, 2, INDEX_VERSION + 1);
	assert_made_anew(t, 0);
	d = tree_open(t);
	dataset_set_verdict(d, 0, 1);
	assert_int_equal(dataset_save_verdicts(d), 0);
	dataset_unref(d);
	snprintf(verdicts, sizeof(verdicts), "%.*s.verdicts", (int)strlen(path) - 6, path);
	f = fopen(verdicts, "r+");
	fseek(f, 12, SEEK_SET);
	fputc(9, f);
	fclose(f);
	d = tree_open(t);
	assert_int_equal(dataset_verdict(d, 0), 0);
	dataset_unref(d);
}

static void b23_nothing_of_the_users_is_touched(void **state)
{
	struct tree *t = *state;
	struct stat before, after;
	char path[PATH_MAX], other[PATH_MAX];
	struct dataset *d;

	make_index(t, path);
	tree_file(t, ".feeder-index.old.bak", "the user's");
	tree_file(t, "../cache/notes.index", "the user's");
	tree_file(t, "../cache/data.tmp-1", "the user's");
	snprintf(other, sizeof(other), "%s/notes.index", t->cache);
	stat(tree_at(t, "a/1.jpg"), &before);
	t->options.rebuild = true;
	for (int i = 0; i < 2; i++) {
		t->options.in_place = i;
		d = tree_open(t);
		dataset_set_verdict(d, 0, 1);
		assert_int_equal(dataset_save_verdicts(d), 0);
		dataset_unref(d);
	}
	stat(tree_at(t, "a/1.jpg"), &after);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
	assert_int_equal(access(tree_at(t, ".feeder-index.old.bak"), F_OK), 0);
	assert_int_equal(access(tree_at(t, "../cache/data.tmp-1"), F_OK), 0);
	assert_int_equal(access(other, F_OK), 0);
}

static void b24_an_lfs_pointer_is_named_or_harmless(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX];
	struct dataset *d;
	struct sample s;

	tree_file(t, "list.txt", lfs_pointer);
	tree_refused(t, "list.txt", -EINVAL, "list.txt", "Git LFS pointer", NULL);
	unlink(tree_at(t, "list.txt"));
	make_index(t, path);
	write_file(path, lfs_pointer, strlen(lfs_pointer));
	assert_made_anew(t, 1);
	tree_file(t, "b/3.jpg", lfs_pointer); /* a sample; reading it finds out */
	d = tree_open(t);
	dataset_sample(d, 2, &s);
	assert_int_equal(s.length, strlen(lfs_pointer));
	dataset_unref(d);
}

/* The index is read and not mapped, as are list files. */
static void b31_cutting_files_while_they_are_in_use_is_harmless(void **state)
{
	struct tree *t = *state;
	char path[PATH_MAX];
	struct dataset *d;

	make_index(t, path);
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(tree_at(t, "b/2.jpg"), 0), 0);
	assert_samples(d, SAMPLES("a/1.jpg 0", "b/2.jpg 1"));
	assert_string_equal(dataset_class_name(d, 1), "b");
	dataset_unref(d);
}

static bool facts_agree(const struct dataset *d, uint64_t id)
{
	char path[PATH_MAX];
	struct sample s;
	struct stat st;

	dataset_sample(d, id, &s);
	dataset_path(d, id, path, sizeof(path));
	assert_int_equal(fstatat(dataset_dirfd(d), path, &st, 0), 0);
	return s.file_size == (uint64_t)st.st_size &&
	       s.mtime_ns == st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/*
 * A file edited in its place leaves its directory as it was: the index is used, and what it says
 * of the file no longer agrees, which the reader answers with "changed". --rebuild settles it.
 */
static void b38_an_edited_file_is_noticed(void **state)
{
	static const struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct tree *t = *state;
	struct dataset *d;
	char path[PATH_MAX];

	fill(t);
	utimensat(AT_FDCWD, tree_at(t, "a/1.jpg"), then, 0);
	utimensat(AT_FDCWD, tree_at(t, "b/2.jpg"), then, 0);
	make_index(t, path);
	utimensat(AT_FDCWD, tree_at(t, "a/1.jpg"), then, 0);
	utimensat(AT_FDCWD, tree_at(t, "b/2.jpg"), then, 0);
	t->options.rebuild = true;
	dataset_unref(tree_open(t));
	t->options.rebuild = false;
	d = tree_open(t);
	assert_true(facts_agree(d, 0) && facts_agree(d, 1));
	dataset_unref(d);
	tree_file(t, "a/1.jpg", "2"); /* the size stays */
	tree_file(t, "b/2.jpg", "333");
	utimensat(AT_FDCWD, tree_at(t, "b/2.jpg"), then, 0); /* the time stays */
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	assert_false(facts_agree(d, 0));
	assert_false(facts_agree(d, 1));
	dataset_unref(d);
	t->options.rebuild = true;
	d = tree_open(t);
	assert_true(facts_agree(d, 0) && facts_agree(d, 1));
	dataset_unref(d);
}

/* A file moved over another is another entry of its directory: scanned anew by itself. */
static void b38_a_replaced_file_changes_the_list(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	char path[PATH_MAX];

	make_index(t, path);
	tree_file(t, "../other.jpg", "longer");
	rename(tree_at(t, "../other.jpg"), tree_at(t, "a/3.jpg"));
	d = tree_open(t);
	assert_false(dataset_index_used(d));
	assert_int_equal(dataset_length(d), 3);
	assert_true(facts_agree(d, 1));
	dataset_unref(d);
}

static void d08_the_table_is_packed_and_constant(void **state)
{
	enum { LINES = 50000 };
	struct tree *t = *state;
	struct dataset *d = NULL, *again;
	struct mallinfo2 before, after;
	int status;
	FILE *f;

	f = fopen(tree_at(t, "list.txt"), "w");
	for (int i = 0; i < LINES; i++)
		fprintf(f, "d/%d.jpg\tclass%d\n", i, i % 3);
	fclose(f);
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	dataset_unref(d);
	before = mallinfo2();
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	after = mallinfo2();
	assert_true(dataset_index_used(d));
	/* on the heap: a verdict byte each, and a handful of small things */
	assert_true(
		after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < LINES + 16384);
	again = dataset_ref(d);
	assert_ptr_equal(dataset_class_name(again, 0), dataset_class_name(d, 0));
	dataset_unref(again);
	if (fork() == 0) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)dataset_class_name(d, 0) = 'x';
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	dataset_unref(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(b20_an_empty_index_is_made_anew),
		TEST(b22_state_of_another_version_is_not_used),
		TEST(b23_nothing_of_the_users_is_touched),
		TEST(b24_an_lfs_pointer_is_named_or_harmless),
		TEST(b31_cutting_files_while_they_are_in_use_is_harmless),
		TEST(b38_an_edited_file_is_noticed),
		TEST(b38_a_replaced_file_changes_the_list),
		TEST(d08_the_table_is_packed_and_constant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
