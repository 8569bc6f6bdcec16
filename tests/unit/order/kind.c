/* SPDX-License-Identifier: Apache-2.0 */
/* Names of orders and tails: both ways, and the numbers that cursors and messages keep. */
#include "test.h"

static void kinds_keep_their_names_and_numbers(void **state)
{
	static const char *const names[] = { "torch", "feistel", "sequential", "block",
		"dataloader", "ids" };

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_string_equal(order_kind_name(i + 1), names[i]);
		assert_int_equal(order_kind_parse(names[i]), i + 1);
	}
}

static void tails_keep_their_names_and_numbers(void **state)
{
	static const char *const names[] = { "pad", "drop", "mask" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_string_equal(order_tail_name(i + 1), names[i]);
		assert_int_equal(order_tail_parse(names[i]), i + 1);
	}
}

static void unknown_ones_are_told_apart(void **state)
{
	static const int numbers[] = { 0, -1, 7, 1000000, INT32_MIN, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_null(order_kind_name(numbers[i]));
	assert_null(order_tail_name(0));
	assert_null(order_tail_name(4));
	assert_null(order_tail_name(-1));
	assert_int_equal(order_kind_parse(""), 0);
	assert_int_equal(order_kind_parse("Torch"), 0);
	assert_int_equal(order_kind_parse("torch "), 0);
	assert_int_equal(order_tail_parse("padding"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_keep_their_names_and_numbers),
		cmocka_unit_test(tails_keep_their_names_and_numbers),
		cmocka_unit_test(unknown_ones_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
