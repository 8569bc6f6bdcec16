/* SPDX-License-Identifier: Apache-2.0 */
/* A warm reader allocates nothing: the program is linked with --wrap for the allocating calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int calls; /* guarded by lock */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static void count(void)
{
	pthread_mutex_lock(&lock);
	calls++;
	pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t size)
{
	count();
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	count();
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	count();
	return __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	count();
	return __real_aligned_alloc(alignment, size);
}

static void nothing_is_allocated_once_warm(enum reader_backend backend)
{
	struct reader_config config;
	struct reader *r;
	struct fixture f;

	fixture_init(&f);
	fixture_files(&f, 60, 50000, 5);
	reader_config_init(&config);
	r = start(&f, backend, &config);
	for (unsigned int i = 0; i < 3; i++) {
		pthread_mutex_lock(&lock);
		if (i == 1)
			assert_true(calls > 0);
		calls = 0;
		pthread_mutex_unlock(&lock);
		fixture_run(&f, r);
		fixture_check(&f, 0);
	}
	pthread_mutex_lock(&lock);
	assert_int_equal(calls, 0);
	pthread_mutex_unlock(&lock);
	reader_free(r);
	fixture_deinit(&f, false);
}

static void uring_allocates_nothing_once_warm(void **state)
{
	(void)state;
	nothing_is_allocated_once_warm(backend_of(0));
}

static void pread_allocates_nothing_once_warm(void **state)
{
	(void)state;
	nothing_is_allocated_once_warm(backend_of(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uring_allocates_nothing_once_warm),
		cmocka_unit_test(pread_allocates_nothing_once_warm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
