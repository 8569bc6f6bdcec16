/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of decode ask again and again. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "decode/decode.h"
#include "make-jpeg.h"

/* A decoder with the default limits, or with others. */
struct decoder *check_decoder(void);
struct decoder *check_decoder_with(const struct decode_limits *limits);

/* Opens and decodes the whole picture; the first status that is not 0, or 0. */
int check_whole(
	struct decoder *d, const struct jpeg_file *f, struct region *ret, struct fault *fault);
/* The box of the file is that of the reference's pixels. */
void check_box(struct decoder *d, const struct jpeg_file *f, const uint8_t *reference,
	uint32_t width, const struct box *box);
/* The whole file is the reference decoder's. */
void check_as_reference(struct decoder *d, const struct jpeg_file *f);
/* The whole file gives this status, and the fault carries it and a text that holds `word`. */
void check_status(struct decoder *d, const struct jpeg_file *f, int status, const char *word);
/* check_end of a file whose header is good. */
int check_end(struct decoder *d, const struct jpeg_file *f, struct fault *fault);
/* The decoder still decodes an ordinary picture. */
void check_usable(struct decoder *d);

struct box check_random_box(uint64_t *state, uint32_t width, uint32_t height);
/* Of a region's pixels, width and height. */
uint64_t check_digest(const struct region *region);

/* Fills what is allocated from here on, and the decoder's own buffers, with a pattern. */
void check_poison(struct decoder *d, uint8_t pattern);

#endif
