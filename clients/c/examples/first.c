/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first program: one epoch of a folder of images.
 *
 *	cc first.c -o first $(pkg-config --cflags --libs feeder)
 *	./first /data/train
 */
#include <stdio.h>

#include <feeder/feeder.h>

int main(int argc, char **argv)
{
	struct feeder *f = NULL;
	struct feeder_lane *lane = NULL;
	struct feeder_lane_config config;
	struct feeder_batch batch = { .size = sizeof(batch) };
	unsigned long long images = 0;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: first DATASET\n");
		return 2;
	}
	feeder_lane_config_init(&config);
	config.batch_size = 64;

	r = feeder_connect(&f, NULL);
	if (r == 0)
		r = feeder_lane_open(&lane, f, argv[1], &config);
	while (r == 0) {
		r = feeder_next(lane, &batch, -1);
		if (r < 0)
			break;
		/* batch.images: count × 224 × 224 × 3 bytes, inside the ring until released */
		images += batch.count;
		printf("epoch %llu step %llu: %u images, first label %lld\n",
			(unsigned long long)batch.epoch, (unsigned long long)batch.step,
			batch.count, (long long)batch.labels[0]);
		r = feeder_release(lane, batch.number);
		if (batch.last_of_epoch)
			break;
	}
	if (r < 0)
		fprintf(stderr, "first: %s\n", feeder_last_error());
	else
		printf("%llu images, order digest %016llx\n", images,
			(unsigned long long)feeder_order_digest(lane));
	feeder_disconnect(f);
	return r < 0;
}
