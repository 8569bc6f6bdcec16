/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files the daemon reads, and for whom.
 *
 * A root is a directory that the configuration declares readable, for the daemon's own uid and
 * for those in its allow list. Clients send descriptors (O_PATH), possibly of another mount
 * namespace, so no path text is believed. That a descriptor lies beneath a root is proved in one
 * of two ways:
 *
 *	by parents	going up by ".." without ever crossing a mount, a directory is met that has
 *			the root's device and inode. Crossing would prove nothing: in a mount
 *			namespace of his own a user can bind any directory below any other.
 *	by name		the kernel's name for the descriptor, looked up again beneath the root,
 *			in the daemon's own namespace without links, is the same device and inode.
 *
 * Roots are replaced as a whole (SIGHUP); a check runs on the set that was there when it began.
 * All calls from any thread but where noted.
 */
#ifndef CONTROL_ROOTS_H
#define CONTROL_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/config.h"
#include "control/peer.h"

#define ROOTS_MAX 64

struct roots;

/*
 * everything: a private daemon without roots, which may read what its user may. -EINVAL, -ENOENT,
 * -EACCES with a sentence that names the root, and the unit's setting that may hide it.
 */
int roots_new(
	struct roots **ret, const struct config *config, bool everything, char *text, size_t size);
/* Replaces the set; on failure the old one stays. */
int roots_reload(struct roots *roots, const struct config *config, char *text, size_t size);
void roots_free(struct roots *roots);

/*
 * Remembers the peer's groups for its uid while it is connected, for roots_open_outside. Control
 * thread. -ENOMEM.
 */
int roots_enter(struct roots *roots, const struct peer *peer);
void roots_leave(struct roots *roots, uid_t uid);

/* One bit for each root that uid (with what is remembered of it) may have read. */
uint64_t roots_mask(struct roots *roots, uid_t uid);
/* Changes with every reload: masks of different generations do not compare. */
unsigned int roots_generation(struct roots *roots);
/* Whether the peer may have anything read: what is refused at the door otherwise. */
bool roots_admit(struct roots *roots, const struct peer *peer);

/*
 * Whether uid may have fd read: a directory, or a regular file inside the directory dirfd. 0,
 * -EACCES, -EINVAL (neither directory nor file) with a sentence that quotes path, the client's
 * name of it.
 */
int roots_judge(struct roots *roots, uid_t uid, int fd, int dirfd, const char *path, char *text,
	size_t size);
/*
 * Opens what a link leads to, judged by where it ends: a descriptor opened with flags (O_PATH for
 * what is neither directory nor regular file: such things are not opened), -EXDEV, -errno.
 */
int roots_open_outside(struct roots *roots, uid_t uid, int dirfd, const char *path, int flags);

#endif
