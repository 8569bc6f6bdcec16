/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that tests inject into the reader (reader_config.faults): what file systems, kernels and
 * containers do now and then. What befalls a read depends on nothing but the seed, its path and
 * offset and how many calls it made, so a run can be repeated whatever the threads do.
 *
 * All chances are of 1,000.
 */
#ifndef READER_FAULTS_H
#define READER_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct operation;
struct read_request;

struct reader_fault_error {
	int error;           /* errno; 0: none */
	unsigned int chance; /* of a read */
	unsigned int times;  /* so many of its calls in a row fail; 0: all */
	unsigned int from;   /* after so many calls that were made */
};

struct reader_faults {
	uint64_t seed;
	const char *only; /* reads whose path contains this; NULL: all */

	unsigned int shorten; /* chance of a read call to be cut */
	size_t shorten_to;    /* to at most so many bytes; 0: anywhere */
	unsigned int delay;   /* chance of a completion to be held back, overtaken by others */
	uint64_t delay_ns;    /* for up to this */
	struct reader_fault_error open;
	struct reader_fault_error read;
	unsigned int never; /* chance of a read not to complete before never_fd is readable; what
			     * the kernel then writes into its buffer is READER_FAULT_LATE */
	int never_fd;
	bool never_yields; /* io_uring: the kernel can cancel such a read */

	/* io_uring only */
	unsigned int echo;      /* chance of a completion to come a second time, later */
	unsigned int ring_from; /* this ring creation (from 1) and all after it fail; 0: none */
	int ring_error;
	unsigned int missing_opcode; /* not supported by the kernel; 0: none */
	unsigned int submit;         /* chance of a submission to fail with submit_error */
	int submit_error;
	unsigned int submit_part; /* chance of a submission to take only a part */
};

#define READER_FAULT_LATE 0xEE

/* Hooks. The callers have checked that there are faults. */

uint64_t faults_key(const struct reader_faults *f, const struct read_request *req);
/* How many of want bytes the next read call asks for. */
size_t faults_shorten(const struct reader_faults *f, const struct operation *op, size_t want);
/* -errno that the next call ends with instead of being made, or 0. */
ssize_t faults_error(const struct reader_faults *f, const struct operation *op);
/* How long the completion of the call is held back. */
uint64_t faults_delay_ns(const struct reader_faults *f, const struct operation *op);
/* Whether the next call is to hang; true once an operation. */
bool faults_stick(const struct reader_faults *f, struct operation *op);
/* Hangs as faults_stick asked, then does the late write. */
void faults_block(const struct reader_faults *f, const struct operation *op);
void faults_late_write(const struct operation *op);
bool faults_echo(const struct reader_faults *f, const struct operation *op);
void faults_sleep(uint64_t ns);
/* A draw that belongs to no read: the nth of a thread. */
bool faults_draw(const struct reader_faults *f, unsigned int chance, uint64_t thread, uint64_t n);

#endif
