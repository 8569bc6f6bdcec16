/* SPDX-License-Identifier: Apache-2.0 */
/* A round: a short connection to each daemon, and its snapshot. */
#ifndef STAT_COLLECT_H
#define STAT_COLLECT_H

#include "view.h"

/*
 * Looks at the daemon of `socket`, or (NULL) at every one that this user may see; pairs the
 * snapshots with those of the round before, which are taken from *earlier (may be NULL). Never
 * starts a daemon. The number of daemons found, or a negative errno with a sentence (a named
 * socket at which nobody answers).
 */
int collect(struct views *ret, const char *socket, struct views *earlier, char *text, size_t size);
void views_free(struct views *views);

#endif
