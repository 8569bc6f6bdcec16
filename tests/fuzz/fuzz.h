/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz harnesses share.
 *
 * A harness is one file with one LLVMFuzzerTestOneInput. It is linked twice: with libFuzzer
 * (fuzz-<name>, clang only), and with replay.c (fuzz-<name>-corpus), which runs the files of its
 * corpus with any compiler. A harness looks for more than crashes: REQUIRE says what must hold of
 * every input whatever, and ends the process where it does not.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, \
				#condition);                                              \
			abort();                                                          \
		}                                                                         \
	} while (0)

/* Bytes that are taken from the front; past the end there are zeros. */
struct input {
	const uint8_t *at;
	size_t left;
};

uint8_t input_u8(struct input *in);
uint16_t input_u16(struct input *in); /* little-endian, as the next two */
uint32_t input_u32(struct input *in);
uint64_t input_u64(struct input *in);
/* Up to size bytes; *ret_size tells how many there are. */
const uint8_t *input_take(struct input *in, size_t size, size_t *ret_size);

/* A copy that is exactly as long, so that a sanitizer sees what is read beyond it. */
uint8_t *fuzz_copy(const uint8_t *data, size_t size);
uint64_t fuzz_hash(const uint8_t *data, size_t size);
/* A memfd with these bytes, that may be sealed. */
int fuzz_memfd(const void *bytes, size_t size);
/* A directory of this process under $TMPDIR, removed at its end. */
const char *fuzz_directory(void);
/* The lowest descriptor that is free: equal before and after if none leaked. */
int fuzz_lowest_fd(void);

/* Memory allocated from now on is filled with pattern; fuzz_poison_end stops that. */
void fuzz_poison(uint8_t pattern);
void fuzz_poison_end(void);

#endif
