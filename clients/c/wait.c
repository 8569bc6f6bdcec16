/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a batch: a short spin, then sleeps of at most 100 ms on the ring's futex. Between
 * sleeps the socket and the ring's state word are looked at, so that no wait outlives its daemon
 * by more than a slice; what was published before the end is still delivered.
 */
#include "client.h"

#include <errno.h>

#include "base/clock.h"

#define SPIN_NS  5000
#define SLICE_NS (100 * NS_PER_MS)
/* How long the reason of a failed lane may come after its state. */
#define REASON_MS 250

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static int spin(struct feeder_lane *lane, uint64_t start)
{
	do {
		for (unsigned int i = 0; i < 16; i++) {
			int r = fdr_available(lane);

			if (r != 0)
				return r;
			pause_cpu();
		}
	} while (now_ns() - start < SPIN_NS);
	return 0;
}

/* The state says that nothing comes any more; the reason is an event on the socket. */
static int fail_ended(struct feeder_lane *lane, uint32_t state)
{
	struct feeder *f = lane->f;
	uint64_t deadline = now_ns() + REASON_MS * NS_PER_MS;

	while (!lane->error && !f->dead && now_ns() < deadline) {
		if (fdr_dispatch_wait(f, 50) < 0)
			return fdr_fail(-EINTR, "interrupted by a signal");
	}
	if (lane->error)
		return fdr_fail(lane->error, "%s", lane->error_text);
	if (f->dead)
		return fdr_fail_dead(f);
	if (state == RING_CLOSED)
		return fdr_fail(-ESTALE, "the daemon closed lane %s", lane->name);
	return fdr_fail(-EPIPE, "lane %s failed and the daemon did not say why", lane->name);
}

/* 1: a batch is there; 0: go on waiting; negative: nothing more comes. */
static int look(struct feeder_lane *lane)
{
	struct feeder *f = lane->f;
	uint32_t state;
	int r;

	fdr_dispatch(f);
	if (lane->error == -ESTALE || lane->error == -EPROTO)
		return fdr_fail(lane->error, "%s", lane->error_text);
	if (lane->pending)
		return f->dead ? fdr_fail_dead(f) : 0;
	state = ring_load_acquire(&lane->words->state); /* E4, before the last look at published */
	if (state == RING_CLOSED)
		return fail_ended(lane, state);
	r = fdr_available(lane);
	if (r != 0)
		return r;
	if (lane->error)
		return fdr_fail(lane->error, "%s", lane->error_text);
	if (f->dead)
		return fdr_fail_dead(f);
	return state == RING_FAILED ? fail_ended(lane, state) : 0;
}

/* E3: the flag is up before the word is read again, so no publication falls between. */
static int sleep_slice(struct feeder_lane *lane, uint64_t ns)
{
	uint32_t *waiting = ring_map_waiting_word(&lane->map);
	uint32_t seen;
	int r = 0;

	if (lane->pending) {
		/* the reply comes by the socket and not by the ring */
		return fdr_dispatch_wait(lane->f, (int)((ns + NS_PER_MS - 1) / NS_PER_MS));
	}
	ring_store_seq(waiting, 1);
	seen = ring_load_seq(&lane->words->published);
	if (seen == (uint32_t)(lane->next - 1))
		r = ring_futex_wait(&lane->words->published, seen, ns);
	ring_store_seq(waiting, 0);
	return r == -EINTR ? r : 0;
}

static int fail_early(struct feeder_lane *lane, int timeout_ms)
{
	return fdr_fail(-EAGAIN, "lane %s: batch %llu is not ready after %d ms", lane->name,
		(unsigned long long)lane->next, timeout_ms);
}

static int wait_batch(struct feeder_lane *lane, int timeout_ms, uint64_t start)
{
	uint64_t own = (uint64_t)lane->timeout_ms * NS_PER_MS;
	uint64_t limit = own > lane->stalled_ns ? own - lane->stalled_ns : 0;
	bool stalls = true;

	if (timeout_ms >= 0 && (uint64_t)timeout_ms * NS_PER_MS < limit) {
		limit = (uint64_t)timeout_ms * NS_PER_MS;
		stalls = false;
	}
	for (;;) {
		int r = look(lane);
		uint64_t waited;

		if (r != 0)
			return r;
		waited = now_ns() - start;
		if (waited >= limit)
			return stalls && timeout_ms != 0 ? -ETIMEDOUT : -EAGAIN;
		r = sleep_slice(lane, limit - waited < SLICE_NS ? limit - waited : SLICE_NS);
		if (r < 0)
			return fdr_fail(r, "interrupted by a signal");
	}
}

int fdr_wait(struct feeder_lane *lane, int timeout_ms, uint64_t *ret_wait_ns)
{
	struct ring_telemetry *telemetry = ring_map_telemetry(&lane->map);
	uint64_t start = now_ns();
	uint64_t waited;
	int r = 0;

	if (timeout_ms != 0 && !lane->pending &&
		ring_load_acquire(&lane->words->state) != RING_CLOSED) /* E4 */
		r = spin(lane, start);
	if (r == 0)
		r = wait_batch(lane, timeout_ms, start);
	waited = now_ns() - start;
	lane->wait_ns += waited;
	lane->stalled_ns += waited;
	ring_store_relaxed64(&telemetry->wait_ns, lane->wait_ns); /* E5 */
	*ret_wait_ns = waited;
	if (r == -EAGAIN)
		return fail_early(lane, timeout_ms);
	if (r == -ETIMEDOUT) {
		waited = lane->stalled_ns;
		lane->stalled_ns = 0;
		return fdr_fail_stalled(lane, waited);
	}
	return r;
}
