/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of what stands in a directory: A73, B32 to B37. */
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/source/tree.h"

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* What is no regular file has an id, and is never opened: a FIFO would block for ever. */
static void a73_only_regular_files_are_looked_at(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "a/dir.jpg/2.jpg", "1");
	assert_int_equal(mkfifo(tree_at(t, "a/fifo.jpg"), 0600), 0);
	make_socket(tree_at(t, "a/socket.jpg"));
	tree_link(t, "nowhere.jpg", "a/dangling.jpg");
	tree_link(t, "nowhere", "a/dangling");
	tree_link(t, "fifo.jpg", "a/linked.jpg");
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0", "a/dangling.jpg 0", "a/fifo.jpg 0", "a/linked.jpg 0",
				  "a/socket.jpg 0", "a/dir.jpg/2.jpg 0"));
	for (uint64_t i = 1; i < 5; i++) {
		struct sample s;

		dataset_sample(d, i, &s);
		assert_int_equal(s.length, 0);
		assert_true(s.mtime_ns == INT64_MIN);
	}
	dataset_unref(d);
}

static void b32_names_are_bytes(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	char path[64];

	tree_file(t, "\xf1\xe2\xff/\xff\n.jpg", "1");
	tree_directory(t, "\xf1\xe3");
	t->options.allow_empty = true;
	for (int i = 0; i < 2; i++) { /* scanned, then from the index */
		d = tree_open(t);
		assert_int_equal(dataset_index_used(d), i);
		assert_samples(d, SAMPLES("\xf1\xe2\xff/\xff\n.jpg 0"));
		assert_string_equal(dataset_class_name(d, 0), "\xf1\xe2\xff");
		assert_true(dataset_path(d, 0, path, sizeof(path)) > 0);
		assert_int_equal(faccessat(dataset_dirfd(d), path, R_OK, 0), 0);
		dataset_unref(d);
	}
	t->options.allow_empty = false; /* a sentence shows them on one line, as UTF-8 */
	tree_refused(t, "", -ENODATA, "\\xF1\\xE3", NULL);
}

static void b33_hidden_directories_are_no_classes(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, ".ipynb_checkpoints/a.jpg", "1");
	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "a/.thumbs/1.jpg", "1");
	tree_file(t, "a/._1.jpg", "1");
	tree_file(t, "a/.notes", "1");
	tree_file(t, "b/.z.jpg", "1");
	tree_file(t, "b/1.jpg", "1");
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0", "b/1.jpg 1"));
	assert_int_equal(t->warned, 1);
	assert_non_null(strstr(
		t->warnings, "4 hidden names (.ipynb_checkpoints, a/._1.jpg, a/.thumbs, ...)"));
	assert_non_null(strstr(t->warnings, "torchvision"));
	dataset_unref(d);
	t->options.hidden = true; /* torchvision's own list */
	d = tree_open(t);
	assert_samples(d, SAMPLES(".ipynb_checkpoints/a.jpg 0", "a/._1.jpg 1", "a/1.jpg 1",
				  "a/.thumbs/1.jpg 1", "b/.z.jpg 2", "b/1.jpg 2"));
	assert_int_equal(t->warned, 0);
	dataset_unref(d);
}

static void b34_files_are_no_classes(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, ".DS_Store", "1");
	tree_file(t, "README.md", "1");
	tree_file(t, "stray.jpg", "1");
	tree_link(t, "gone", "link");
	tree_file(t, "a/1.jpg", "1");
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0"));
	assert_int_equal(dataset_class_count(d), 1);
	assert_int_equal(t->warned, 0);
	dataset_unref(d);
}

static void b35_an_empty_class_is_refused_or_keeps_its_number(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, "a/1.jpg", "1");
	tree_directory(t, "b");
	tree_file(t, "c/1.jpg", "1");
	tree_refused(t, "", -ENODATA, "data/b", "allow_empty", NULL);
	t->options.allow_empty = true;
	d = tree_open(t);
	assert_samples(d, SAMPLES("a/1.jpg 0", "c/1.jpg 2"));
	assert_int_equal(dataset_class_count(d), 3);
	assert_string_equal(dataset_class_name(d, 1), "b");
	dataset_unref(d);
	t->options.allow_empty = false; /* the index of the other setting is not used */
	tree_file(t, "b/notes.txt", "no image");
	tree_directory(t, "d");
	tree_refused(t, "", -ENODATA, "data/b", "2 classes", NULL);
	nftw(tree_at(t, "a"), tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	nftw(tree_at(t, "c"), tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	t->options.allow_empty = true; /* but something there must be */
	tree_refused(t, "", -ENODATA, "no samples", NULL);
}

static void b36_links_are_labelled_where_they_stand(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	struct sample s;

	tree_file(t, "others/x.jpg", "12345");
	tree_file(t, "abnormal/y.jpg", "1");
	tree_link(t, "../others/x.jpg", "abnormal/x.jpg");
	tree_link(t, "../abnormal", "others/all"); /* a directory that is no ancestor: followed */
	tree_link(t, "others", "twin");            /* a class that is a link */
	d = tree_open(t);
	assert_samples(d, SAMPLES("abnormal/x.jpg 0", "abnormal/y.jpg 0", "others/x.jpg 1",
				  "others/all/x.jpg 1", "others/all/y.jpg 1", "twin/x.jpg 2",
				  "twin/all/x.jpg 2", "twin/all/y.jpg 2"));
	dataset_sample(d, 0, &s);
	assert_int_equal(s.file_size, 5); /* of where the link ends */
	dataset_unref(d);
}

static void b36_loops_end(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	tree_file(t, "a/1.jpg", "1");
	tree_file(t, "a/sub/2.jpg", "1");
	tree_file(t, "b/3.jpg", "1");
	tree_link(t, "..", "a/sub/up");     /* to its class */
	tree_link(t, "../..", "a/sub/top"); /* to the dataset */
	tree_link(t, ".", "a/self");
	tree_link(t, "self.jpg", "a/self.jpg"); /* ends nowhere: a file */
	tree_link(t, "../b", "a/to-b");
	tree_link(t, "../a", "b/to-a");
	d = tree_open(t);
	assert_samples(d,
		SAMPLES("a/1.jpg 0", "a/self.jpg 0", "a/sub/2.jpg 0", "a/to-b/3.jpg 0", "b/3.jpg 1",
			"b/to-a/1.jpg 1", "b/to-a/self.jpg 1", "b/to-a/sub/2.jpg 1"));
	assert_int_equal(t->warned, 1);
	assert_non_null(strstr(t->warnings, "lead back"));
	assert_non_null(strstr(t->warnings, "a/self"));
	dataset_unref(d);
}

static void b37_the_order_is_not_the_directorys(void **state)
{
	enum { FILES = 60 };
	uint8_t fingerprints[2][FINGERPRINT_SIZE];
	struct tree *t = *state;
	char name[32];

	t->options.cache_dir = NULL;
	setenv("LC_ALL", "en_US.UTF-8", 1); /* would sort "B" after "a" */
	for (int copy = 0; copy < 2; copy++) {
		struct dataset *d;

		for (int i = 0; i < FILES; i++) {
			int n = copy ? FILES - 1 - i : i;

			snprintf(name, sizeof(name), "%c%d/%c%d.jpg", n % 2 ? 'a' : 'B', n % 5,
				n % 3 ? 'x' : 'Y', n);
			tree_file(t, name, "1");
		}
		d = tree_open(t);
		assert_int_equal(dataset_length(d), FILES);
		assert_string_equal(dataset_class_name(d, 0), "B0");
		memcpy(fingerprints[copy], dataset_fingerprint(d), FINGERPRINT_SIZE);
		dataset_unref(d);
		nftw(t->data, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
		mkdir(t->data, 0755);
	}
	assert_memory_equal(fingerprints[0], fingerprints[1], FINGERPRINT_SIZE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a73_only_regular_files_are_looked_at),
		TEST(b32_names_are_bytes),
		TEST(b33_hidden_directories_are_no_classes),
		TEST(b34_files_are_no_classes),
		TEST(b35_an_empty_class_is_refused_or_keeps_its_number),
		TEST(b36_links_are_labelled_where_they_stand),
		TEST(b36_loops_end),
		TEST(b37_the_order_is_not_the_directorys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
