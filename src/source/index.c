/* SPDX-License-Identifier: Apache-2.0 */
/* Index files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "source/index.h"

/*
 * Whose index is believed: in the cache our own; inside a dataset ours, root's, or that of the
 * directory's owner, who decides about names and labels anyway.
 */
static bool owner_is_trusted(const struct place *p, const struct stat *st)
{
	struct stat directory;

	if (st->st_uid == geteuid())
		return true;
	if (!p->inside)
		return false;
	return st->st_uid == 0 ||
	       (fstat(p->dirfd, &directory) == 0 && st->st_uid == directory.st_uid);
}

static int index_damaged(const struct place *p, const char *why, char *warning, size_t size)
{
	char *path = place_path(p, PLACE_INDEX);

	sentence_set(0, warning, size, "index %s is damaged: %s; the dataset is scanned anew",
		path ? path : p->stem, why);
	free(path);
	return INDEX_DAMAGED;
}

int index_load(const struct place *p, struct scan *s, const struct index_key *key,
	struct image *ret, char *warning, size_t size)
{
	CLEANUP(fd_closep) int fd = -1;
	char why[SENTENCE_MAX / 4];
	struct image image;
	struct stat st;
	int r;

	if (p->dirfd < 0)
		return INDEX_NONE;
	fd = place_open(p, PLACE_INDEX, &st);
	if (fd < 0 || !owner_is_trusted(p, &st))
		return INDEX_NONE;
	r = image_read(&image, fd, (uint64_t)st.st_size, why, sizeof(why));
	if (r == IMAGE_DAMAGED)
		return index_damaged(p, why, warning, size);
	if (r < 0)
		return index_damaged(p, strerror(-r), warning, size);
	if (r != 0)
		return INDEX_NONE;
	if (image.header->format != key->format->number || image.header->flags != key->flags)
		r = INDEX_NONE;
	else
		r = key->format->check(s, &image, key->root);
	if (r != 0) {
		image_free(&image);
		return r < 0 ? r : INDEX_NONE;
	}
	*ret = image;
	return 0;
}

int index_store(const struct place *p, const struct image *image)
{
	struct iovec whole = { .iov_base = image->base, .iov_len = image->size };

	return place_replace(p, PLACE_INDEX, &whole, 1);
}
