/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEGs for tests, made in the process by libjpeg's own compressor, and a reference decoder.
 *
 * The reference is a fresh decompress object that decodes the whole picture (JDCT_ISLOW, fancy
 * upsampling) and nothing else: it shares no line with src/decode.
 */
#ifndef TESTS_MAKE_JPEG_H
#define TESTS_MAKE_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jpeg_model { MODEL_YCC, MODEL_GRAY, MODEL_RGB, MODEL_CMYK, MODEL_YCCK };

struct jpeg_recipe {
	uint32_t width;
	uint32_t height;
	enum jpeg_model model;
	uint8_t sampling[4][2]; /* h, v of each component; 0 stands for 1 */
	int quality;            /* 0 stands for 90 */
	bool progressive;
	bool arithmetic;
	bool optimise;       /* own Huffman tables */
	bool separate_scans; /* one scan a component, not progressive */
	unsigned int restart_mcus;
	unsigned int restart_rows;
	unsigned int scans; /* so many in all, coefficient by coefficient and bit by bit */
	bool flat;          /* a gradient without noise, for small files */
	bool extreme;       /* 0 and 255 only, at random */
	uint64_t seed;
};

struct jpeg_file {
	uint8_t *bytes; /* BYTES_TAIL zero bytes behind size */
	size_t size;
};

void jpeg_make(const struct jpeg_recipe *r, struct jpeg_file *ret);
void jpeg_file_free(struct jpeg_file *f);
/* Takes size bytes over into a file of their own, followed by BYTES_TAIL bytes of `tail`. */
void jpeg_file_copy(struct jpeg_file *ret, const uint8_t *bytes, size_t size, uint8_t tail);
/* Puts `count` bytes in at `at`. */
void jpeg_file_insert(struct jpeg_file *f, size_t at, const uint8_t *bytes, size_t count);
/* Takes `count` bytes out at `at`. */
void jpeg_file_remove(struct jpeg_file *f, size_t at, size_t count);
/* Offset of the 0xFF of the nth (from 0) segment with that marker; fails the test if absent. */
size_t jpeg_file_find(const struct jpeg_file *f, uint8_t marker, unsigned int nth);
/* Offset of the first byte of the first scan's entropy-coded data. */
size_t jpeg_file_scan(const struct jpeg_file *f);

/* All pixels by the reference decoder, RGB, stride 3·width; malloc'd. */
uint8_t *jpeg_reference(
	const uint8_t *bytes, size_t size, uint32_t *ret_width, uint32_t *ret_height);

/* A small generator of test values; never the product's own. */
uint64_t test_random(uint64_t *state);
uint32_t test_below(uint64_t *state, uint32_t n);
bool test_long(void); /* FEEDER_LONG=1 */

#endif
