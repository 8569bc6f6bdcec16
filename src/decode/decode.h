/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: encoded bytes → RGB pixels of a wanted box.
 *
 * One decoder belongs to one worker thread and is reused for every sample: nothing on this path
 * allocates once it is warm, and one damaged image leaves it ready for the next. A sample goes
 *	decoder_open (sniff, header, limits) → [decoder_check_end] → decoder_region | decoder_close
 * Codecs stand behind decode/codec.h; which one is chosen from the first bytes, never the name.
 *
 * Pixels are libjpeg-turbo's with JDCT_ISLOW and fancy upsampling, 3 channels by definition (gray
 * is repeated, CMYK and YCCK are converted as Pillow's convert("RGB") does, alpha is dropped as
 * Pillow's convert("RGB") does). ICC profiles are ignored. A region is equal to the same box of a
 * full decode, bit for bit.
 */
#ifndef DECODE_DECODE_H
#define DECODE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct decode_limits {
	uint64_t max_pixels;    /* width·height; default 179 M (Pillow's bomb limit ·2) */
	uint32_t max_scans;     /* progressive scans; default 500 */
	uint64_t max_memory;    /* bytes of coefficients or pixels of one image; default 1 GiB */
	uint64_t max_cpu_ns;    /* thread CPU time for one sample; default 10 s */
	bool apply_orientation; /* EXIF orientation; default false, as torchvision */
};

void decode_limits_init(struct decode_limits *limits); /* the defaults */

struct image_info {
	uint32_t width; /* as seen by the caller: after orientation, if applied */
	uint32_t height;
	uint32_t orientation; /* EXIF 1..8, 1 where absent */
	bool complete;        /* JPEG: ends in EOI (zero and 0xFF padding aside); others: true */
	bool progressive;
	const char *codec; /* "jpeg", "png" */
};

struct box {
	uint32_t x;
	uint32_t y;
	uint32_t w;
	uint32_t h;
};

/* Pixels inside the decoder's own memory, valid until its next call. */
struct region {
	const uint8_t *data; /* pixel (box.x, box.y), RGB */
	size_t stride;       /* bytes from row to row */
	struct box box;      /* what was asked */
};

struct decoder;

/* -ENOMEM; -ENOTSUP when the JPEG library loaded is not of the kind that was compiled against. */
int decoder_new(struct decoder **ret, const struct decode_limits *limits);
void decoder_free(struct decoder *d);

/*
 * Reads the header of bytes[0..size) (BYTES_TAIL more bytes are readable), which must stay until
 * decoder_close. Limits are checked here, before any allocation. 0, or a status with *fault.
 */
int decoder_open(struct decoder *d, const uint8_t *bytes, size_t size, struct image_info *ret,
	struct fault *fault);

/*
 * Decodes the whole image once for the verdict of one that is not `complete`: FEEDER_STATUS_OK
 * if its data is all there (a missing EOI alone, or junk behind it), else TRUNCATED or DAMAGED.
 * Afterwards the decoder is open at the start again, so that decoder_region may follow.
 */
int decoder_check_end(struct decoder *d, struct fault *fault);

/* Decodes a box (inside the image, not empty). 0, or a status with *fault. Once per open. */
int decoder_region(
	struct decoder *d, const struct box *box, struct region *ret, struct fault *fault);

/* Ends the sample, from any state; a closed decoder may be opened again. */
void decoder_close(struct decoder *d);

/*
 * Decodes built-in images whole and by region and compares; also the library's version.
 * 0, or -ENOTSUP with a sentence: the daemon then uses full decodes and says so
 * (decode_use_full_decode). Call once, before threads start.
 */
int decode_self_test(char *text, size_t size);
void decode_use_full_decode(bool on);
/* "libjpeg-turbo 2.1.5", for statistics and the dataset's notes. */
const char *decode_library_version(void);

#endif
