/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a lane is as fast as it is: one sentence with a number. Pure functions over snapshots.
 *
 * The ledger that they read: the client counts the time it waited in next(), the daemon splits it
 * by the stage that was short, and counts the time in which every slot was ready.
 */
#ifndef STAT_WHY_H
#define STAT_WHY_H

#include "snapshot.h"

enum why_kind {
	WHY_NONE,     /* nothing is short: it hardly waited, and the ring was not always full */
	WHY_CONSUMER, /* the ring was full: the consumer is the limit */
	WHY_DECODE,
	WHY_TRANSFORM,
	WHY_READ,
	WHY_ORDER,
	WHY_STARTING, /* no batch yet */
	WHY_STALLED,  /* slots are free, and no batch came */
	WHY_IDLE,     /* nobody asks */
	WHY_DRAINING,
	WHY_FAILED,
	WHY_CLOSED,
	WHY_TRAINER,   /* of a daemon: its own CPU use may delay the trainer */
	WHY_THROTTLED, /* of a daemon: its CPU quota stops it */
};

struct verdict {
	enum why_kind kind;
	double waited; /* part of the time that the consumer waited */
	double share;  /* of the waiting, the named stage's part */
	double full;   /* part of the time with every slot ready */
	double number; /* of a daemon's verdict: CPUs busy, or the part of the time stopped */
	char text[512];
};

/* One word for tables and JSON: "decode". */
const char *why_word(enum why_kind kind);

/*
 * The verdict on now->lanes[lane]; before NULL: since the lane was opened. cpus: what the daemon
 * may use, 0 = not known.
 */
void why_lane(struct verdict *ret, const struct snapshot *before, const struct snapshot *now,
	uint32_t lane, unsigned int cpus);

#define WHY_DAEMON_MAX 2
/* What is to be said about the daemon as a whole; the number of verdicts. */
unsigned int why_daemon(struct verdict ret[WHY_DAEMON_MAX], const struct snapshot *before,
	const struct snapshot *now, unsigned int cpus);
/* Ranks that are attached, by what this uid sees: (uid, job, rank) with a lane. */
unsigned int why_ranks(const struct snapshot *now);

#endif
