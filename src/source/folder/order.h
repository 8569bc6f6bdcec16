/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a class: by the directories' paths, bytewise, then by name, bytewise. */
#ifndef SOURCE_FOLDER_ORDER_H
#define SOURCE_FOLDER_ORDER_H

#include <stddef.h>

#include "source/chunk.h"

/* Sorts the samples from first on, all of one directory, by name. */
void order_names(struct chunk *c, size_t first);

/*
 * Sorts directories, and with them their samples, by path. In c the samples of a directory lie
 * together. A path is compared as a whole: "a-b" comes before "a/b". -ENOMEM.
 */
int order_directories(struct chunk *c);

#endif
