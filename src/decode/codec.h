/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One image format behind the decoder.
 *
 * A codec's state belongs to one decoder and lives as long as it. All pixels and boxes here are
 * in the file's own orientation; turning is done above, in decode.c.
 */
#ifndef DECODE_CODEC_H
#define DECODE_CODEC_H

#include "decode/decode.h"

struct codec {
	const char *name;
	int (*create)(void **ret, const struct decode_limits *limits); /* -ENOMEM, -ENOTSUP */
	void (*destroy)(void *state);
	/*
	 * These three: 0 or a status with *fault; the state can be opened again after any of
	 * them.
	 */
	int (*open)(void *state, const uint8_t *bytes, size_t size, struct image_info *ret,
		struct fault *fault);
	int (*check_end)(void *state, struct fault *fault);
	int (*region)(void *state, const struct box *box, struct region *ret, struct fault *fault);
	void (*close)(void *state);
};

extern const struct codec codec_jpeg;
extern const struct codec codec_png;

/* Set once before threads start: no crop, no skip. */
bool decode_uses_full_decode(void);

#endif
