/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening beneath a descriptor: nothing that stands in a dataset, links included, leads the
 * daemon out of the directory that it was given, unless options.open_outside allows it.
 */
#ifndef SOURCE_BENEATH_H
#define SOURCE_BENEATH_H

struct dataset_options;

/*
 * Opens path ("" = root itself) with flags (O_CLOEXEC is added) below root; magic links are
 * never followed. Asks options->open_outside where a link leaves root. Returns a descriptor, or
 * a negative errno: -EXDEV where the link leaves and may not be followed.
 */
int beneath_open(int root, const char *path, int flags, const struct dataset_options *options);

#endif
