/* SPDX-License-Identifier: Apache-2.0 */
/* Which names are images: torchvision's IMG_EXTENSIONS. */
#include <string.h>
#include <strings.h>

#include "source/folder/walk.h"

bool name_is_image(const char *name)
{
	static const char *const extensions[] = { ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm",
		".tif", ".tiff", ".webp" };
	const char *end = strrchr(name, '.');

	if (!end)
		return false;
	for (size_t i = 0; i < sizeof(extensions) / sizeof(*extensions); i++)
		if (strcasecmp(end, extensions[i]) == 0)
			return true;
	return false;
}
