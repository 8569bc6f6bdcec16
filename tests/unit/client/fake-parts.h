/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake daemon's files know of one another; all of it runs on the fake's thread. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-daemon.h"

#define MUST(x)                                                                        \
	do {                                                                           \
		if (!(x)) {                                                            \
			fprintf(stderr, "fake daemon: %s: %s\n", #x, strerror(errno)); \
			abort();                                                       \
		}                                                                      \
	} while (0)

/* fake-ring.c */
struct ring_words *fake_words(struct fake_lane *lane);
void fake_make_ring(struct fake *fake, struct fake_lane *lane);
void fake_free_lane(struct fake_lane *lane);
void fake_publish(struct fake *fake, struct fake_lane *lane);
void fake_put_cursor(uint8_t ret[FAKE_CURSOR], uint64_t epoch, uint64_t step);

/* fake-answers.c */
void fake_answer(struct fake *fake, int session, const struct control_packet *packet);

#endif
