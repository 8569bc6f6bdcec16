/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring ABI: shared memory between the daemon and the consumers of one lane.
 * protocol/ring.md explains it with a picture, a worked example and every crash point.
 *
 * Two kinds of memory. The PAYLOAD memfd is written by the daemon only and sealed against every
 * other writer: header, field list, published word, descriptors, slots. A CONTROL memfd, one for
 * each consumer and never used again, holds the words that the consumer (or its GPU) writes.
 *
 * Batches are numbered n = 1, 2, …; batch n is in slot (n - 1) mod slots. Numbers run on for the
 * ring's life, over seeks and epochs.
 *
 * ORDERING EDGES. Every atomic access in feeder cites one of these.
 *	E1 publish    daemon: fill slot and descriptor, store-release `published`
 *	              client: load-acquire `published`, then read descriptor and slot
 *	E2 release    client: end of its reads, store-release `release[slot]` (a GPU: stream order)
 *	              daemon: load-acquire `release[slot]`, then reuse the slot
 *	E3 sleep      client: store seq_cst `waiting` = 1, then load seq_cst `published`, then wait
 *	              daemon: store seq_cst `published`, then load seq_cst `waiting`, then wake
 *	E4 state      daemon: store-release `state`; client: load-acquire `state`
 *	E5 telemetry  single-writer counters, relaxed: values are shown, never acted on
 *
 * Everything is little-endian, fixed width, with explicit zero padding. Sizes and offsets of
 * records are in the header and are read from there, so that records can grow at their end.
 */
#ifndef PROTOCOL_RING_H
#define PROTOCOL_RING_H

#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC      0x474e4952444546ull /* "FEDRING" */
#define RING_MAJOR      1
#define RING_MINOR      0
#define RING_SLOTS_MIN  2
#define RING_SLOTS_MAX  1024
#define RING_FIELDS_MAX 16
#define RING_CURSOR_MAX 256
#define RING_NAME_MAX   32
#define RING_LINE       128 /* words of different writers are at least this far apart */

/* Header flags. */
#define RING_PAYLOAD_RW 0x1u /* the consumer maps the payload writable: not sealed against it */

struct ring_header {
	uint64_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t header_size; /* of this struct as the daemon knows it */
	uint64_t total_size;  /* of the payload memfd */
	uint32_t flags;
	uint32_t slots;
	uint32_t capacity; /* places of a batch */
	uint32_t field_count;
	uint32_t field_size; /* bytes of one struct ring_field */
	uint32_t place_size; /* bytes of one struct ring_place */
	uint64_t fields_offset;
	uint64_t words_offset;      /* struct ring_words */
	uint64_t descriptor_offset; /* of slot 0's descriptor */
	uint64_t descriptor_stride; /* from one slot's descriptor to the next */
	uint64_t places_offset;     /* of place 0 inside a descriptor record */
	uint64_t slot_offset;       /* of slot 0; page-aligned */
	uint64_t slot_stride;       /* from slot to slot; a multiple of the page size */
	uint64_t parcel_offset;     /* of the parcel area inside a slot */
	uint64_t parcel_size;       /* 0: the lane has no parcels */
	uint64_t lane;              /* the lane's number in this daemon */
	uint8_t fingerprint[16];    /* of the dataset */
	/* the control memfd's layout */
	uint32_t control_size;
	uint32_t waiting_offset;
	uint32_t telemetry_offset;
	uint32_t release_offset; /* of slot 0's word */
	uint32_t release_stride;
	uint32_t zero0;
	uint8_t zero[88];
};

/* Daemon-written words, on lines of their own. */
struct ring_words {
	uint32_t published; /* E1, E3: low 32 bits of the newest n; the futex word */
	uint8_t zero0[RING_LINE - 4];
	uint32_t state; /* E4: enum ring_state */
	uint8_t zero1[RING_LINE - 4];
};

enum ring_state {
	RING_RUNNING = 0,
	RING_DRAINING = 1, /* the daemon stops: what is published stays readable */
	RING_FAILED = 2,   /* no more batches will come; the error event says why */
	RING_CLOSED = 3,
};

struct ring_field {
	char name[RING_NAME_MAX]; /* "images", "labels": NUL-padded */
	uint32_t dtype;           /* enum dtype of transform: 1 u8 2 f32 3 f16 4 bf16 5 i64 6 i32 */
	uint32_t ndim;
	uint64_t shape[8];
	int64_t strides[8]; /* bytes */
	uint32_t ragged;    /* 0; 1: an offsets array of capacity + 1 u64 stands before the data */
	uint32_t zero0;
	uint8_t zero[80];
};

/* Flags of a descriptor. */
#define RING_LAST_OF_EPOCH 0x1u

struct ring_extent {
	uint64_t offset; /* inside the slot */
	uint64_t bytes;
};

struct ring_descriptor {
	uint64_t number;     /* n */
	uint32_t generation; /* raised by seek and set epoch */
	uint32_t flags;
	uint64_t epoch;
	uint64_t step; /* from the lane's opening, seek or set epoch; 0 at each epoch's start */
	uint32_t capacity;
	uint32_t count;        /* places to deliver: `pad` trims here */
	uint64_t batches_left; /* in this epoch, after this batch */
	uint64_t order_digest; /* this batch's sum */
	uint64_t pixel_digest; /* likewise, 0 unless the lane asked for it */
	uint64_t read_ns;      /* CLOCK_MONOTONIC: the first sample's read began */
	uint64_t ready_ns;     /* the last sample landed */
	uint64_t published_ns;
	uint32_t bad_count; /* places whose asked id was bad */
	uint32_t cursor_size;
	uint8_t cursor[RING_CURSOR_MAX]; /* after this batch */
	struct ring_extent fields[RING_FIELDS_MAX];
	uint8_t zero[160];
};

enum ring_place_kind {
	RING_PIXELS = 1,
	RING_PARCEL = 2, /* still encoded, for the GPU's engines */
	RING_BLANK = 3,  /* masked or past the end: zeros, label -100 */
};

struct ring_place {
	uint64_t id_asked;
	uint64_t id; /* delivered; = id_asked but for a substitute */
	uint64_t position;
	uint32_t kind;
	uint32_t status; /* of the asked id: enum feeder_status, 0 = good */
	uint64_t offset; /* of the pixels or the parcel, inside the slot */
	uint64_t length;
	uint32_t box_x, box_y, box_w, box_h; /* in the source image */
	uint32_t flip;
	uint32_t source_w, source_h;
	uint32_t valid; /* 1: counts; 0: blank */
	int64_t label;
	uint32_t substitute; /* 0: the asked id; k + 1: substitute k */
	uint8_t zero[36];
};

/* ---- the control memfd: consumer-written ---- */

struct ring_telemetry {    /* E5 */
	uint64_t wait_ns;  /* spent waiting in next() */
	uint64_t consumed; /* batches returned by next() */
	uint64_t copied_bytes;
	uint64_t copy_ns;
	uint8_t zero[96];
};

#define RING_CONTROL_WAITING   0
#define RING_CONTROL_TELEMETRY RING_LINE
#define RING_CONTROL_RELEASE   (2 * RING_LINE)

_Static_assert(sizeof(struct ring_header) == 256, "ABI");
_Static_assert(sizeof(struct ring_words) == 256, "ABI");
_Static_assert(sizeof(struct ring_field) == 256, "ABI");
_Static_assert(sizeof(struct ring_descriptor) == 768, "ABI");
_Static_assert(sizeof(struct ring_place) == 128, "ABI");
_Static_assert(sizeof(struct ring_telemetry) == 128, "ABI");

/* ---- access, for both sides ---- */

static inline uint32_t ring_load_acquire(const uint32_t *word) /* E1, E2, E4 */
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void ring_store_release(uint32_t *word, uint32_t value) /* E1, E2, E4 */
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint32_t ring_load_seq(const uint32_t *word) /* E3 */
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static inline void ring_store_seq(uint32_t *word, uint32_t value) /* E3 (and so E1) */
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static inline uint64_t ring_load_relaxed64(const uint64_t *word) /* E5 */
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void ring_store_relaxed64(uint64_t *word, uint64_t value) /* E5 */
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline uint32_t ring_slot_of(uint64_t n, uint32_t slots)
{
	return (uint32_t)((n - 1) % slots);
}

/*
 * Sleeps while *word == seen, at most timeout_ns; a shared futex, also on a read-only mapping.
 * 0 woken or changed, -ETIMEDOUT, -EINTR.
 */
int ring_futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void ring_futex_wake(uint32_t *word);

/* "running", …; "unknown" of a later version's. */
const char *ring_state_name(uint32_t state);

/*
 * A consumer's map of a ring. ring_map checks seals, sizes and every offset of the header once
 * and copies it, so that a hostile or newer daemon cannot lead the client out of the mapping.
 */
struct ring_map {
	struct ring_header header; /* the checked copy */
	uint8_t *payload;
	uint8_t *control;
};

/* -EPROTO with a sentence in text; -errno of mmap. Descriptors stay the caller's. */
int ring_map_open(struct ring_map *ret, int payload_fd, int control_fd, char *text, size_t size);
void ring_map_close(struct ring_map *map);

const struct ring_words *ring_map_words(const struct ring_map *map);
const struct ring_field *ring_map_field(const struct ring_map *map, uint32_t i);
const struct ring_descriptor *ring_map_descriptor(const struct ring_map *map, uint64_t n);
/* Places are place_size bytes apart: not an array of struct ring_place. */
const struct ring_place *ring_map_place(const struct ring_map *map, uint64_t n, uint32_t i);
const uint8_t *ring_map_slot(const struct ring_map *map, uint64_t n);
uint32_t *ring_map_release_word(const struct ring_map *map, uint64_t n);
uint32_t *ring_map_waiting_word(const struct ring_map *map);
struct ring_telemetry *ring_map_telemetry(const struct ring_map *map);

#endif
