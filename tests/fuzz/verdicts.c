/* SPDX-License-Identifier: Apache-2.0 */
/* The file of verdicts, as it is and with the checksum that its bytes should have. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "feeder/status.h"
#include "fuzz.h"
#include "source/image.h"
#include "source/verdicts.h"

#define COUNT_MOST 4096

static void write_file(const struct place *p, const void *bytes, size_t size)
{
	char name[NAME_MAX + 1];
	int fd;

	place_name(p, PLACE_VERDICTS, name);
	fd = openat(p->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void must_be_known(uint8_t verdict)
{
	REQUIRE(verdict <= 1 || (verdict > 16 && verdict < 16 + FEEDER_STATUS_COUNT));
}

static void load(const struct place *p, uint64_t count, uint64_t checksum)
{
	struct verdicts v, again;

	REQUIRE(verdicts_init(&v, count, checksum) == 0);
	verdicts_set(&v, 0, 17);
	verdicts_load(&v, p);
	REQUIRE(verdicts_get(&v, 0) == 17); /* what is known is not overwritten */
	for (uint64_t i = 0; i < count; i++)
		must_be_known(verdicts_get(&v, i));
	REQUIRE(verdicts_save(&v, p) == 0);
	REQUIRE(verdicts_init(&again, count, checksum) == 0);
	verdicts_load(&again, p);
	for (uint64_t i = 0; i < count; i++)
		REQUIRE(verdicts_get(&again, i) == verdicts_get(&v, i));
	verdicts_deinit(&v);
	verdicts_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char shown[] = "fuzz";
	static struct place place = { .dirfd = -1, .stem = "fuzz", .shown = shown };
	struct verdicts_header h;
	uint8_t *copy;

	if (place.dirfd < 0)
		place.dirfd = open(fuzz_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(place.dirfd >= 0);
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	write_file(&place, data, size);
	load(&place, h.count && h.count <= COUNT_MOST ? h.count : 1, h.index_checksum);
	copy = fuzz_copy(data, size);
	memcpy(h.magic, VERDICTS_MAGIC, sizeof(h.magic));
	h.byte_order = INDEX_BYTE_ORDER;
	h.version = 1;
	h.count = size - sizeof(h);
	h.checksum = XXH3_64bits_withSeed(copy + sizeof(h), h.count, h.index_checksum);
	memcpy(copy, &h, sizeof(h));
	write_file(&place, copy, size);
	if (h.count > 0 && h.count <= COUNT_MOST)
		load(&place, h.count, h.index_checksum);
	free(copy);
	return 0;
}
