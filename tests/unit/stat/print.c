/* SPDX-License-Identifier: Apache-2.0 */
/* What people read: the table, and the reports. */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/ring.h"
#include "tools/stat/collect.h"
#include "tools/stat/text.h"

static struct views views;

static int setup(void **state)
{
	(void)state;
	sample_views(&views);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	views_free(&views);
	return 0;
}

struct printed {
	char *text;
	size_t size;
	FILE *out;
};

static FILE *begin(struct printed *p)
{
	p->out = open_memstream(&p->text, &p->size);
	assert_non_null(p->out);
	return p->out;
}

static void expect(struct printed *p, const char *const *words, bool there)
{
	fflush(p->out);
	for (; *words; words++) {
		if (!strstr(p->text, *words) == there)
			print_error("%s: %s in\n%s", *words, there ? "not" : "is", p->text);
		assert_true((strstr(p->text, *words) != NULL) == there);
	}
}

static void end(struct printed *p)
{
	fclose(p->out);
	free(p->text);
}

#define EXPECT(p, ...) expect(p, (const char *const[]){ __VA_ARGS__, NULL }, true)
#define FORBID(p, ...) expect(p, (const char *const[]){ __VA_ARGS__, NULL }, false)

static void top_shows_rates_of_the_interval(void **state)
{
	struct printed p;

	(void)state;
	top_print(begin(&p), &views, 0, 0);
	EXPECT(&p, "feederd 0.1.0 /run/feeder/feeder.sock  pid 4242  up 0:01:42",
		"2 workers 75 % busy", "LIMIT", "train:/data/x:0", "1280   3/4  25.0 read ",
		"99/625", "0/2", "slurm-17.0", "pid 4343");
	FORBID(&p, "\x1b");
	end(&p);
}

static void top_stays_within_the_terminal(void **state)
{
	struct printed p;
	unsigned int lines = 0;

	(void)state;
	top_print(begin(&p), &views, 60, 5);
	fflush(p.out);
	for (char *line = strtok(p.text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		char *clear = strstr(line, "\033[K");

		assert_non_null(clear);
		*clear = '\0';
		assert_true(text_columns(line) <= 60);
	}
	assert_int_equal(lines, 5);
	end(&p);
}

static void why_has_a_line_for_each_lane(void **state)
{
	struct printed p;

	(void)state;
	why_print(begin(&p), &views, false);
	EXPECT(&p, "# /run/feeder/feeder.sock pid 4242\n",
		"train:/data/x:0 rank 0: reading is the limit: the consumer waited 25 % of the "
		"time",
		"\\x1b[2J", "rank 1: ");
	FORBID(&p, "\x1b");
	end(&p);
}

/* A05, A67: counts for each reason, and each file by its name */
static void a05_a67_errors_count_reasons_and_name_files(void **state)
{
	struct printed p;

	(void)state;
	errors_print(begin(&p), &views, false);
	EXPECT(&p,
		"train:/data/x:0 rank 0: 3 of 28160 places asked for a bad sample; files: 1 empty, "
		"2 "
		"truncated\n",
		"train:/data/x:0 rank 0: sample 12 a/b\\xff\"\\.jpg: truncated: ends after 95 of "
		"100 "
		"bytes (2 times, first in epoch 1)\n",
		"sample 14 a/d.jpg: empty: 0 bytes");
	end(&p);
}

static void digest_prints_sixteen_digits(void **state)
{
	struct printed p;

	(void)state;
	digest_print(begin(&p), &views);
	EXPECT(&p, "train:/data/x:0 rank 0: order fedcba9876543210 pixels 000000000000001f epoch 1 "
		   "step "
		   "99 position 51200\n");
	end(&p);
}

static void health_names_what_is_wrong(void **state)
{
	struct printed p;

	(void)state;
	assert_int_equal(health_print(begin(&p), &views, "0.1.9"), 0);
	EXPECT(&p,
		"ok; library 0.1.9, daemon 0.1.0 at /run/feeder/feeder.sock pid 4242, reader "
		"io_uring",
		"reader pread (io_uring is not permitted here), 1 lane\n");
	end(&p);
	views.rows[0].now.lanes[0].state = RING_FAILED;
	views.rows[1].now.header.draining = 1;
	assert_int_equal(health_print(begin(&p), &views, "0.1.9"), 2);
	EXPECT(&p, "unwell: lane train:/data/x:0 rank 0 failed; library 0.1.9, daemon 0.1.0",
		"unwell: the daemon is draining; ");
	end(&p);
	snprintf(views.rows[0].problem, sizeof(views.rows[0].problem), "speaks protocol 2.0");
	views.rows[0].now.header.lane_count = 0;
	assert_int_equal(health_print(begin(&p), &views, "0.1.9"), 2);
	EXPECT(&p,
		"unwell: speaks protocol 2.0; library 0.1.9, daemon at /run/feeder/feeder.sock\n");
	end(&p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* With an argument: prints the sample for outputs.py. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(top_shows_rates_of_the_interval),
		TEST(top_stays_within_the_terminal),
		TEST(why_has_a_line_for_each_lane),
		TEST(a05_a67_errors_count_reasons_and_name_files),
		TEST(digest_prints_sixteen_digits),
		TEST(health_names_what_is_wrong),
	};

	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	sample_views(&views);
	if (!strcmp(argv[1], "json"))
		json_print(stdout, &views);
	else if (!strcmp(argv[1], "metrics"))
		metrics_print(stdout, &views);
	else if (!strcmp(argv[1], "why"))
		why_print(stdout, &views, true);
	else if (!strcmp(argv[1], "errors"))
		errors_print(stdout, &views, true);
	views_free(&views);
	return 0;
}
