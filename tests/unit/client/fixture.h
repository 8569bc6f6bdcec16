/* SPDX-License-Identifier: Apache-2.0 */
/* A fake daemon, a connection to it and a lane of /tmp's own directory: what most tests need. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake-daemon.h"
#include "feeder/feeder.h"

struct fixture {
	struct fake *fake;
	struct feeder *f;
	struct feeder_lane *lane;
	struct feeder_batch batch;
};

/* Connects to the fake; lane_timeout_ms 0: the default. */
void fixture_start(struct fixture *x, const struct fake_config *config, int lane_timeout_ms);
/* The connection only. */
void fixture_connect(struct fixture *x, const struct fake_config *config);
void fixture_stop(struct fixture *x);

/* The next batch, which must come and hold what the fake wrote into batch n. */
void fixture_next(struct fixture *x, uint64_t n);
void fixture_check_pixels(const struct feeder_batch *batch);
/* The last error holds these words. */
void assert_error_says(const char *words);
unsigned int count_fds(void);

#endif
