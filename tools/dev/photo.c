/* SPDX-License-Identifier: Apache-2.0 */
/* One photo-like JPEG: the draw of its coding, and the search for its size. */
#include "tools/dev/photo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "tools/dev/scene.h"

#define SPARE_BYTES   (64 * 1024)
#define MOST_ATTEMPTS 4

enum sampling { SAMPLING_420, SAMPLING_422, SAMPLING_444, SAMPLING_GRAY };

/* How a picture is coded. */
struct coding {
	enum sampling sampling;
	int quality;
	bool progressive;
	bool optimised;
	unsigned int restart_rows;
};

struct photo_maker {
	const struct noise *noise;
	struct photo_wish wish;
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	jmp_buf escape;
	uint8_t *row; /* 3 * SCENE_MAX_SIDE */
	uint8_t *data;
	size_t capacity;
};

static void jpeg_failed(j_common_ptr jpeg)
{
	struct photo_maker *maker = jpeg->client_data;

	longjmp(maker->escape, 1);
}

int photo_maker_new(
	struct photo_maker **ret, const struct noise *noise, const struct photo_wish *wish)
{
	struct photo_maker *maker = calloc(1, sizeof(*maker));

	if (!maker)
		return -ENOMEM;
	maker->noise = noise;
	maker->wish = *wish;
	maker->row = malloc(3 * SCENE_MAX_SIDE);
	maker->jpeg.err = jpeg_std_error(&maker->errors);
	maker->errors.error_exit = jpeg_failed;
	maker->jpeg.client_data = maker;
	if (!maker->row) {
		free(maker);
		return -ENOMEM;
	}
	*ret = maker;
	return 0;
}

void photo_maker_free(struct photo_maker *maker)
{
	if (!maker)
		return;
	free(maker->row);
	free(maker->data);
	free(maker);
}

static void coding_draw(struct coding *coding, struct philox_stream *random)
{
	static const int qualities[] = { 90, 91, 92, 92, 92, 93, 94, 95, 95, 95, 96, 97 };
	int32_t rare = draw_between(random, 0, 99);

	*coding = (struct coding){ .quality = qualities[draw_between(random, 0, 11)] };
	if (rare < 2)
		coding->sampling = SAMPLING_GRAY;
	else if (rare < 4)
		coding->progressive = true;
	else if (rare < 5)
		coding->sampling = SAMPLING_422;
	else if (rare < 6)
		coding->sampling = SAMPLING_444;
	else if (rare < 7)
		coding->restart_rows = 1;
	else if (rare < 16)
		coding->optimised = true;
}

static uint32_t side_draw(uint32_t usual, struct philox_stream *random)
{
	uint32_t side = (uint32_t)((uint64_t)usual * (uint32_t)draw_between(random, 60, 136) / 100);

	return side < 1 ? 1 : side > SCENE_MAX_SIDE ? SCENE_MAX_SIDE : side;
}

static void size_draw(
	const struct photo_wish *wish, struct photo *photo, struct philox_stream *random)
{
	int32_t kind = draw_between(random, 0, 99);
	uint32_t w = side_draw(wish->width, random), h = side_draw(wish->height, random);

	photo->width = kind < 60 ? wish->width : kind < 82 ? wish->height : w;
	photo->height = kind < 60 ? wish->height : kind < 82 ? wish->width : h;
}

static void coding_apply(struct photo_maker *maker, const struct coding *coding)
{
	struct jpeg_compress_struct *jpeg = &maker->jpeg;
	bool gray = coding->sampling == SAMPLING_GRAY;
	static const int across[] = { 2, 2, 1, 1 }, down[] = { 2, 1, 1, 1 };

	jpeg->in_color_space = JCS_YCbCr;
	jpeg->input_components = 3;
	jpeg_set_defaults(jpeg);
	jpeg_set_colorspace(jpeg, gray ? JCS_GRAYSCALE : JCS_YCbCr);
	jpeg_set_quality(jpeg, coding->quality, TRUE);
	jpeg->comp_info[0].h_samp_factor = across[coding->sampling];
	jpeg->comp_info[0].v_samp_factor = down[coding->sampling];
	jpeg->dct_method = JDCT_ISLOW;
	jpeg->optimize_coding = coding->optimised;
	jpeg->restart_in_rows = (int)coding->restart_rows;
	if (coding->progressive)
		jpeg_simple_progression(jpeg);
}

/*
 * The compress object is made anew each time: one that has been used keeps the Huffman tables of
 * its last optimised picture as if they were the standard's, and they lack codes.
 */
static int encode(struct photo_maker *maker, const struct scene *scene, const struct coding *coding,
	int32_t strength, struct photo *photo)
{
	struct jpeg_compress_struct *jpeg = &maker->jpeg;
	unsigned long size = photo->capacity;
	unsigned char *data = photo->data;
	JSAMPROW row = maker->row;

	if (setjmp(maker->escape)) {
		jpeg_destroy_compress(jpeg);
		return -EIO;
	}
	jpeg_create_compress(jpeg);
	jpeg_mem_dest(jpeg, &data, &size);
	jpeg->image_width = scene->width;
	jpeg->image_height = scene->height;
	coding_apply(maker, coding);
	jpeg_start_compress(jpeg, TRUE);
	while (jpeg->next_scanline < jpeg->image_height) {
		scene_row(maker->noise, scene, jpeg->next_scanline, strength, row);
		jpeg_write_scanlines(jpeg, &row, 1);
	}
	jpeg_finish_compress(jpeg);
	jpeg_destroy_compress(jpeg);
	if (data != photo->data) { /* it outgrew the buffer, which photo_make sizes against */
		free(data);
		return -EIO;
	}
	photo->size = size;
	return 0;
}

/*
 * The strength that probably gives bits per 1,000 pixels at a quality, 256 = as drawn: above a
 * threshold, each doubling of the noise costs each pixel about the same number of bits.
 */
static int32_t strength_guess(uint64_t millibits, int quality)
{
	int64_t octaves = ((int64_t)millibits - 3450 - (quality - 93) * 340) * 256 / 1240;
	int64_t strength = octaves >= 0 ? 256 : 256 * 256 / (256 - octaves);

	octaves = octaves > 3 * 256 ? 3 * 256 : octaves;
	for (; octaves > 256; octaves -= 256)
		strength *= 2;
	if (octaves > 0)
		strength += strength * octaves / 256;
	return (int32_t)(strength < 8 ? 8 : strength > 2000 ? 2000 : strength);
}

/* Encodes until the size is within a seventh of what was drawn, or as near as it gets. */
static int size_search(struct photo_maker *maker, const struct scene *scene,
	const struct coding *coding, uint64_t bytes, struct photo *photo)
{
	uint64_t pixels = (uint64_t)photo->width * photo->height;
	int32_t strength = strength_guess(bytes * 8000 / pixels, coding->quality);
	int r;

	for (unsigned int attempt = 1;; attempt++) {
		r = encode(maker, scene, coding, strength, photo);
		if (r < 0 || attempt == MOST_ATTEMPTS)
			return r;
		if (photo->size * 7 <= bytes * 8 && photo->size * 8 >= bytes * 7)
			return 0;
		/* bytes grow more slowly than the noise: about as its square root */
		uint64_t ratio = bytes * 1024 / photo->size;
		uint64_t next = (uint64_t)strength * ratio * ratio >> 20;

		next = next < 8 ? 8 : next > 2000 ? 2000 : next;
		if ((int32_t)next == strength)
			return 0;
		strength = (int32_t)next;
	}
}

int photo_make(struct photo_maker *maker, uint32_t number, bool plain, struct photo *ret)
{
	const struct photo_wish *wish = &maker->wish;
	struct photo photo = { 0 };
	struct philox_stream random;
	struct coding coding;
	struct scene scene;
	uint64_t pixels, bytes;
	int r;

	philox_stream_init(&random, wish->seed, number, 0, 0, 2);
	coding_draw(&coding, &random);
	if (plain)
		coding = (struct coding){ .quality = coding.quality };
	size_draw(wish, &photo, &random);
	pixels = (uint64_t)photo.width * photo.height;
	/* two draws, so that most are near the mean and few at 0.3 or 1.7 of it */
	bytes = (uint64_t)(draw_between(&random, 15, 85) + draw_between(&random, 15, 85));
	bytes = pixels * wish->mean_bytes / 100 * bytes / ((uint64_t)wish->width * wish->height);
	scene_draw(&scene, photo.width, photo.height, &random);

	photo.capacity = pixels * 6 + 2 * SPARE_BYTES;
	if (photo.capacity > maker->capacity) {
		free(maker->data);
		maker->capacity = 0;
		maker->data = malloc(photo.capacity);
		if (!maker->data)
			return -ENOMEM;
		maker->capacity = photo.capacity;
	}
	photo.data = maker->data;
	photo.capacity = maker->capacity;
	r = size_search(maker, &scene, &coding, bytes, &photo);
	if (r < 0)
		return r;
	if (photo.capacity - photo.size < SPARE_BYTES)
		return -EIO;
	*ret = photo;
	return 0;
}
