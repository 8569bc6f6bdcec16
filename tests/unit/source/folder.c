/* SPDX-License-Identifier: Apache-2.0 */
/* Folder datasets: which files are samples, in which order, with which labels. */
#include <xxhash.h>

#include "tests/unit/source/tree.h"

static void lists_as_sorted_os_walk(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	struct sample s;
	struct stat st;

	tree_file(t, "dog/x.jpg", "1");
	tree_file(t, "dog/sub/a.JPG", "22");
	tree_file(t, "dog/sub-1/b.png", "333");
	tree_file(t, "dog/sub/deep/c.webp", "");
	tree_file(t, "dog/Z.tiff", "1");
	tree_file(t, "dog/notes.txt", "no image");
	tree_file(t, "dog/jpg", "no extension");
	tree_file(t, "Cat/10.jpeg", "1");
	tree_file(t, "Cat/9.ppm", "1");
	tree_file(t, "Cat/a.b.bmp", "1");
	tree_file(t, "\xc3\xa9t\xc3\xa9/a.pgm", "1");
	tree_file(t, "beside.jpg", "not in a class");
	d = tree_open(t);
	/* directories by their whole path: "dog/sub-1" < "dog/sub/deep", but "dog/sub" first */
	assert_samples(d, SAMPLES("Cat/10.jpeg 0", "Cat/9.ppm 0", "Cat/a.b.bmp 0", "dog/Z.tiff 1",
				  "dog/x.jpg 1", "dog/sub/a.JPG 1", "dog/sub-1/b.png 1",
				  "dog/sub/deep/c.webp 1", "\xc3\xa9t\xc3\xa9/a.pgm 2"));
	assert_int_equal(dataset_class_count(d), 3);
	assert_string_equal(dataset_class_name(d, 0), "Cat");
	assert_string_equal(dataset_class_name(d, 2), "\xc3\xa9t\xc3\xa9");
	assert_string_equal(dataset_format(d), "folder");
	assert_string_equal(dataset_display(d), t->data);
	dataset_sample(d, 6, &s);
	assert_int_equal(fstatat(dataset_dirfd(d), "dog/sub-1/b.png", &st, 0), 0);
	assert_int_equal(s.length, 3);
	assert_int_equal(s.file_size, 3);
	assert_int_equal(s.offset, 0);
	assert_int_equal(s.mtime_ns, st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	assert_int_equal(t->warned, 0);
	dataset_unref(d);
}

static void a_flat_folder_has_label_0(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, "b.jpg", "1");
	tree_file(t, "a.png", "1");
	tree_file(t, "readme", "1");
	d = tree_open(t);
	assert_samples(d, SAMPLES("a.png 0", "b.jpg 0"));
	assert_int_equal(dataset_class_count(d), 0);
	dataset_unref(d);
}

static void path_says_when_it_does_not_fit(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	char path[16];

	tree_file(t, "a/0123456789.jpg", "1");
	d = tree_open(t);
	assert_int_equal(dataset_path(d, 0, path, sizeof(path)), -ENAMETOOLONG);
	assert_int_equal(dataset_path(d, 0, path, 0), -ENAMETOOLONG);
	dataset_unref(d);
}

static int opened_outside;

static int open_anything(void *context, int dirfd, const char *path, int flags)
{
	int fd;

	(void)context;
	__atomic_fetch_add(&opened_outside, 1, __ATOMIC_RELAXED);
	fd = openat(dirfd, path, flags);
	return fd < 0 ? -errno : fd;
}

static void links_out_of_the_dataset_are_asked_for(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	struct sample s;
	char target[128];

	snprintf(target, sizeof(target), "%s/elsewhere", t->path);
	assert_int_equal(mkdir(target, 0755), 0);
	tree_file(t, "../elsewhere/out.jpg", "four");
	tree_file(t, "a/1.jpg", "1");
	tree_link(t, "../../elsewhere/out.jpg", "a/2.jpg");
	/* nobody to ask: listed, not looked at */
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0", "a/2.jpg 0"));
	dataset_sample(d, 1, &s);
	assert_int_equal(s.file_size, 0);
	assert_true(s.mtime_ns == INT64_MIN);
	dataset_unref(d);
	/* a directory out there cannot be listed: refused, by name */
	tree_link(t, target, "b");
	tree_refused(t, "", -EXDEV, "data/b", "root", NULL);
	t->options.open_outside = open_anything;
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0", "a/2.jpg 0", "b/out.jpg 1"));
	dataset_sample(d, 1, &s);
	assert_int_equal(s.file_size, 4);
	assert_true(opened_outside > 0);
	dataset_unref(d);
	/* and the index knows that directory's times */
	d = tree_open(t);
	assert_true(dataset_index_used(d));
	dataset_unref(d);
	tree_file(t, "../elsewhere/more.jpg", "1");
	d = tree_open(t);
	assert_false(dataset_index_used(d));
	assert_int_equal(dataset_length(d), 4);
	dataset_unref(d);
}

static void an_unreadable_directory_is_named(void **state)
{
	struct tree *t = *state;
	struct dataset *d = NULL;
	uid_t before;
	int first, second;

	t->options.cache_dir = NULL;
	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "b/sub/1.jpg", "1");
	chmod(tree_at(t, "b/sub"), 0);
	tree_without_power(&before);
	first = tree_open_at(t, "", &d);
	tree_with_power(before);
	assert_int_equal(first, -EACCES);
	assert_non_null(strstr(t->text, "data/b/sub: "));
	chmod(tree_at(t, "b/sub"), 0444); /* listed, but its files cannot be reached */
	tree_without_power(&before);
	second = tree_open_at(t, "", &d);
	tree_with_power(before);
	assert_int_equal(second, -EACCES);
	assert_non_null(strstr(t->text, "data/b/sub: "));
	chmod(tree_at(t, "b/sub"), 0755);
}

static void too_deep_is_refused(void **state)
{
	struct tree *t = *state;
	char path[512] = "a";

	for (int i = 0; i < 70; i++)
		strcat(path, "/d");
	strcat(path, "/1.jpg");
	tree_file(t, path, "1");
	tree_refused(t, "", -ELOOP, "a/d/d", "deep", NULL);
}

static void what_is_no_dataset_is_refused(void **state)
{
	struct tree *t = *state;
	struct dataset *d = NULL;
	int fd;

	assert_int_equal(mkfifo(tree_at(t, "fifo"), 0600), 0);
	tree_refused(t, "fifo", -ENOTSUP, "data/fifo", "neither", NULL);
	unlink(tree_at(t, "fifo"));
	tree_refused(t, "", -ENODATA, t->data, "no samples", NULL);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(dataset_open(&d, fd, -1, "/dev/null", &t->options, t->text, 8), -ENOTSUP);
	assert_int_equal(strlen(t->text), 7); /* short buffers are kept to */
	close(fd);
}

static void fingerprint_is_of_names_sizes_and_labels(void **state)
{
	struct tree *t = *state;
	uint8_t first[FINGERPRINT_SIZE];
	struct dataset *d;

	t->options.cache_dir = NULL;
	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "b/1.jpg", "1");
	d = tree_open(t);
	memcpy(first, dataset_fingerprint(d), sizeof(first));
	dataset_unref(d);
	tree_file(t, "a/1.jpg", "2"); /* another time and content: the same list */
	d = tree_open(t);
	assert_memory_equal(first, dataset_fingerprint(d), sizeof(first));
	dataset_unref(d);
	tree_file(t, "a/1.jpg", "22");
	d = tree_open(t);
	assert_memory_not_equal(first, dataset_fingerprint(d), sizeof(first));
	dataset_unref(d);
	tree_file(t, "a/1.jpg", "1");
	rename(tree_at(t, "b"), tree_at(t, "c")); /* only a class name */
	d = tree_open(t);
	assert_memory_not_equal(first, dataset_fingerprint(d), sizeof(first));
	dataset_unref(d);
}

/* The stream of protocol/index.md, put together by hand for one dataset. */
static void fingerprint_is_the_documented_one(void **state)
{
	static const char stream[] = "feeder fingerprint 1\0"
				     "\2\0\0\0\0\0\0\0" /* classes */
				     "cat\0"
				     "dog\0"
				     "\2\0\0\0\0\0\0\0" /* samples */
				     "cat/a.jpg\0"
				     "\3\0\0\0\0\0\0\0"
				     "\0\0\0\0\0\0\0\0"
				     "dog/sub/b.png\0"
				     "\0\0\0\0\0\0\0\0"
				     "\1\0\0\0\0\0\0"; /* and the literal's own NUL */
	struct tree *t = *state;
	XXH128_canonical_t known;
	struct dataset *d;

	XXH128_canonicalFromHash(&known, XXH3_128bits(stream, sizeof(stream)));
	tree_file(t, "cat/a.jpg", "abc");
	tree_file(t, "dog/sub/b.png", "");
	d = tree_open(t);
	assert_memory_equal(dataset_fingerprint(d), known.digest, FINGERPRINT_SIZE);
	dataset_unref(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(lists_as_sorted_os_walk),
		TEST(a_flat_folder_has_label_0),
		TEST(path_says_when_it_does_not_fit),
		TEST(links_out_of_the_dataset_are_asked_for),
		TEST(an_unreadable_directory_is_named),
		TEST(too_deep_is_refused),
		TEST(what_is_no_dataset_is_refused),
		TEST(fingerprint_is_of_names_sizes_and_labels),
		TEST(fingerprint_is_the_documented_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
