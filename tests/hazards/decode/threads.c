/* SPDX-License-Identifier: Apache-2.0 */
/* Row A72: one codec a thread; also what builds with ThreadSanitizer are run for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"

enum { THREADS = 8, FILES = 3, ROUNDS = 40 };

static struct jpeg_file files[FILES];
static uint64_t digests[FILES];

struct job {
	pthread_t thread;
	unsigned int number;
	unsigned int wrong;
};

static void *run_job(void *arg)
{
	struct job *job = arg;
	struct decoder *d = check_decoder();

	for (unsigned int i = 0; i < ROUNDS; i++) {
		unsigned int n = (i + job->number) % FILES;
		const struct jpeg_file cut = { files[n].bytes, files[n].size / 2 };
		struct region region;
		struct fault fault;

		if (check_whole(d, &files[n], &region, &fault) != 0 ||
			check_digest(&region) != digests[n])
			job->wrong++;
		if (check_whole(d, &cut, &region, &fault) != FEEDER_STATUS_TRUNCATED)
			job->wrong++;
	}
	decoder_free(d);
	return NULL;
}

/* More threads than files, good and damaged, each thread with its own decoder. */
static void a72_one_decoder_a_thread(void **unused)
{
	struct decoder *d = check_decoder();
	struct job jobs[THREADS] = { 0 };

	(void)unused;
	for (unsigned int i = 0; i < FILES; i++) {
		const struct jpeg_recipe r = { .width = 60 + i * 9,
			.height = 50,
			.sampling = { { 2, 2 } },
			.progressive = i == 1,
			.model = i == 2 ? MODEL_YCCK : MODEL_YCC,
			.seed = i };
		struct region region;
		struct fault fault;

		jpeg_make(&r, &files[i]);
		assert_int_equal(check_whole(d, &files[i], &region, &fault), 0);
		digests[i] = check_digest(&region);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		jobs[i].number = i;
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		assert_int_equal(jobs[i].wrong, 0);
	}
	for (unsigned int i = 0; i < FILES; i++)
		jpeg_file_free(&files[i]);
	decoder_free(d);
}

/* The decoder, if both calls were refused by name. */
static void *use_anothers(void *arg)
{
	struct decoder *d = arg;
	const struct box box = { 0, 0, 1, 1 };
	struct region region;
	struct fault fault = { 0 };

	if (decoder_region(d, &box, &region, &fault) != FEEDER_STATUS_INTERNAL ||
		decoder_check_end(d, &fault) != FEEDER_STATUS_INTERNAL)
		return NULL;
	return strstr(fault.text, "another thread") ? d : NULL;
}

/* An image that one thread opened is refused to another; opening anew is allowed to anybody. */
static void a72_an_image_has_one_owner(void **unused)
{
	const struct jpeg_recipe r = { .width = 20, .height = 20 };
	struct decoder *d = check_decoder();
	struct image_info info;
	struct region region;
	struct fault fault;
	struct jpeg_file f;
	pthread_t thread;
	void *result;

	(void)unused;
	jpeg_make(&r, &f);
	assert_int_equal(decoder_open(d, f.bytes, f.size, &info, &fault), 0);
	assert_int_equal(pthread_create(&thread, NULL, use_anothers, d), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, d);
	assert_int_equal(decoder_region(d, &(struct box){ 0, 0, 20, 20 }, &region, &fault), 0);
	jpeg_file_free(&f);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a72_one_decoder_a_thread),
		cmocka_unit_test(a72_an_image_has_one_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
