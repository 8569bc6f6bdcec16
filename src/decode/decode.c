/* SPDX-License-Identifier: Apache-2.0 */
/* decode: encoded bytes → RGB pixels of a wanted box. Dispatch, orientation, settings. */
#include "decode/decode.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "base/clock.h"
#include "decode/codec.h"
#include "decode/orient.h"
#include "decode/pixels.h"
#include "decode/sniff.h"

#define STRINGIFY(token) #token
#define STRING(macro)    STRINGIFY(macro)

#define CODECS           2

static const struct codec *const codecs[CODECS] = { &codec_jpeg, &codec_png };

struct decoder {
	/* constant after start */
	struct decode_limits limits;
	void *states[CODECS];

	/* owned by one thread, from open to close */
	pthread_t owner;
	const struct codec *codec; /* NULL while closed */
	void *state;
	uint32_t width; /* as stored */
	uint32_t height;
	uint32_t orientation; /* applied; 1 if none is */
	struct pixels turned;
};

static bool full_decode; /* constant after start */

void decode_use_full_decode(bool on)
{
	full_decode = on;
}

bool decode_uses_full_decode(void)
{
	return full_decode;
}

const char *decode_library_version(void)
{
	return "libjpeg-turbo " STRING(LIBJPEG_TURBO_VERSION);
}

void decode_limits_init(struct decode_limits *limits)
{
	*limits = (struct decode_limits){
		.max_pixels = 178956970, /* twice Pillow's MAX_IMAGE_PIXELS: where it refuses */
		.max_scans = 500,
		.max_memory = 1ull << 30,
		.max_cpu_ns = 10 * NS_PER_SEC,
	};
}

int decoder_new(struct decoder **ret, const struct decode_limits *limits)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->limits = *limits;
	for (int i = 0; i < CODECS; i++) {
		int r = codecs[i]->create(&d->states[i], &d->limits);

		if (r < 0) {
			decoder_free(d);
			return r;
		}
	}
	*ret = d;
	return 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	decoder_close(d);
	for (int i = 0; i < CODECS; i++)
		codecs[i]->destroy(d->states[i]);
	pixels_deinit(&d->turned);
	free(d);
}

static void *state_of(const struct decoder *d, const struct codec *codec)
{
	for (int i = 0; i < CODECS; i++) {
		if (codecs[i] == codec)
			return d->states[i];
	}
	return NULL;
}

/*
 * One image stays in one thread: libjpeg-turbo 2.1 picks its SIMD routines by a thread-local flag.
 */
static int check_owner(const struct decoder *d, struct fault *fault)
{
	if (!d->codec)
		return fault_set(fault, FEEDER_STATUS_INTERNAL, 0, "no image is open");
	if (!pthread_equal(d->owner, pthread_self()))
		return fault_set(
			fault, FEEDER_STATUS_INTERNAL, 0, "the image was opened by another thread");
	return 0;
}

int decoder_open(struct decoder *d, const uint8_t *bytes, size_t size, struct image_info *ret,
	struct fault *fault)
{
	const struct codec *codec;
	struct image_info info;
	int r;

	decoder_close(d);
	r = sniff(bytes, size, &codec, fault);
	if (r != 0)
		return r;
	r = codec->open(state_of(d, codec), bytes, size, &info, fault);
	if (r != 0)
		return r;
	d->owner = pthread_self();
	d->codec = codec;
	d->state = state_of(d, codec);
	d->width = info.width;
	d->height = info.height;
	d->orientation = d->limits.apply_orientation ? info.orientation : 1;
	if (orient_swaps(d->orientation)) {
		info.width = d->height;
		info.height = d->width;
	}
	*ret = info;
	return 0;
}

int decoder_check_end(struct decoder *d, struct fault *fault)
{
	int r = check_owner(d, fault);

	return r != 0 ? r : d->codec->check_end(d->state, fault);
}

static bool holds_box(const struct decoder *d, const struct box *box)
{
	bool swaps = orient_swaps(d->orientation);
	uint32_t width = swaps ? d->height : d->width, height = swaps ? d->width : d->height;

	return box->w > 0 && box->h > 0 && box->x < width && box->y < height &&
	       box->w <= width - box->x && box->h <= height - box->y;
}

static int turn(struct decoder *d, const struct box *box, const struct region *stored,
	struct region *ret, struct fault *fault)
{
	int r = pixels_reserve(&d->turned, (size_t)box->w * 3, box->h, d->limits.max_memory);

	if (r < 0)
		return fault_set(fault, FEEDER_STATUS_MEMORY_LIMIT, -r,
			"no memory to turn %u x %u pixels", box->w, box->h);
	orient_pixels(d->orientation, stored, box, d->turned.rows);
	*ret = (struct region){
		.data = d->turned.rows[0],
		.stride = d->turned.stride,
		.box = *box,
	};
	return 0;
}

int decoder_region(
	struct decoder *d, const struct box *box, struct region *ret, struct fault *fault)
{
	struct region stored;
	struct box stored_box;
	int r = check_owner(d, fault);

	if (r != 0)
		return r;
	if (!holds_box(d, box))
		return fault_set(fault, FEEDER_STATUS_INTERNAL, 0,
			"box %u,%u %ux%u is not inside %u x %u", box->x, box->y, box->w, box->h,
			d->width, d->height);
	if (d->orientation == 1)
		return d->codec->region(d->state, box, ret, fault);
	orient_box(d->orientation, d->width, d->height, box, &stored_box);
	r = d->codec->region(d->state, &stored_box, &stored, fault);
	return r != 0 ? r : turn(d, box, &stored, ret, fault);
}

void decoder_close(struct decoder *d)
{
	if (!d->codec)
		return;
	d->codec->close(d->state);
	d->codec = NULL;
	pixels_trim(&d->turned);
}
