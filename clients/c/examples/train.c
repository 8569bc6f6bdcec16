/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training loop that can be killed at any moment and goes on where it was saved: epochs, a
 * cursor in a file, a daemon that may die and come back.
 *
 *	./train DATASET EPOCHS CURSOR-FILE
 *
 * The cursor is written to a new file and renamed, so that the file is always whole. A step is
 * saved after its work is done: what is repeated after a crash is at most the steps since then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <feeder/feeder.h>

#define SAVE_EVERY 10

struct trainer {
	const char *dataset;
	const char *file; /* of the cursor */
	unsigned long long epochs;
	unsigned char cursor[FEEDER_CURSOR_MAX];
	size_t cursor_size; /* 0: begin at the beginning */
	struct feeder *f;
	struct feeder_lane *lane;
};

static void load(struct trainer *t)
{
	FILE *file = fopen(t->file, "rb");

	if (!file)
		return;
	t->cursor_size = fread(t->cursor, 1, sizeof(t->cursor), file);
	fclose(file);
}

static int save(struct trainer *t)
{
	char path[4096];
	FILE *file;
	int n = feeder_cursor(t->lane, t->cursor, sizeof(t->cursor));
	int written;

	if (n < 0)
		return n;
	t->cursor_size = (size_t)n;
	snprintf(path, sizeof(path), "%s.new", t->file);
	file = fopen(path, "wb");
	if (!file)
		return -errno;
	written = fwrite(t->cursor, 1, t->cursor_size, file) == t->cursor_size;
	if (fclose(file) != 0 || !written || rename(path, t->file) < 0)
		return -EIO;
	return 0;
}

static int attach(struct trainer *t)
{
	struct feeder_lane_config config;
	int r;

	feeder_lane_config_init(&config);
	config.batch_size = 64;
	config.reopen = t->cursor_size > 0;
	if (t->cursor_size > 0) {
		config.cursor = t->cursor;
		config.cursor_size = t->cursor_size;
	}
	feeder_disconnect(t->f);
	t->f = NULL;
	t->lane = NULL;
	r = feeder_connect(&t->f, NULL);
	return r < 0 ? r : feeder_lane_open(&t->lane, t->f, t->dataset, &config);
}

/* Where the model's forward and backward pass would be. */
static double work(const struct feeder_batch *batch)
{
	const unsigned char *pixels = batch->images;
	double sum = 0;

	for (unsigned int i = 0; i < batch->count; i++)
		sum += pixels[i * batch->image_stride];
	return sum;
}

/* 0 after the last epoch. */
static int train(struct trainer *t)
{
	struct feeder_batch batch = { .size = sizeof(batch) };

	for (;;) {
		int r = feeder_next(t->lane, &batch, -1);

		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		printf("epoch %llu step %llu loss %.0f\n", (unsigned long long)batch.epoch,
			(unsigned long long)batch.step, work(&batch));
		feeder_release(t->lane, batch.number);
		if (batch.last_of_epoch || batch.step % SAVE_EVERY == SAVE_EVERY - 1) {
			r = save(t);
			if (r < 0)
				return r;
		}
		if (batch.last_of_epoch && batch.epoch + 1 >= t->epochs)
			return 0;
	}
}

int main(int argc, char **argv)
{
	struct trainer t = { .f = NULL };
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: train DATASET EPOCHS CURSOR-FILE\n");
		return 2;
	}
	t.dataset = argv[1];
	t.epochs = strtoull(argv[2], NULL, 10);
	t.file = argv[3];
	load(&t);
	do {
		r = attach(&t);
		if (r == 0)
			r = train(&t);
		if (r == -EPIPE)
			fprintf(stderr, "train: %s\n", feeder_last_error());
	} while (r == -EPIPE); /* the daemon died: a new one continues at the saved cursor */
	if (r < 0)
		fprintf(stderr, "train: %s\n", feeder_last_error());
	feeder_disconnect(t.f);
	return r < 0;
}
