/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 against Random123's published known answers, and the per-sample streams. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/philox.h"

static void known_answers_hold(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} answers[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff },
			{ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
			{ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		uint32_t out[4], in_place[4];

		philox4x32_10(answers[i].counter, answers[i].key, out);
		assert_memory_equal(out, answers[i].out, sizeof(out));
		memcpy(in_place, answers[i].counter, sizeof(in_place));
		philox4x32_10(in_place, answers[i].key, in_place);
		assert_memory_equal(in_place, answers[i].out, sizeof(out));
	}
}

/* Words 0 to 3 are block 0's, 4 to 7 block 1's, and so on: the counter's last word counts them. */
static void a_stream_gives_the_words_of_its_blocks_in_order(void **state)
{
	const uint64_t seed = 0x0123456789abcdef, id = 0xfedcba9876543210;
	const uint32_t key[2] = { 0x89abcdef, 0x01234567 };
	struct philox_stream s;

	(void)state;
	philox_stream_init(&s, seed, id, 5, 3, 2);
	for (uint32_t block = 0; block < 20; block++) {
		const uint32_t counter[4] = { 0x76543210, 0xfedcba98, 5, 0x03020000 + block };
		uint32_t words[4];

		philox4x32_10(counter, key, words);
		for (int i = 0; i < 4; i++)
			assert_int_equal(philox_stream_next(&s), words[i]);
	}
}

/* Each of seed (both halves), id (both halves), epoch, view and operation changes the words. */
static void streams_differ_by_all_that_names_them(void **state)
{
	static const struct {
		uint64_t seed, id;
		uint32_t epoch, view, operation;
	} names[] = { { 1, 2, 3, 4, 5 }, { 0, 2, 3, 4, 5 }, { 1 + (UINT64_C(1) << 32), 2, 3, 4, 5 },
		{ 1, 3, 3, 4, 5 }, { 1, 2 + (UINT64_C(1) << 32), 3, 4, 5 }, { 1, 2, 4, 4, 5 },
		{ 1, 2, 3, 5, 5 }, { 1, 2, 3, 4, 6 }, { 2, 1, 3, 4, 5 } };
	const size_t count = sizeof(names) / sizeof(names[0]);
	uint32_t words[sizeof(names) / sizeof(names[0])][8];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct philox_stream s;

		philox_stream_init(&s, names[i].seed, names[i].id, names[i].epoch, names[i].view,
			names[i].operation);
		for (int w = 0; w < 8; w++)
			words[i][w] = philox_stream_next(&s);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(words[i], words[j], sizeof(words[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers_hold),
		cmocka_unit_test(a_stream_gives_the_words_of_its_blocks_in_order),
		cmocka_unit_test(streams_differ_by_all_that_names_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
