/* SPDX-License-Identifier: Apache-2.0 */
/* A ring that is made: what it can and how few kernel workers it may have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "reader/uring-ring.h"

static void a_ring_has_room_and_few_workers(void **state)
{
	unsigned int workers[2] = { 0, 0 }; /* asks */
	struct io_uring ring;
	char text[256] = "";
	bool opens = false;

	(void)state;
	need_uring();
	assert_int_equal(uring_ring_open(&ring, 130, NULL, 1, &opens, text, sizeof(text)), 0);
	assert_true(opens);
	assert_true(io_uring_sq_space_left(&ring) >= 130);
	assert_true(ring.cq.ring_entries >= 2 * 130);
	assert_int_equal(io_uring_register_iowq_max_workers(&ring, workers), 0);
	assert_int_equal(workers[0], 16);
	assert_int_equal(workers[1], 4);
	io_uring_queue_exit(&ring);
}

static void a_refusal_names_its_cause(void **state)
{
	static const struct {
		int error;
		const char *words;
	} causes[] = {
		{ EPERM, "forbidden (EPERM)" },
		{ ENOSYS, "(ENOSYS): a seccomp profile or sandbox hides it" },
		{ ENOMEM, "locked memory limit of" },
		{ ENFILE, "no ring (ENFILE)" },
	};
	struct io_uring ring;
	bool opens;

	(void)state;
	for (unsigned int i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct reader_faults faults = { .ring_from = 2, .ring_error = causes[i].error };
		char text[256] = "";

		assert_int_equal(uring_ring_open(&ring, 8, &faults, 2, &opens, text, sizeof(text)),
			-causes[i].error);
		if (!strstr(text, causes[i].words))
			fail_msg("the cause was given as: %s", text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_has_room_and_few_workers),
		cmocka_unit_test(a_refusal_names_its_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
