/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas and charges: nothing is given twice, and memory counts while anybody holds it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/charge.h"
#include "control/quota.h"

static const struct config_limits limits = {
	.ring_bytes = 1000,
	.lanes = 2,
	.sessions = 1,
	.workers_share = 100,
};

static void each_uid_has_its_own(void **state)
{
	struct quota *q;
	char text[512];

	(void)state;
	assert_int_equal(quota_new(&q, &limits, 1 << 20), 0);
	assert_int_equal(quota_take_session(q, 1, text, sizeof(text)), 0);
	assert_int_equal(quota_take_session(q, 1, text, sizeof(text)), -EDQUOT);
	assert_non_null(strstr(text, "uid 1 has 1 sessions open"));
	assert_int_equal(quota_take_session(q, 2, text, sizeof(text)), 0);
	assert_int_equal(quota_take_lane(q, 1, text, sizeof(text)), 0);
	assert_int_equal(quota_take_lane(q, 1, text, sizeof(text)), 0);
	assert_int_equal(quota_take_lane(q, 1, text, sizeof(text)), -EDQUOT);
	quota_give_lane(q, 1);
	assert_int_equal(quota_take_lane(q, 1, text, sizeof(text)), 0);
	quota_give_session(q, 1);
	assert_int_equal(quota_take_session(q, 1, text, sizeof(text)), 0);
	quota_free(q);
}

static void bytes_do_not_wrap(void **state)
{
	struct quota *q;
	char text[512];

	(void)state;
	assert_int_equal(quota_new(&q, &limits, 1 << 20), 0);
	assert_int_equal(quota_take_bytes(q, 1, 600, text, sizeof(text)), 0);
	assert_int_equal(quota_take_bytes(q, 1, 401, text, sizeof(text)), -EDQUOT);
	assert_non_null(strstr(text, "needs 401 bytes"));
	assert_non_null(strstr(text, "holds 600"));
	assert_non_null(strstr(text, "limit is 1000"));
	assert_int_equal(quota_take_bytes(q, 1, UINT64_MAX - 100, text, sizeof(text)), -EDQUOT);
	assert_int_equal(quota_take_bytes(q, 1, 400, text, sizeof(text)), 0);
	assert_int_equal(quota_ring_bytes(q), 1000);
	quota_give_bytes(q, 1, 1000);
	assert_int_equal(quota_ring_bytes(q), 0);
	quota_free(q);
}

static void default_is_half_of_the_memory(void **state)
{
	struct config_limits none = limits;
	struct quota *q;

	(void)state;
	none.ring_bytes = 0;
	assert_int_equal(quota_new(&q, &none, 5000), 0);
	assert_int_equal(quota_ring_limit(q), 2500);
	quota_set_limits(q, &limits);
	assert_int_equal(quota_ring_limit(q), 1000);
	quota_free(q);
}

static void rounds(struct loop *loop)
{
	for (int i = 0; i < 5; i++)
		assert_int_equal(loop_once(loop, 5), 0);
}

/* A closed lane's memory, passed on to another process that maps it. */
static void charged_until_the_last_mapping_is_gone(void **state)
{
	struct loop *loop;
	struct quota *q;
	struct charges *charges;
	char text[512];
	int go[2];

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(quota_new(&q, &limits, 1 << 20), 0);
	assert_int_equal(charges_new(&charges, loop, q), 0);
	assert_int_equal(pipe(go), 0);
	int fd = memfd_create("charge", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fchmod(fd, 0400), 0);
	assert_int_equal(quota_take_bytes(q, 7, 500, text, sizeof(text)), 0);
	assert_int_equal(charge_watch(charges, 7, 500, fd), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char byte;

		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0); /* until the parent closes its end */
	}
	close(fd);
	rounds(loop);
	assert_int_equal(quota_ring_bytes(q), 500);
	close(go[1]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rounds(loop);
	assert_int_equal(quota_ring_bytes(q), 0);
	close(go[0]);
	charges_free(charges);
	quota_free(q);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_uid_has_its_own),
		cmocka_unit_test(bytes_do_not_wrap),
		cmocka_unit_test(default_is_half_of_the_memory),
		cmocka_unit_test(charged_until_the_last_mapping_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
