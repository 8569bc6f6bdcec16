/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that tests inject into the reader. */
#include "reader/faults.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "reader/operation.h"

enum {
	DRAW_SHORTEN = 1,
	DRAW_LENGTH,
	DRAW_DELAY,
	DRAW_TIME,
	DRAW_OPEN,
	DRAW_READ,
	DRAW_NEVER,
	DRAW_ECHO,
	DRAW_THREAD
};

/* splitmix64's finalizer. */
static uint64_t mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

static uint64_t draw(const struct operation *op, unsigned int what, uint64_t step)
{
	return mix(op->fault_key ^ mix(((uint64_t)what << 32) + step));
}

/* fault_key 0 stands for a read that no fault befalls. */
static bool falls(const struct operation *op, unsigned int what, uint64_t step, unsigned int chance)
{
	return chance > 0 && op->fault_key != 0 && draw(op, what, step) % 1000 < chance;
}

uint64_t faults_key(const struct reader_faults *f, const struct read_request *req)
{
	uint64_t key = mix(f->seed);

	if (f->only && !strstr(req->path, f->only))
		return 0;
	for (const char *c = req->path; *c; c++)
		key = mix(key ^ (unsigned char)*c);
	return mix(key ^ req->offset) | 1;
}

size_t faults_shorten(const struct reader_faults *f, const struct operation *op, size_t want)
{
	size_t most = f->shorten_to && f->shorten_to < want ? f->shorten_to : want;

	if (!falls(op, DRAW_SHORTEN, op->steps, f->shorten))
		return want;
	return 1 + draw(op, DRAW_LENGTH, op->steps) % most;
}

ssize_t faults_error(const struct reader_faults *f, const struct operation *op)
{
	bool opening = op->stage == OPERATION_OPEN;
	const struct reader_fault_error *e = opening ? &f->open : &f->read;

	if (e->error == 0 || op->steps < e->from ||
		(e->times > 0 && op->spins + op->retries >= e->times))
		return 0;
	return falls(op, opening ? DRAW_OPEN : DRAW_READ, 0, e->chance) ? -e->error : 0;
}

uint64_t faults_delay_ns(const struct reader_faults *f, const struct operation *op)
{
	if (!falls(op, DRAW_DELAY, op->steps, f->delay))
		return 0;
	return draw(op, DRAW_TIME, op->steps) % (f->delay_ns + 1);
}

bool faults_stick(const struct reader_faults *f, struct operation *op)
{
	if (op->stage != OPERATION_READ || op->was_stuck || !falls(op, DRAW_NEVER, 0, f->never))
		return false;
	op->was_stuck = true;
	return true;
}

void faults_block(const struct reader_faults *f, const struct operation *op)
{
	struct pollfd pfd = { .fd = f->never_fd, .events = POLLIN };

	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	faults_late_write(op);
}

void faults_late_write(const struct operation *op)
{
	memset(op->bytes->data, READER_FAULT_LATE, op->length);
}

bool faults_echo(const struct reader_faults *f, const struct operation *op)
{
	return falls(op, DRAW_ECHO, op->steps, f->echo);
}

void faults_sleep(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / NS_PER_SEC), (long)(ns % NS_PER_SEC) };

	if (ns > 0)
		nanosleep(&ts, NULL);
}

bool faults_draw(const struct reader_faults *f, unsigned int chance, uint64_t thread, uint64_t n)
{
	uint64_t key = mix(f->seed ^ mix((DRAW_THREAD + thread) << 40) ^ n);

	return chance > 0 && mix(key) % 1000 < chance;
}
