/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a test: CPU time of every variant over the same random RandomResizedCrop boxes of a 500x375
 * picture, each as a ratio to the C reference of the same run.
 *
 *	bench-resize [ROUNDS [WIDTH HEIGHT [FILTER]]]
 */
#include "transform/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BOXES 400
#define SIZE  224

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct bench {
	uint32_t width, height, filter;
	uint8_t *picture;
	uint8_t *out;
	struct crop_box box[BOXES];
	bool flip[BOXES];
};

static double run_once(const struct bench *b, struct resizer *r)
{
	uint64_t start = cpu_ns();

	for (int i = 0; i < BOXES; i++) {
		const struct crop_box *box = &b->box[i];
		struct resize_plan plan = { .in_w = box->w,
			.in_h = box->h,
			.out_w = SIZE,
			.out_h = SIZE,
			.ww = SIZE,
			.wh = SIZE,
			.filter = b->filter,
			.flip = b->flip[i] };
		size_t stride = (size_t)b->width * 3;

		if (resizer_run(r, &plan, b->picture + box->y * stride + 3 * (size_t)box->x, stride,
			    0, 0, b->out, SIZE * 3) < 0)
			abort();
	}
	return (double)(cpu_ns() - start) / BOXES;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void make_boxes(struct bench *b)
{
	const float scale[2] = { 0.08f, 1.0f }, ratio[2] = { 3.0f / 4, 4.0f / 3 };
	double area = 0;

	for (uint32_t i = 0; i < BOXES; i++) {
		struct philox_stream s;

		philox_stream_init(&s, 1, i, 0, 0, OPERATION_RANDOM_RESIZED_CROP);
		b->box[i] = random_resized_crop(&s, b->width, b->height, scale, ratio);
		b->flip[i] = random_flip(&s, 0.5f);
		area += (double)b->box[i].w * b->box[i].h;
	}
	printf("%d boxes of %ux%u, mean %.0f kpx, to %dx%d\n", BOXES, b->width, b->height,
		area / BOXES / 1000, SIZE, SIZE);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 11;
	struct bench b = {
		.width = argc > 3 ? (uint32_t)atoi(argv[2]) : 500,
		.height = argc > 3 ? (uint32_t)atoi(argv[3]) : 375,
		.filter = argc > 4 ? (uint32_t)atoi(argv[4]) : FILTER_BILINEAR,
	};
	size_t bytes = (size_t)b.width * b.height * 3;
	double *time = calloc((size_t)rounds * RESIZE_LEVELS, sizeof(*time));
	struct resizer *r[RESIZE_LEVELS] = { NULL };

	b.picture = malloc(bytes + 64);
	b.out = malloc(SIZE * SIZE * 3);
	if (!time || !b.picture || !b.out || rounds < 1)
		return 2;
	for (size_t i = 0; i < bytes; i++)
		b.picture[i] = (uint8_t)(i * 2654435761u >> 13);
	make_boxes(&b);
	for (int level = 0; level < RESIZE_LEVELS; level++)
		if (resizer_new(&r[level], (enum resize_level)level) < 0)
			printf("%-8s not on this CPU\n",
				resize_level_name((enum resize_level)level));
	/* Alternating rounds: all variants see the same machine. */
	for (int round = 0; round < rounds; round++)
		for (int level = 0; level < RESIZE_LEVELS; level++)
			if (r[level])
				time[level * rounds + round] = run_once(&b, r[level]);
	for (int level = 0; level < RESIZE_LEVELS; level++) {
		double *t = time + level * rounds;

		qsort(t, (size_t)rounds, sizeof(*t), by_value);
		if (r[level])
			printf("%-8s median %7.1f us an image, %.3f of c\n",
				resize_level_name((enum resize_level)level), t[rounds / 2] / 1000,
				t[rounds / 2] / time[rounds / 2]);
		resizer_free(r[level]);
	}
	free(b.picture);
	free(b.out);
	free(time);
	return 0;
}
