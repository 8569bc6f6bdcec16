/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permutations against torch's own: values and hashes (sha256 of the int64 little-endian array)
 * were taken from torch.randperm of torch 1.13 and 2.11, those of the inside-out loop on small n
 * and of feistel from Python that was written from protocol/order.md and not from the C.
 */
#include "test.h"

#include <endian.h>
#include <errno.h>

#include "base/stop.h"
#include "order/feistel.h"
#include "order/randperm.h"
#include "sha256.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void hash_add(struct sha256 *s, uint64_t id)
{
	uint64_t le = htole64(id);

	sha256_update(s, &le, sizeof(le));
}

static struct permutation *make(int kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct permutation *p = NULL;

	assert_int_equal(permutation_new(&p, kind, n, seed, epoch, NULL, 0, NULL), 0);
	assert_non_null(p);
	assert_true(permutation_length(p) == n);
	return p;
}

struct vector {
	uint64_t n, seed, epoch;
	int first[20]; /* ended by -1 */
	int last[3];
	const char *hash;
};

static void check_vector(int kind, const struct vector *v)
{
	struct permutation *p = make(kind, v->n, v->seed, v->epoch);
	struct sha256 s;
	char hash[17];

	for (int i = 0; i < 20 && v->first[i] >= 0; i++)
		assert_true(permutation_at(p, (uint64_t)i) == (uint64_t)v->first[i]);
	for (uint64_t i = 0; i < 3 && v->last[0] >= 0; i++)
		assert_true(permutation_at(p, v->n - 3 + i) == (uint64_t)v->last[i]);
	sha256_init(&s);
	for (uint64_t i = 0; i < v->n; i++)
		hash_add(&s, permutation_at(p, i));
	sha256_finish16(&s, hash);
	assert_string_equal(hash, v->hash);
	permutation_free(p);
}

static void sha256_gives_its_known_answers(void **state)
{
	struct sha256 s;
	char hash[17];

	(void)state;
	sha256_init(&s);
	sha256_update(&s, "abc", 3);
	sha256_finish16(&s, hash);
	assert_string_equal(hash, "ba7816bf8f01cfea");
	sha256_init(&s);
	for (int i = 0; i < 100000; i++)
		sha256_update(&s, "aaaaaaaaaa", 10);
	sha256_finish16(&s, hash);
	assert_string_equal(hash, "cdc76e5c9914fb92");
}

static void torch_is_bit_equal(void **state)
{
	static const struct vector vectors[] = {
		{ 10, 0, 0, { 4, 1, 7, 5, 3, 9, 0, 8, 6, 2, -1 }, { 8, 6, 2 }, "03a19defe024a605" },
		{ 20, 42, 0,
			{ 2, 14, 18, 15, 1, 10, 0, 4, 6, 11, 8, 3, 7, 17, 13, 12, 19, 5, 16, 9 },
			{ 5, 16, 9 }, "f51300571bd72039" },
		{ 1000, 1234567, 0, { 531, 591, 356, 787, 553, -1 }, { 506, 277, 840 },
			"923e7b446f7f7b35" },
		{ 1281167, 0, 0, { 1069931, 571398, 762430, 399643, 899707, -1 },
			{ 615438, 152445, 922209 }, "bbf70b62862c7ae6" },
		{ 16, UINT64_C(1) << 32, 0,
			{ 12, 10, 9, 6, 11, 8, 13, 5, 2, 14, 15, 0, 4, 3, 7, 1, -1 }, { 3, 7, 1 },
			"897818e7510c15f8" },
		{ 16, (UINT64_C(1) << 63) + 7, 0,
			{ 15, 8, 0, 7, 11, 2, 13, 12, 3, 1, 14, 9, 4, 6, 10, 5, -1 }, { 6, 10, 5 },
			"29b609e77bac31a1" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(vectors); i++)
		check_vector(ORDER_TORCH, &vectors[i]);
}

static void torch_adds_seed_and_epoch_and_cuts_to_32_bits(void **state)
{
	static const struct {
		uint64_t seed, epoch;
	} pairs[] = { { 0, 5 }, { 5, 0 }, { UINT64_C(1) << 32, 5 }, { UINT64_MAX, 6 } };

	(void)state;
	for (size_t i = 1; i < COUNT(pairs); i++) {
		struct permutation *a = make(ORDER_TORCH, 100, pairs[0].seed, pairs[0].epoch);
		struct permutation *b = make(ORDER_TORCH, 100, pairs[i].seed, pairs[i].epoch);

		for (uint64_t p = 0; p < 100; p++)
			assert_true(permutation_at(a, p) == permutation_at(b, p));
		permutation_free(a);
		permutation_free(b);
	}
}

static void the_loop_changes_at_214748364(void **state)
{
	(void)state;
	assert_false(randperm_is_inside_out(214748363));
	assert_true(randperm_is_inside_out(214748364));
	assert_true(randperm_is_inside_out(UINT64_C(1) << 33));
}

static void inside_out_is_bit_equal_when_forced_on_small_n(void **state)
{
	static const struct {
		uint64_t n;
		uint32_t seed;
		const char *hash;
	} vectors[] = { { 10, 0, "ac0a4c960f57d6fe" }, { 20, 42, "04db0621d45d1e5d" },
		{ 2000, 7, "a444d5ed02b32545" } };
	static const uint32_t ten[10] = { 8, 2, 6, 3, 5, 1, 0, 9, 7, 4 };
	static const uint32_t twenty[20] = { 15, 12, 19, 11, 18, 13, 3, 1, 9, 4, 7, 14, 17, 2, 8,
		16, 6, 0, 10, 5 };
	uint32_t ids[2000];

	(void)state;
	for (size_t v = 0; v < COUNT(vectors); v++) {
		struct sha256 s;
		char hash[17];

		assert_int_equal(randperm_inside_out(ids, vectors[v].n, vectors[v].seed, NULL), 0);
		sha256_init(&s);
		for (uint64_t i = 0; i < vectors[v].n; i++)
			hash_add(&s, ids[i]);
		sha256_finish16(&s, hash);
		assert_string_equal(hash, vectors[v].hash);
	}
	randperm_inside_out(ids, 10, 0, NULL);
	assert_memory_equal(ids, ten, sizeof(ten));
	randperm_inside_out(ids, 20, 42, NULL);
	assert_memory_equal(ids, twenty, sizeof(twenty));
}

/* What n ≥ 2^32 needs 32 GiB for: the wide form is the narrow one, on either side of a block. */
static void wide_ids_are_shuffled_alike(void **state)
{
	uint32_t narrow[1000];
	uint64_t wide[1000];

	(void)state;
	for (uint64_t n = 0; n <= 1000; n += n < 20 || (n > 308 && n < 316) ? 1 : 9) {
		assert_int_equal(randperm_inside_out(narrow, n, 99, NULL), 0);
		assert_int_equal(randperm_inside_out_wide(wide, n, 99, NULL), 0);
		for (uint64_t i = 0; i < n; i++)
			assert_true(narrow[i] == wide[i]);
	}
}

static void torch_is_bit_equal_on_both_sides_of_the_change(void **state)
{
	static const struct vector vectors[] = {
		{ 214748363, 0, 0, { 209652414, 184016258, 65237881, 190120003, 11868659, -1 },
			{ 3969528, 51934543, 53763082 }, NULL },
		{ 214748364, 0, 0, { 180140102, 136514640, 18739608, 22357822, 33761584, -1 },
			{ 10659741, 142775043, 79202631 }, NULL },
	};

	(void)state;
	for (size_t v = 0; v < COUNT(vectors); v++) {
		uint64_t n = vectors[v].n;
		struct permutation *p = make(ORDER_TORCH, n, 0, 0);

		for (uint64_t i = 0; i < 5; i++)
			assert_true(permutation_at(p, i) == (uint64_t)vectors[v].first[i]);
		for (uint64_t i = 0; i < 3; i++)
			assert_true(permutation_at(p, n - 3 + i) == (uint64_t)vectors[v].last[i]);
		permutation_free(p);
	}
}

static void feistel_equals_the_formula(void **state)
{
	static const struct vector vectors[] = {
		{ 1, 0, 0, { 0, -1 }, { -1 }, "af5570f5a1810b7a" },
		{ 2, 0, 0, { 0, 1, -1 }, { -1 }, "9d34149fbd1fe777" },
		{ 3, 7, 1, { 2, 0, 1, -1 }, { 2, 0, 1 }, "53afea624a503a0b" },
		{ 10, 0, 0, { 2, 7, 1, 0, 9, 8, 5, 4, 6, 3, -1 }, { 4, 6, 3 }, "17d2bf4974c27768" },
		{ 10, 0, 1, { 3, 2, 0, 1, 6, 7, 5, 8, 9, 4, -1 }, { 8, 9, 4 }, "e54ba3f00fe70bf8" },
		{ 10, 1, 0, { 7, 9, 0, 4, 5, 8, 3, 1, 6, 2, -1 }, { 1, 6, 2 }, "091f3b3608bc9e71" },
		{ 17, UINT64_C(1) << 32, 0, { 5, 14, 16, 9, 12, 15, 4, 3, 8, 6, 10, 2, 13, -1 },
			{ 7, 0, 1 }, "83c9a170769e64e6" },
		{ 1000, 1234567, 3, { 415, 654, 8, 370, 100, -1 }, { -1 }, "bd5f92f3d986e7a7" },
		{ 65536, 0, 0, { 8175, 39153, 18478, -1 }, { -1 }, "58b01be6fd54a7d2" },
		{ 65537, (UINT64_C(1) << 63) + 7, 5, { 22907, 39716, 2141, -1 }, { -1 },
			"50d6948b2f385c8b" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(vectors); i++)
		check_vector(ORDER_FEISTEL, &vectors[i]);
}

static void feistel_reaches_far_beyond_memory(void **state)
{
	static const struct {
		uint64_t n, seed, epoch, position, id;
	} points[] = {
		{ 1281167, 0, 0, 0, 1130233 },
		{ 1281167, 0, 0, 3, 1247675 },
		{ 1281167, 0, 0, 1281166, 1067165 },
		{ 1000000000, 0, 0, 0, 535944499 },
		{ 1000000000, 0, 0, 1, 336170434 },
		{ 1000000000, 0, 0, 2, 739800753 },
		{ 1000000000, 0, 0, 999999999, 936659366 },
		{ 1000000000000, 42, 7, 0, 941862808614 },
		{ 1000000000000, 42, 7, 123456789012, 178090996798 },
		{ 1000000000000, 42, 7, 999999999999, 158198313321 },
		{ UINT64_C(1) << 62, UINT64_MAX, UINT64_MAX, 0, 2151589580653790063 },
		{ UINT64_C(1) << 62, UINT64_MAX, UINT64_MAX, 1, 4444893415327405342 },
		{ UINT64_C(1) << 62, UINT64_MAX, UINT64_MAX, (UINT64_C(1) << 62) - 1,
			3699391128412670482 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(points); i++) {
		struct permutation *p =
			make(ORDER_FEISTEL, points[i].n, points[i].seed, points[i].epoch);

		assert_true(permutation_at(p, points[i].position) == points[i].id);
		assert_true(permutation_memory(p) == 0);
		permutation_free(p);
	}
}

static void feistel_is_a_bijection_for_every_n(void **state)
{
	static uint32_t seen[2001]; /* the n that saw the id last */

	(void)state;
	for (uint32_t n = 1; n <= 2000; n++) {
		struct feistel f;

		feistel_init(&f, n, n * UINT64_C(0x123456789), n % 7);
		for (uint32_t p = 0; p < n; p++) {
			uint64_t id = feistel_at(&f, p);

			if (id >= n || seen[id] == n)
				fail_msg("n %u: position %u gives %" PRIu64 " again", n, p, id);
			seen[id] = n;
		}
	}
}

static unsigned int places_that_agree(struct permutation *a, struct permutation *b)
{
	unsigned int same = 0;

	for (uint64_t p = 0; p < permutation_length(a); p++)
		same += permutation_at(a, p) == permutation_at(b, p);
	return same;
}

/* All 64 bits of a seed count, and (seed, epoch) is no sum: unlike torch. */
static void feistel_differs_by_seed_and_epoch(void **state)
{
	static const struct {
		uint64_t seed, epoch;
	} others[] = { { 5, 1 }, { 6, 0 }, { 0, 5 }, { 5 + (UINT64_C(1) << 32), 0 },
		{ 5 + (UINT64_C(1) << 63), 0 }, { 4, 1 } };
	struct permutation *a = make(ORDER_FEISTEL, 5000, 5, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		struct permutation *b = make(ORDER_FEISTEL, 5000, others[i].seed, others[i].epoch);

		/* Two random orders agree in about one place. */
		assert_in_range(places_that_agree(a, b), 0, 12);
		permutation_free(b);
	}
	permutation_free(a);
}

static void sequential_is_the_identity(void **state)
{
	struct permutation *p = make(ORDER_SEQUENTIAL, 7, 3, 9);

	(void)state;
	for (uint64_t i = 0; i < 7; i++)
		assert_true(permutation_at(p, i) == i);
	assert_true(permutation_memory(p) == 0);
	permutation_free(p);
}

static void ids_are_copied_as_given(void **state)
{
	static const int kinds[] = { ORDER_IDS, ORDER_DATALOADER };
	/* A weighted draw: longer than a subset, with repeats. */
	static const int64_t given[6] = { 3, 3, 0, 4, 3, 1 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct permutation *p = NULL;
		int64_t ids[6];

		memcpy(ids, given, sizeof(ids));
		assert_int_equal(permutation_new(&p, kinds[k], 6, 0, 0, ids, 5, NULL), 0);
		memset(ids, 0xff, sizeof(ids));
		for (uint64_t i = 0; i < 6; i++)
			assert_true(permutation_at(p, i) == (uint64_t)given[i]);
		assert_true(permutation_memory(p) == 6 * 4);
		permutation_free(p);
	}
}

static void ids_beyond_32_bits_are_held_whole(void **state)
{
	static const int64_t ids[3] = { (INT64_C(1) << 40) + 1, 0, INT64_C(1) << 32 };
	struct permutation *p = NULL;

	(void)state;
	assert_int_equal(permutation_new(&p, ORDER_IDS, 3, 0, 0, ids, UINT64_C(1) << 41, NULL), 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_true(permutation_at(p, i) == (uint64_t)ids[i]);
	assert_true(permutation_memory(p) == 3 * 8);
	permutation_free(p);
}

static void ids_out_of_range_are_refused(void **state)
{
	static const int64_t cases[][3] = { { 0, 1, 5 }, { -1, 0, 1 }, { 0, INT64_MIN, 1 },
		{ 0, 1, INT64_MAX } };
	struct permutation *p = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(
			permutation_new(&p, ORDER_IDS, 3, 0, 0, cases[i], 5, NULL), -ERANGE);
	/* Negative, however many samples there are. */
	assert_int_equal(
		permutation_new(&p, ORDER_IDS, 3, 0, 0, cases[2], UINT64_MAX, NULL), -ERANGE);
	assert_null(p);
}

static void what_cannot_be_made_is_refused(void **state)
{
	struct permutation *p = NULL;
	const uint64_t too_many = UINT64_MAX / 2;

	(void)state;
	assert_int_equal(permutation_new(&p, ORDER_TORCH, 0, 0, 0, NULL, 0, NULL), -EINVAL);
	assert_int_equal(permutation_new(&p, ORDER_IDS, 3, 0, 0, NULL, 5, NULL), -EINVAL);
	assert_int_equal(permutation_new(&p, ORDER_BLOCK, 3, 0, 0, NULL, 0, NULL), -ENOSYS);
	assert_int_equal(permutation_new(&p, 0, 3, 0, 0, NULL, 0, NULL), -EINVAL);
	assert_int_equal(permutation_new(&p, 7, 3, 0, 0, NULL, 0, NULL), -EINVAL);
	assert_int_equal(permutation_new(&p, ORDER_TORCH, too_many, 0, 0, NULL, 0, NULL), -ENOMEM);
	assert_null(p);
	permutation_free(NULL);
}

static void a_set_stop_flag_ends_every_loop(void **state)
{
	static const int64_t ids[2] = { 0, 1 };
	uint32_t narrow[2];
	uint64_t wide[2];
	struct permutation *p = NULL;
	atomic_bool stop;

	(void)state;
	atomic_init(&stop, false);
	assert_int_equal(permutation_new(&p, ORDER_TORCH, 1000, 0, 0, NULL, 0, &stop), 0);
	permutation_free(p);
	p = NULL;
	stop_ask(&stop);
	assert_int_equal(permutation_new(&p, ORDER_TORCH, 1000, 0, 0, NULL, 0, &stop), -ECANCELED);
	assert_int_equal(permutation_new(&p, ORDER_IDS, 2, 0, 0, ids, 2, &stop), -ECANCELED);
	assert_int_equal(randperm_inside_out(narrow, 2, 0, &stop), -ECANCELED);
	assert_int_equal(randperm_inside_out_wide(wide, 2, 0, &stop), -ECANCELED);
	assert_null(p);
}

static void torch_holds_four_bytes_an_id(void **state)
{
	struct permutation *p = make(ORDER_TORCH, 1000, 0, 0);

	(void)state;
	assert_true(permutation_memory(p) == 4000);
	permutation_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_gives_its_known_answers),
		cmocka_unit_test(torch_is_bit_equal),
		cmocka_unit_test(torch_adds_seed_and_epoch_and_cuts_to_32_bits),
		cmocka_unit_test(the_loop_changes_at_214748364),
		cmocka_unit_test(inside_out_is_bit_equal_when_forced_on_small_n),
		cmocka_unit_test(wide_ids_are_shuffled_alike),
		cmocka_unit_test(feistel_equals_the_formula),
		cmocka_unit_test(feistel_reaches_far_beyond_memory),
		cmocka_unit_test(feistel_is_a_bijection_for_every_n),
		cmocka_unit_test(feistel_differs_by_seed_and_epoch),
		cmocka_unit_test(sequential_is_the_identity),
		cmocka_unit_test(ids_are_copied_as_given),
		cmocka_unit_test(ids_beyond_32_bits_are_held_whole),
		cmocka_unit_test(ids_out_of_range_are_refused),
		cmocka_unit_test(what_cannot_be_made_is_refused),
		cmocka_unit_test(a_set_stop_flag_ends_every_loop),
		cmocka_unit_test(torch_holds_four_bytes_an_id),
	};
	/* 860 MB and some tens of CPU seconds. */
	const struct CMUnitTest large[] = {
		cmocka_unit_test(torch_is_bit_equal_on_both_sides_of_the_change),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (long_form())
		failed += cmocka_run_group_tests(large, NULL, NULL);
	return failed;
}
