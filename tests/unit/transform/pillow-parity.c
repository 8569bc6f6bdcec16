/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pillow-parity.py talks to. stdin: cases of 16 little-endian u32 (in_w in_h out_w out_h wx wy
 * ww wh filter flip src_x src_y src_w src_h 0 0) and src_w·src_h·3 bytes. stdout: for each case and
 * each level that this CPU has, ww·wh·3 bytes. argv[1] is "levels" to print how many that are.
 */
#include "transform/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	IN_W,
	IN_H,
	OUT_W,
	OUT_H,
	WX,
	WY,
	WW,
	WH,
	FILTER,
	FLIP,
	SRC_X,
	SRC_Y,
	SRC_W,
	SRC_H,
	WORDS = 16
};

static int answer(struct resizer *r, const uint32_t w[WORDS], const uint8_t *src)
{
	struct resize_plan plan = { w[IN_W], w[IN_H], w[OUT_W], w[OUT_H], w[WX], w[WY], w[WW],
		w[WH], w[FILTER], w[FLIP] };
	size_t bytes = (size_t)w[WW] * w[WH] * 3;
	uint8_t *out = malloc(bytes);
	int rc = -1;

	if (out && resizer_run(r, &plan, src, (size_t)w[SRC_W] * 3, w[SRC_X], w[SRC_Y], out,
			   (size_t)w[WW] * 3) == 0)
		rc = fwrite(out, 1, bytes, stdout) == bytes ? 0 : -1;
	free(out);
	return rc;
}

int main(int argc, char **argv)
{
	struct resizer *r[RESIZE_LEVELS] = { NULL };
	int levels = 0, rc = 0;
	uint32_t w[WORDS];

	while (levels < RESIZE_LEVELS && resizer_new(&r[levels], (enum resize_level)levels) == 0)
		levels++;
	if (argc > 1 && strcmp(argv[1], "levels") == 0)
		printf("%d\n", levels);
	else
		while (rc == 0 && fread(w, sizeof(w), 1, stdin) == 1) {
			size_t bytes = (size_t)w[SRC_W] * w[SRC_H] * 3;
			uint8_t *src = malloc(bytes + 64);

			rc = src && fread(src, 1, bytes, stdin) == bytes ? 0 : 1;
			for (int level = 0; rc == 0 && level < levels; level++)
				rc = answer(r[level], w, src) < 0;
			free(src);
		}
	for (int level = 0; level < levels; level++)
		resizer_free(r[level]);
	return rc;
}
