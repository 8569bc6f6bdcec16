/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of ranks: what is refused, and that the sentence says what differs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/group.h"

static const struct lane_identity base = {
	.fingerprint = { 1, 2, 3 },
	.order = 1,
	.seed = 7,
	.world = 4,
	.batch = 8,
	.accumulate = 1,
	.tail = 1,
	.epoch = 2,
	.c = 64,
};

static struct group_ask ask_for(uint32_t rank, const struct lane_identity *identity)
{
	return (struct group_ask){ .uid = 1,
		.job = "job",
		.name = "train:/data:0",
		.rank = rank,
		.parts = 1,
		.identity = identity };
}

static int check(struct group_table *t, struct group_ask ask, char *text)
{
	struct group_member *held;

	text[0] = '\0';
	return group_check(t, &ask, &held, text, 1024);
}

static void every_value_that_differs_is_named(void **state)
{
	struct lane_identity other[9];
	const char *words[9] = { "fingerprint 0102030000000000, this one 0902030000000000",
		"order torch, this one feistel", "seed 7, this one 8", "world size 4, this one 5",
		"batch size 8, this one 9", "accumulate 1, this one 2", "tail pad, this one drop",
		"epoch 2, this one 3", "position 64 of the epoch, this one 96" };
	struct group_member first = { 0 };
	struct group_ask ask = ask_for(0, &base);
	struct group_table t;
	char text[1024];

	(void)state;
	group_table_init(&t);
	assert_int_equal(check(&t, ask, text), 0);
	assert_int_equal(group_join(&t, &ask, &first), 0);
	for (int i = 0; i < 9; i++)
		other[i] = base;
	other[0].fingerprint[0] = 9;
	other[1].order = 2;
	other[2].seed = 8;
	other[3].world = 5;
	other[4].batch = 9;
	other[5].accumulate = 2;
	other[6].tail = 2;
	other[7].epoch = 3;
	other[8].c = 96;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(check(&t, ask_for(1, &other[i]), text), -EEXIST);
		if (!strstr(text, words[i]) || !strstr(text, "rank 1") || !strstr(text, "rank 0"))
			fail_msg("%d: \"%s\" lacks \"%s\"", i, text, words[i]);
	}
	assert_int_equal(check(&t, ask_for(1, &base), text), 0);
	group_leave(&first);
	assert_int_equal(check(&t, ask_for(1, &other[0]), text), 0);
}

static void reopen_may_stand_elsewhere_by_whole_steps(void **state)
{
	struct lane_identity other = base;
	struct group_member first = { 0 };
	struct group_ask ask = ask_for(0, &base);
	struct group_table t;
	char text[1024];

	(void)state;
	group_table_init(&t);
	assert_int_equal(group_join(&t, &ask, &first), 0);
	ask = ask_for(1, &other);
	ask.reopen = true;
	other.epoch = 5;
	other.c = 3;
	assert_int_equal(check(&t, ask, text), 0);
	other.epoch = 2;
	other.c = 0;
	assert_int_equal(check(&t, ask, text), 0);
	other.c = 96;
	assert_int_equal(check(&t, ask, text), 0);
	other.c = 80;
	assert_int_equal(check(&t, ask, text), -EEXIST);
	assert_non_null(strstr(text, "whole number of steps of 32 positions"));
	other = base;
	other.seed = 1;
	assert_int_equal(check(&t, ask, text), -EEXIST);
	group_leave(&first);
}

static void one_lane_a_rank_and_part(void **state)
{
	struct group_member a = { 0 }, b = { 0 };
	struct group_member *held;
	struct group_ask ask = ask_for(0, &base);
	struct group_table t;
	char text[1024] = "";

	(void)state;
	group_table_init(&t);
	ask.parts = 2;
	assert_int_equal(group_join(&t, &ask, &a), 0);
	assert_int_equal(group_check(&t, &ask, &held, text, sizeof(text)), 1);
	assert_ptr_equal(held, &a);
	ask.part = 1;
	assert_int_equal(group_check(&t, &ask, &held, text, sizeof(text)), 0);
	assert_int_equal(group_join(&t, &ask, &b), 0);
	ask.parts = 3;
	ask.part = 2;
	assert_int_equal(group_check(&t, &ask, &held, text, sizeof(text)), -EEXIST);
	assert_non_null(strstr(text, "dealt in 2 parts, this lane asks for a part of 3"));
	assert_int_equal(group_ranks(&t), 1);
	group_leave(&a);
	group_leave(&a); /* twice is fine */
	group_leave(&b);
	assert_int_equal(group_ranks(&t), 0);
}

static void groups_are_told_apart_and_ranks_counted_once(void **state)
{
	struct group_member m[5] = { 0 };
	struct lane_identity other = base;
	struct group_ask ask = ask_for(0, &base);
	struct group_table t;

	(void)state;
	group_table_init(&t);
	other.seed = 99;
	assert_int_equal(group_join(&t, &ask, &m[0]), 0);
	ask = ask_for(1, &base);
	assert_int_equal(group_join(&t, &ask, &m[1]), 0);
	ask = ask_for(0, &other); /* the same rank's evaluation lane */
	ask.name = "eval:/data:0";
	assert_int_equal(group_join(&t, &ask, &m[2]), 0);
	assert_int_equal(group_ranks(&t), 2);
	ask = ask_for(0, &other);
	ask.job = "other";
	assert_int_equal(group_join(&t, &ask, &m[3]), 0);
	ask = ask_for(0, &other);
	ask.uid = 2;
	assert_int_equal(group_join(&t, &ask, &m[4]), 0);
	assert_int_equal(group_ranks(&t), 4);
	assert_true(group_job_key(1, "job") != group_job_key(2, "job"));
	assert_true(group_job_key(1, "job") != group_job_key(1, "other"));
	for (int i = 0; i < 5; i++)
		group_leave(&m[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_that_differs_is_named),
		cmocka_unit_test(reopen_may_stand_elsewhere_by_whole_steps),
		cmocka_unit_test(one_lane_a_rank_and_part),
		cmocka_unit_test(groups_are_told_apart_and_ranks_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
