/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the first files of the corpus: usage: fuzz-seeds CORPUS
 *
 * Beside them, and not touched: found-*, inputs that reached more code, and find-* (finds.md).
 */
#include "seeds.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static const char *corpus;

void seed_put(const char *harness, const char *name, const void *bytes, size_t size)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", corpus, harness);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/seed-%s", corpus, harness, name);
	f = fopen(path, "wb");
	REQUIRE(f && fwrite(bytes, 1, size, f) == size);
	REQUIRE(fclose(f) == 0);
}

void row_put(struct row *r, const void *bytes, size_t size)
{
	REQUIRE(size <= sizeof(r->bytes) - r->size);
	memcpy(r->bytes + r->size, bytes, size);
	r->size += size;
}

void row_u8(struct row *r, unsigned int value)
{
	row_put(r, &(uint8_t){ (uint8_t)value }, 1);
}

void row_u16(struct row *r, unsigned int value)
{
	row_u8(r, value);
	row_u8(r, value >> 8);
}

void row_u64(struct row *r, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		row_u8(r, (unsigned int)(value >> (8 * i)) & 0xff);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: fuzz-seeds CORPUS\n");
		return 2;
	}
	corpus = argv[1];
	seeds_image();
	seeds_wire();
	seeds_file();
	return 0;
}
