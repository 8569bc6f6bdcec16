/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <dirent.h>
#include <string.h>

void fixture_connect(struct fixture *x, const struct fake_config *config)
{
	struct feeder_connect_options options;

	*x = (struct fixture){ .batch = { .size = sizeof(x->batch) } };
	x->fake = fake_start(NULL, config);
	feeder_connect_options_init(&options);
	options.socket = x->fake->path;
	options.job = "test";
	options.timeout_ms = 5000;
	if (feeder_connect(&x->f, &options) < 0)
		fail_msg("%s", feeder_last_error());
}

void fixture_start(struct fixture *x, const struct fake_config *config, int lane_timeout_ms)
{
	struct feeder_lane_config lane;

	fixture_connect(x, config);
	feeder_lane_config_init(&lane);
	lane.batch_size = 4;
	if (lane_timeout_ms > 0)
		lane.timeout_ms = lane_timeout_ms;
	if (feeder_lane_open(&x->lane, x->f, "/tmp", &lane) < 0)
		fail_msg("%s", feeder_last_error());
}

void fixture_stop(struct fixture *x)
{
	feeder_disconnect(x->f);
	fake_stop(x->fake);
}

void fixture_check_pixels(const struct feeder_batch *batch)
{
	for (uint32_t i = 0; i < batch->capacity; i++) {
		const uint8_t *image = (const uint8_t *)batch->images + i * batch->image_stride;

		for (uint64_t k = 0; k < batch->image_stride; k++) {
			if (image[k] != fake_pixel(batch->number, i))
				fail_msg("batch %u place %u byte %u is %02x",
					(unsigned)batch->number, i, (unsigned)k, image[k]);
		}
		assert_int_equal(batch->labels[i], fake_label(batch->number, i));
	}
}

void fixture_next(struct fixture *x, uint64_t n)
{
	if (feeder_next(x->lane, &x->batch, 5000) < 0)
		fail_msg("batch %u: %s", (unsigned)n, feeder_last_error());
	assert_int_equal(x->batch.number, n);
	fixture_check_pixels(&x->batch);
}

void assert_error_says(const char *words)
{
	if (!strstr(feeder_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", feeder_last_error(), words);
}

unsigned int count_fds(void)
{
	unsigned int count = 0;
	DIR *dir = opendir("/proc/self/fd");

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}
