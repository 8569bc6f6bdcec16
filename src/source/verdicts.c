/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: see verdicts.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/fd.h"
#include "base/relaxed.h"
#include "feeder/status.h"
#include "source/image.h"
#include "source/verdicts.h"

#define VERDICTS_VERSION 1u
#define VERDICT_BAD      16 /* and a feeder_status added to it */

int verdicts_init(struct verdicts *v, uint64_t count, uint64_t index_checksum)
{
	v->count = count;
	v->index_checksum = index_checksum;
	v->changed = 0;
	v->bytes = calloc(count, 1);
	if (!v->bytes)
		return -ENOMEM;
	pthread_mutex_init(&v->saving, NULL);
	return 0;
}

void verdicts_deinit(struct verdicts *v)
{
	if (!v->bytes)
		return;
	pthread_mutex_destroy(&v->saving);
	free(v->bytes);
	v->bytes = NULL;
}

uint8_t verdicts_get(const struct verdicts *v, uint64_t id)
{
	return relaxed_load_u8(&v->bytes[id]);
}

void verdicts_set(struct verdicts *v, uint64_t id, uint8_t verdict)
{
	if (relaxed_exchange_u8(&v->bytes[id], verdict) != verdict)
		relaxed_store_u8(&v->changed, 1);
}

static bool verdict_is_known(uint8_t verdict)
{
	return verdict == 1 ||
	       (verdict > VERDICT_BAD && verdict < VERDICT_BAD + FEEDER_STATUS_COUNT);
}

static bool header_fits(const struct verdicts *v, const struct verdicts_header *h)
{
	return memcmp(h->magic, VERDICTS_MAGIC, sizeof(h->magic)) == 0 &&
	       h->byte_order == INDEX_BYTE_ORDER && h->version == VERDICTS_VERSION &&
	       h->count == v->count && h->index_checksum == v->index_checksum;
}

static bool read_exact(int fd, void *ret, size_t size, off_t offset)
{
	char *at = ret;

	while (size) {
		ssize_t n = pread(fd, at, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += n;
		size -= (size_t)n;
	}
	return true;
}

void verdicts_load(struct verdicts *v, const struct place *p)
{
	CLEANUP(fd_closep) int fd = -1;
	struct verdicts_header h;
	uint8_t *bytes;
	struct stat st;

	if (p->dirfd < 0)
		return;
	fd = place_open(p, PLACE_VERDICTS, &st);
	if (fd < 0 || !read_exact(fd, &h, sizeof(h), 0) || !header_fits(v, &h))
		return;
	bytes = malloc(v->count);
	if (bytes && read_exact(fd, bytes, v->count, sizeof(h)) &&
		XXH3_64bits_withSeed(bytes, v->count, h.index_checksum) == h.checksum)
		for (uint64_t i = 0; i < v->count; i++)
			if (verdict_is_known(bytes[i]) && !verdicts_get(v, i))
				relaxed_store_u8(&v->bytes[i], bytes[i]);
	free(bytes);
}

/* The bytes go on changing while they are written: a copy is what the checksum is of. */
static int verdicts_write(struct verdicts *v, const struct place *p)
{
	struct verdicts_header h = {
		.byte_order = INDEX_BYTE_ORDER,
		.version = VERDICTS_VERSION,
		.count = v->count,
		.index_checksum = v->index_checksum,
	};
	uint8_t *bytes = malloc(v->count);
	struct iovec parts[] = { { &h, sizeof(h) }, { bytes, v->count } };
	int r;

	if (!bytes)
		return -ENOMEM;
	memcpy(h.magic, VERDICTS_MAGIC, sizeof(h.magic));
	for (uint64_t i = 0; i < v->count; i++)
		bytes[i] = verdicts_get(v, i);
	h.checksum = XXH3_64bits_withSeed(bytes, v->count, h.index_checksum);
	r = place_replace(p, PLACE_VERDICTS, parts, 2);
	free(bytes);
	return r;
}

int verdicts_save(struct verdicts *v, const struct place *p)
{
	int r = 0;

	if (p->dirfd < 0)
		return 0;
	pthread_mutex_lock(&v->saving);
	if (relaxed_exchange_u8(&v->changed, 0)) {
		verdicts_load(v, p);
		r = verdicts_write(v, p);
		if (r < 0)
			relaxed_store_u8(&v->changed, 1);
	}
	pthread_mutex_unlock(&v->saving);
	return r;
}
