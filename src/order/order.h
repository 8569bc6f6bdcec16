/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: which sample stands where. Pure arithmetic: no I/O, no clock, no threads.
 *
 * A permutation maps a position of an epoch to a sample id; a shard deals the positions to ranks
 * and steps; a cursor is the position from which a lane continues; a digest proves what was
 * dealt. The rules are "Order, tails, steps" and "Cursor, epochs, digest" of protocol/order.md.
 */
#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values are ABI: they stand in cursors and in the open-lane message. */
enum order_kind {
	ORDER_TORCH = 1,      /* DistributedSampler's permutation, bit-equal */
	ORDER_FEISTEL = 2,    /* keyed bijection, O(1) memory */
	ORDER_SEQUENTIAL = 3, /* id = position */
	ORDER_BLOCK = 4,      /* reserved: blocks of neighbours, shuffled */
	ORDER_DATALOADER = 5, /* DataLoader(shuffle=True)'s order: ids drawn by the client */
	ORDER_IDS = 6,        /* one epoch's ids handed over by the client */
};

enum order_tail {
	ORDER_PAD = 1,  /* positions wrap round: valid repeats */
	ORDER_DROP = 2, /* what does not fill a group of all ranks is left out */
	ORDER_MASK = 3, /* full batches, places past the end invalid */
};

const char *order_kind_name(int kind);  /* "torch"; NULL if unknown */
int order_kind_parse(const char *name); /* 0 if unknown */
const char *order_tail_name(int tail);
int order_tail_parse(const char *name);

/* ---- permutation.c ---- */

struct permutation;

/*
 * The order of one epoch: n samples (1 ≤ n), position → id. For ORDER_TORCH this computes and
 * holds an array (4 bytes an id below 2^32, else 8); FEISTEL and SEQUENTIAL hold nothing. IDS and
 * DATALOADER take `ids` (n entries, copied, each checked 0 ≤ id < dataset_n; -ERANGE). stop, if
 * not NULL, is looked at now and then while computing; when it becomes true the call ends with
 * -ECANCELED. -ENOMEM, -EINVAL (kind), -ENOSYS (BLOCK).
 * The result is immutable: any number of threads may read it.
 */
int permutation_new(struct permutation **ret, int kind, uint64_t n, uint64_t seed, uint64_t epoch,
	const int64_t *ids, uint64_t dataset_n, const atomic_bool *stop);
void permutation_free(struct permutation *p);
uint64_t permutation_at(const struct permutation *p, uint64_t position); /* position < n */
uint64_t permutation_length(const struct permutation *p);
size_t permutation_memory(const struct permutation *p); /* bytes held */

/* ---- shard.c ---- */

struct shard {
	uint64_t n;          /* positions of an epoch, N */
	uint32_t world;      /* W ≥ 1 */
	uint32_t rank;       /* < world */
	uint32_t batch;      /* B ≥ 1, of one rank */
	uint32_t accumulate; /* K ≥ 1 */
	uint32_t tail;       /* enum order_tail */
	uint32_t part;       /* g: this lane delivers places [gB/G, (g+1)B/G) */
	uint32_t parts;      /* G ≥ 1, ≤ B */
};

/* -EINVAL, -ERANGE with a sentence in text (size bytes) that names the numbers. */
int shard_check(const struct shard *s, char *text, size_t size);
/* Steps from position c to the epoch's end, the same on every rank; 0 is possible for drop. */
uint64_t shard_steps(const struct shard *s, uint64_t c);
/* Places of a batch of this lane: capacity (constant) and first place in the rank's batch. */
uint32_t shard_capacity(const struct shard *s);
uint32_t shard_first_place(const struct shard *s);
/* Places to deliver of step (counted from c): less than capacity only for pad with K = 1. */
uint32_t shard_count(const struct shard *s, uint64_t c, uint64_t step);

struct place {
	uint64_t position; /* p = c + (step·B + i)·W + rank; may be ≥ n */
	uint64_t index;    /* p mod n: where the permutation is asked */
	bool valid;        /* false only for mask with p ≥ n, and for what pad trims */
};

/* Place i of this lane's part (0 ≤ i < capacity) in step `step` counted from c. */
struct place shard_place(const struct shard *s, uint64_t c, uint64_t step, uint32_t i);
/* Valid places of this lane from c to the epoch's end. */
uint64_t shard_valid(const struct shard *s, uint64_t c);

/* ---- cursor.c ---- */

#define CURSOR_VERSION 1
#define CURSOR_SIZE    64 /* bytes of an encoded cursor of version 1 */

struct cursor {
	uint8_t fingerprint[16]; /* of the dataset, XXH3-128 */
	uint32_t order;          /* enum order_kind */
	uint64_t seed;
	uint64_t epoch;
	uint64_t c; /* positions of the epoch consumed by all ranks together */
};

/* Little-endian, version and check word first; the same bytes on every rank. */
void cursor_encode(const struct cursor *cursor, uint8_t ret[CURSOR_SIZE]);
/* -EBADMSG with a sentence: size, version, check word, unknown order, non-zero padding. */
int cursor_decode(struct cursor *ret, const void *bytes, size_t size, char *text, size_t text_size);
/* The cursor after `steps` steps from `at`: c moves by steps·B·W; (epoch + 1, 0) past the last. */
struct cursor cursor_after(const struct cursor *at, const struct shard *s, uint64_t steps);
/*
 * Where a lane opened or sought at `at` really starts: (epoch + 1, 0) when c ≥ N or when c > 0
 * and no whole group is left (*ret_moved = true), else `at` itself.
 */
struct cursor cursor_settle(const struct cursor *at, const struct shard *s, bool *ret_moved);

/* ---- digest.c ---- */

/* One place's term of order_digest: XXH64 (seed 0) of (epoch, p, id asked), u64 little-endian. */
uint64_t digest_order(uint64_t epoch, uint64_t position, uint64_t id);
/*
 * One place's term of pixel_digest: the same record, then the uint8 pixels (h·w·3 bytes, rows
 * packed), then the label as i64. pixels NULL hashes zeros (a masked place).
 */
uint64_t digest_pixels(uint64_t epoch, uint64_t position, uint64_t id, const uint8_t *pixels,
	size_t size, int64_t label);
/* Substitute k of an id: XXH64 (seed 0) of (id, k), mod n. */
uint64_t substitute_id(uint64_t id, uint64_t k, uint64_t n);

#endif
