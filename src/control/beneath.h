/* SPDX-License-Identifier: Apache-2.0 */
/* The two proofs that a descriptor lies beneath a directory: see roots.h. */
#ifndef CONTROL_BENEATH_H
#define CONTROL_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A directory by what does not change when names do. */
struct place_id {
	dev_t dev;
	ino_t ino;
};

int place_id_read(struct place_id *ret, int fd);
bool place_id_equal(const struct place_id *a, const struct place_id *b);

/* openat2(2): flags as open; resolve as struct open_how's. A descriptor or -errno. */
int open_resolved(int dirfd, const char *path, int flags, uint64_t resolve);
/* The kernel's name of fd; -ENAMETOOLONG, -errno. */
int fd_name(int fd, char *ret, size_t size);

/* Going up from directory fd meets root, in one mount. */
bool beneath_by_parents(int fd, const struct place_id *root);
/* fd's name, beneath root_fd, is fd. */
bool beneath_by_name(int fd, int root_fd);
/* The directory dirfd has an entry under fd's own last name that is fd. */
bool is_entry_of(int fd, int dirfd);

#endif
