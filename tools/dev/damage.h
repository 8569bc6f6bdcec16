/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways in which files of published datasets are broken, done to a good baseline JPEG.
 *
 * Each way has the word of include/feeder/status.h that feeder gives such a file ("ok" for the
 * PNG under a JPEG's name, which is decoded as what it is), or "maybe" where it depends on the
 * box that is asked for.
 */
#ifndef TOOLS_DEV_DAMAGE_H
#define TOOLS_DEV_DAMAGE_H

#include "base/philox.h"
#include "tools/dev/photo.h"

struct damage {
	const char *kind;
	const char *status;
	/* photo is one made `plain`; its size may grow up to its capacity. 0, or -EIO. */
	int (*apply)(struct photo *photo, struct philox_stream *random);
};

/* All ways, in the order in which they are used in rotation; ends with a NULL kind. */
extern const struct damage damages[];
extern const unsigned int damage_count;

#endif
