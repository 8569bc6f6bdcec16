/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring memory stays charged to its uid for as long as it exists: a client may keep a closed
 * lane's memfd, or pass it on, and so hold memory that no lane accounts for. An inotify watch on
 * the memfd tells when its last descriptor and mapping, of any process, are gone (IN_DELETE_SELF:
 * a memfd has no name, so its last reference deletes it). Control thread.
 */
#ifndef CONTROL_CHARGE_H
#define CONTROL_CHARGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "control/quota.h"

struct charges;

/* Where inotify is not to be had every charge_watch fails. -ENOMEM. */
int charges_new(struct charges **ret, struct loop *loop, struct quota *quota);
void charges_free(struct charges *charges);
/*
 * Takes over bytes that uid has been charged with, and gives them back when the memory behind fd
 * is gone. Negative errno: they are still the caller's.
 */
int charge_watch(struct charges *charges, uid_t uid, uint64_t bytes, int fd);

#endif
