/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One verdict a sample, in memory and in the file beside the index, which names the index by its
 * checksum: verdicts of another index are never taken over.
 */
#ifndef SOURCE_VERDICTS_H
#define SOURCE_VERDICTS_H

#include <pthread.h>
#include <stdint.h>

#include "source/place.h"

#define VERDICTS_MAGIC "FDRVERDI"

struct verdicts_header {
	char magic[8];
	uint32_t byte_order;
	uint32_t version;
	uint64_t count;
	uint64_t index_checksum;
	uint64_t checksum; /* XXH3-64 of the count bytes that follow, seed index_checksum */
};

_Static_assert(sizeof(struct verdicts_header) == 40, "verdicts header");

struct verdicts {
	/* constant after start */
	uint64_t count;
	uint64_t index_checksum;

	/* atomic, relaxed: bytes that order nothing */
	uint8_t *bytes;
	uint8_t changed; /* since the last save began */

	pthread_mutex_t saving; /* one save at a time */
};

int verdicts_init(struct verdicts *v, uint64_t count, uint64_t index_checksum);
void verdicts_deinit(struct verdicts *v);

/* Takes what is in the file at p for samples of which nothing is known; damage is ignored. */
void verdicts_load(struct verdicts *v, const struct place *p);
/* Writes the file, with what another process knew, if anything changed. */
int verdicts_save(struct verdicts *v, const struct place *p);

uint8_t verdicts_get(const struct verdicts *v, uint64_t id);
void verdicts_set(struct verdicts *v, uint64_t id, uint8_t verdict);

#endif
