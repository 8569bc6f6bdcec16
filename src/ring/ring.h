/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: the daemon's side of a lane's shared memory (protocol/ring.h).
 *
 * A ring is made once, sealed, and never resized. The daemon believes no word that a consumer
 * writes beyond one rule: a slot is free when the consumer's release word equals the low 32 bits
 * of the number of the batch last published in it.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/ring.h"

struct ring_shape_field {
	const char *name;
	uint32_t dtype;
	uint32_t ndim;
	uint64_t shape[8]; /* shape[0] = capacity */
	int64_t strides[8];
	uint64_t place_bytes; /* from place to place */
};

struct ring_shape {
	uint32_t slots;
	uint32_t capacity;
	uint32_t field_count;
	struct ring_shape_field fields[RING_FIELDS_MAX];
	uint32_t flags; /* RING_PAYLOAD_RW */
	uint64_t lane;
	uint8_t fingerprint[16];
	int numa_node; /* -1: none */
};

struct ring;

/* Payload bytes of the shape; -EOVERFLOW. */
int ring_size(const struct ring_shape *shape, uint64_t *ret);
/*
 * Makes and seals both memfds. Memory is reserved, so that no later touch can fail: here that of
 * the first slot, which may be used at once; ring_reserve_rest does the others (about a fifth of a
 * second a GiB) while the first batch is already being decoded. -ENOMEM or -ENOSPC with a sentence
 * that gives the needed and the available bytes.
 */
int ring_new(struct ring **ret, const struct ring_shape *shape, char *text, size_t size);
/* Once, by the thread that made the ring, before the ring is handed to a client. */
int ring_reserve_rest(struct ring *ring, char *text, size_t size);
/* After it, under the lock that guards ring_slot_free: all slots may be used. */
void ring_open_rest(struct ring *ring);
void ring_free(struct ring *ring);

/* The ring's own descriptors; dup them to give away. The payload one is opened read-only. */
int ring_payload_fd(const struct ring *ring);
int ring_control_fd(const struct ring *ring);
uint64_t ring_bytes(const struct ring *ring);
uint32_t ring_slots(const struct ring *ring);

/* Whether the slot of batch n may be written: what was published there before n was released. */
bool ring_slot_free(const struct ring *ring, uint64_t n);
/* Batches published and not yet released by the consumer. */
uint32_t ring_held(const struct ring *ring);

/* Writable records of the slot of batch n. */
struct ring_descriptor *ring_descriptor(const struct ring *ring, uint64_t n);
struct ring_place *ring_place(const struct ring *ring, uint64_t n, uint32_t i);
void *ring_field_data(const struct ring *ring, uint64_t n, uint32_t field);
/* Inside the slot. */
struct ring_extent ring_field_extent(const struct ring *ring, uint32_t field);
/* Populates the pages of [data, data + bytes) for writing; part of the payload. */
void ring_populate(void *data, uint64_t bytes);

/* E1, E3: makes batch n (the next in order) visible and wakes a waiting consumer. */
void ring_publish(struct ring *ring, uint64_t n);
uint64_t ring_published(const struct ring *ring);
/* E4; wakes the consumer, who looks at the state when it wakes. */
void ring_set_state(struct ring *ring, enum ring_state state);
enum ring_state ring_state(const struct ring *ring);
/* A copy of the consumer's own counters: shown, never acted on. */
struct ring_telemetry ring_telemetry(const struct ring *ring);

#endif
