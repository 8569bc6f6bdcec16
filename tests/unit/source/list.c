/* SPDX-License-Identifier: Apache-2.0 */
/* List files: path<TAB>label, in their order; every error names its line. */
#include "tests/unit/source/tree.h"

static struct dataset *open_list(struct tree *t, const char *content)
{
	struct dataset *d = NULL;

	tree_file(t, "list.txt", content);
	if (tree_open_at(t, "list.txt", &d) < 0)
		fail_msg("%s", t->text);
	return d;
}

static void integers_are_labels_as_they_are(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	struct sample s;

	tree_file(t, "z/1.jpg", "12345");
	tree_file(t, "top.dat", "1");
	d = open_list(t, "z/1.jpg\t7\nz/gone.jpg\t-100\ntop.dat\t9223372036854775807\nz/1.jpg\t7");
	assert_samples(d, SAMPLES("z/1.jpg 7", "z/gone.jpg -100", "top.dat 9223372036854775807",
				  "z/1.jpg 7"));
	assert_int_equal(dataset_class_count(d), 0);
	assert_string_equal(dataset_format(d), "list");
	dataset_sample(d, 0, &s);
	assert_int_equal(s.length, 5);
	dataset_sample(d, 1, &s); /* missing: an id all the same */
	assert_int_equal(s.length, 0);
	assert_true(s.mtime_ns == INT64_MIN);
	dataset_unref(d);
}

static void names_are_classes_sorted(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	d = open_list(t, "1.jpg\tzebra\r\n./a//2.jpg\tant\r\na/./3.jpg\t10\r\n4.jpg\tzebra\r\n");
	assert_samples(d, SAMPLES("1.jpg 2", "a/2.jpg 1", "a/3.jpg 0", "4.jpg 2"));
	assert_int_equal(dataset_class_count(d), 3);
	assert_string_equal(dataset_class_name(d, 0), "10");
	assert_string_equal(dataset_class_name(d, 1), "ant");
	assert_string_equal(dataset_class_name(d, 2), "zebra");
	dataset_unref(d);
}

static void errors_name_the_line(void **state)
{
	static const struct {
		const char *content, *line, *word;
		int error;
	} cases[] = {
		{ "a.jpg\t1\nb.jpg 2\n", "line 2", "no tab", -EINVAL },
		{ "a.jpg\t1\n\nb.jpg\t2\n", "line 2", "no tab", -EINVAL },
		{ "a.jpg\t1\nb.jpg\t\n", "line 2", "no label", -EINVAL },
		{ "a.jpg\t1\nb.jpg\t1\t2\n", "line 2", "more than one tab", -EINVAL },
		{ "a.jpg\t1\na.jpg\t1\n/b.jpg\t1\n", "line 3", "absolute", -EINVAL },
		{ "a/../../b.jpg\t1\n", "line 1", "..", -EINVAL },
		{ "..\t1\n", "line 1", "..", -EINVAL },
		{ "\t1\n", "line 1", "no path", -EINVAL },
		{ "./\t1\n", "line 1", "no path", -EINVAL },
		{ "a.jpg\t1\nb.jpg\t9223372036854775808\n", "line 2", "64 bits", -ERANGE },
		{ "\xef\xbb\xbf"
		  "a.jpg\t1\n",
			"line 1", "byte order mark", -EINVAL },
		{ "", "list.txt", "empty", -ENODATA },
	};
	struct tree *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		tree_file(t, "list.txt", cases[i].content);
		tree_refused(
			t, "list.txt", cases[i].error, t->data, cases[i].line, cases[i].word, NULL);
	}
}

static void a_nul_byte_is_refused(void **state)
{
	struct tree *t = *state;
	FILE *f = fopen(tree_at(t, "list.txt"), "w");

	fwrite("a.jpg\t1\nb\0.jpg\t2\n", 1, 17, f);
	fclose(f);
	tree_refused(t, "list.txt", -EINVAL, "line 2", "NUL", NULL);
}

static void a_changed_list_is_read_again(void **state)
{
	struct tree *t = *state;
	struct dataset *d;

	dataset_unref(open_list(t, "a.jpg\t1\n"));
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	assert_true(dataset_index_used(d));
	dataset_unref(d);
	d = open_list(t, "b.jpg\t1\n"); /* the same size, perhaps the same time stamp */
	assert_false(dataset_index_used(d));
	assert_samples(d, SAMPLES("b.jpg 1"));
	dataset_unref(d);
}

/* More lines than one task takes, and directories that come back. */
static void long_lists_are_put_together_in_order(void **state)
{
	enum { LINES = 40000 };
	struct tree *t = *state;
	struct dataset *d = NULL;
	FILE *f = fopen(tree_at(t, "list.txt"), "w");

	for (int i = 0; i < LINES; i++)
		fprintf(f, "d%d/%d.jpg\t%d\n", i * 7 % 13, i, i * 5 % 11);
	fclose(f);
	assert_int_equal(tree_open_at(t, "list.txt", &d), 0);
	assert_int_equal(dataset_length(d), LINES);
	for (int i = 0; i < LINES; i++) {
		char path[64], expected[64];
		struct sample s;

		dataset_sample(d, (uint64_t)i, &s);
		dataset_path(d, (uint64_t)i, path, sizeof(path));
		snprintf(expected, sizeof(expected), "d%d/%d.jpg", i * 7 % 13, i);
		assert_string_equal(path, expected);
		assert_int_equal(s.label, i * 5 % 11);
	}
	dataset_unref(d);
}

static void links_in_a_list_stay_inside(void **state)
{
	struct tree *t = *state;
	struct dataset *d;
	struct sample s;

	tree_file(t, "../secret.jpg", "secret");
	tree_file(t, "in/here.jpg", "12");
	tree_link(t, "../secret.jpg", "out.jpg");
	tree_link(t, "in/here.jpg", "ok.jpg");
	d = open_list(t, "out.jpg\t1\nok.jpg\t1\n");
	dataset_sample(d, 0, &s);
	assert_int_equal(s.file_size, 0);
	assert_true(s.mtime_ns == INT64_MIN);
	dataset_sample(d, 1, &s);
	assert_int_equal(s.file_size, 2);
	dataset_unref(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TEST(integers_are_labels_as_they_are),
		TEST(names_are_classes_sorted),
		TEST(errors_name_the_line),
		TEST(a_nul_byte_is_refused),
		TEST(a_changed_list_is_read_again),
		TEST(long_lists_are_put_together_in_order),
		TEST(links_in_a_list_stay_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
