/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an index still is the folder that it was made of. */
#ifndef SOURCE_FOLDER_CHECK_H
#define SOURCE_FOLDER_CHECK_H

#include <sys/stat.h>

struct image;
struct scan;

/* As source_format.check: 0; 1 = some directory is not as it was; a negative errno. */
int folder_check(struct scan *s, const struct image *image, const struct statx *root);

#endif
