/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a path has. */
#include <stddef.h>

#include "source/format.h"

const struct source_format *format_of(const struct statx *root)
{
	if (S_ISDIR(root->stx_mode))
		return &folder_format;
	if (S_ISREG(root->stx_mode))
		return &list_format;
	return NULL;
}
