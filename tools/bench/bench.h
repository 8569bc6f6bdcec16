/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder-bench: drains one lane and says how fast, how exact, and how near to the limit.
 *
 *	options.c  the command line → struct bench_options
 *	drain.c    connection, lane, batches → struct bench_result
 *	limit.c    libjpeg-turbo alone on the same crops
 *	dump.c     what was delivered, as .npy files
 *	report.c   text and JSON
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feeder/feeder.h"

#define EXIT_DONE     0
#define EXIT_FINDING  1
#define EXIT_USAGE    2
#define EXIT_NODAEMON 3

#define SETS_MAX      32

struct bench_options {
	const char *dataset;
	const char *socket;
	const char *dump;
	const char *sets[SETS_MAX + 1];
	unsigned int set_count;
	unsigned int slots; /* --set slots=N */
	unsigned int batch;
	unsigned int size;
	unsigned int workers;
	unsigned int world;
	unsigned int rank;
	unsigned int accumulate;
	unsigned int order;
	unsigned int tail;
	unsigned int bad;
	uint64_t epochs;
	uint64_t steps; /* 0: by epochs */
	uint64_t from;
	uint64_t seed;
	bool eval;
	bool limit;
	bool digest;
	bool json;
};

/* 0 go on; else the exit status + 1 (help and version are done, usage is wrong). */
int bench_options_parse(struct bench_options *ret, int argc, char **argv);

#define ROUNDS 5

struct bench_round {
	double feeder; /* images per CPU second */
	double limit;
};

struct bench_result {
	uint64_t images; /* consumed: places of batches, those past the end not counted */
	uint64_t steps;
	uint64_t bad_samples;
	uint64_t order_digest;
	uint64_t pixel_digest;
	double seconds;      /* of draining, wall */
	double wait_seconds; /* of it, in feeder_next */
	double images_per_s;
	double images_per_cpu_s;
	double setup_cpu_s;
	double first_batch_ms;
	double decode_share; /* of the daemon's sample CPU time */
	double other_share;  /* of all CPU time: not decode, not transform */
	uint64_t ring_bytes;
	unsigned int workers;
	unsigned int rounds;
	struct bench_round round[ROUNDS];
	double limit_images_per_cpu_s; /* median */
	double ratio_to_limit;         /* median of the rounds' ratios */
	char reader[32];
	char simd[32];
	char codec[64];
	char dataset_format[16];
	uint64_t dataset_samples;
	uint32_t classes;
	bool private_daemon;
};

/* Runs; an error is printed to stderr. The exit status. */
int bench_run(const struct bench_options *o, struct bench_result *ret);

void bench_report(const struct bench_options *o, const struct bench_result *r);
void bench_report_json(const struct bench_options *o, const struct bench_result *r);

/* ---- limit.c ---- */

struct limit_crops;

/* threads: as many as the daemon has workers. NULL: no memory. */
struct limit_crops *limit_crops_new(const char *dataset, unsigned int threads);
void limit_crops_free(struct limit_crops *c);
/* Notes what a batch delivered: id and box of every good place. 0 or a negative errno. */
int limit_crops_add(
	struct limit_crops *c, struct feeder_lane *lane, const struct feeder_batch *batch);
/*
 * Reads the noted files into memory, decodes every crop by libjpeg-turbo alone, each thread by its
 * CPU clock; forgets them. Images per CPU second, 0 where there were none; -1 on failure (said).
 */
double limit_crops_run(struct limit_crops *c, struct feeder_lane *lane);

/* ---- dump.c ---- */

/* 0, or -1 when a file could not be written (said on stderr). */
int bench_dump(const char *directory, uint64_t number, struct feeder_lane *lane,
	const struct feeder_batch *batch, unsigned int size);

#endif
