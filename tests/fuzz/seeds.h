/* SPDX-License-Identifier: Apache-2.0 */
/* The first files of the corpus, made here so that they follow the structs that they hold. */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H

#include <stddef.h>
#include <stdint.h>

/* Writes CORPUS/harness/seed-name. */
void seed_put(const char *harness, const char *name, const void *bytes, size_t size);

/* A row of bytes that grows. */
struct row {
	uint8_t bytes[65536];
	size_t size;
};

void row_put(struct row *r, const void *bytes, size_t size);
void row_u8(struct row *r, unsigned int value);
void row_u16(struct row *r, unsigned int value);
void row_u64(struct row *r, uint64_t value);

void seeds_image(void); /* decode, exif */
void seeds_wire(void);  /* packet, control, client, lane, ring, cursor */
void seeds_file(void);  /* index, verdicts, list, config, stats */

#endif
