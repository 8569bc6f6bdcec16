/* SPDX-License-Identifier: Apache-2.0 */
/* Per uid: ring bytes, lanes, sessions, against the configured limits. Control thread. */
#ifndef CONTROL_QUOTA_H
#define CONTROL_QUOTA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/config.h"

struct quota;

/* available: memory that the daemon may use, from which ring_bytes = 0 takes its half. */
int quota_new(struct quota **ret, const struct config_limits *limits, uint64_t available);
void quota_free(struct quota *quota);
/* New limits hold for what is asked from now on; what is held stays. */
void quota_set_limits(struct quota *quota, const struct config_limits *limits);
uint64_t quota_ring_limit(const struct quota *quota);
uint32_t quota_workers_share(const struct quota *quota);

/*
 * Take one session, one lane, bytes of a ring: 0, -ENOMEM, or -EDQUOT with a sentence that gives
 * what is asked, what is held and the limit's name.
 */
int quota_take_session(struct quota *quota, uid_t uid, char *text, size_t size);
int quota_take_lane(struct quota *quota, uid_t uid, char *text, size_t size);
int quota_take_bytes(struct quota *quota, uid_t uid, uint64_t bytes, char *text, size_t size);
void quota_give_session(struct quota *quota, uid_t uid);
void quota_give_lane(struct quota *quota, uid_t uid);
void quota_give_bytes(struct quota *quota, uid_t uid, uint64_t bytes);
/* Of all uids together. */
uint64_t quota_ring_bytes(const struct quota *quota);

#endif
