/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a test: prints what feeder_next and feeder_release cost with batches ready. The fake
 * publishes 1,000 batches into as many slots, then they are taken and given back one by one;
 * median of all, in nanoseconds, less the clock's own cost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake-daemon.h"
#include "feeder/feeder.h"

#define BATCHES 1000

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *times)
{
	qsort(times, BATCHES, sizeof(*times), compare);
	return times[BATCHES / 2];
}

int main(void)
{
	static uint64_t next[BATCHES];
	static uint64_t release[BATCHES];
	static uint64_t clock[BATCHES];
	struct fake *fake = fake_start(
		NULL, &(struct fake_config){
			      .slots = BATCHES, .capacity = 4, .side = 4, .manual = true });
	struct feeder_connect_options options;
	struct feeder_batch batch = { .size = sizeof(batch) };
	struct feeder *f = NULL;
	struct feeder_lane *lane = NULL;

	feeder_connect_options_init(&options);
	options.socket = fake->path;
	if (feeder_connect(&f, &options) < 0 || feeder_lane_open(&lane, f, "/tmp", NULL) < 0) {
		fprintf(stderr, "%s\n", feeder_last_error());
		return 1;
	}
	fake_allow(fake, BATCHES);
	usleep(100000);
	fake_freeze(fake, true);
	for (unsigned int i = 0; i < BATCHES; i++) {
		uint64_t t[4];

		t[0] = now_ns();
		if (feeder_next(lane, &batch, 0) < 0) {
			fprintf(stderr, "%s\n", feeder_last_error());
			return 1;
		}
		t[1] = now_ns();
		feeder_release(lane, batch.number);
		t[2] = now_ns();
		t[3] = now_ns();
		next[i] = t[1] - t[0];
		release[i] = t[2] - t[1];
		clock[i] = t[3] - t[2];
	}
	uint64_t own = median(clock);

	printf("next %llu ns, release %llu ns\n", (unsigned long long)(median(next) - own),
		(unsigned long long)(median(release) - own));
	fake_freeze(fake, false);
	feeder_disconnect(f);
	fake_stop(fake);
	return 0;
}
