/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a dataset. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "source/fingerprint.h"
#include "source/image.h"

static void put_u64(XXH3_state_t *state, uint64_t value)
{
	uint64_t little = htole64(value);

	XXH3_128bits_update(state, &little, sizeof(little));
}

static void put_sample(XXH3_state_t *state, const struct image *image, uint64_t id)
{
	const struct index_sample *s = &image->samples[id];
	const char *directory = image->names + image->directories[s->directory].path;
	const char *name = image->names + s->name;
	size_t length = strlen(directory);

	if (length) {
		XXH3_128bits_update(state, directory, length);
		XXH3_128bits_update(state, "/", 1);
	}
	XXH3_128bits_update(state, name, strlen(name) + 1);
	put_u64(state, s->size);
	put_u64(state, (uint64_t)image->labels[s->label]);
}

int fingerprint_compute(const struct image *image, uint8_t *ret)
{
	static const char version[] = "feeder fingerprint 1";
	XXH3_state_t *state = XXH3_createState();
	XXH128_canonical_t canonical;

	if (!state)
		return -ENOMEM;
	XXH3_128bits_reset(state);
	XXH3_128bits_update(state, version, sizeof(version));
	put_u64(state, image->header->class_count);
	for (uint64_t i = 0; i < image->header->class_count; i++) {
		const char *name = image->names + image->classes[i];

		XXH3_128bits_update(state, name, strlen(name) + 1);
	}
	put_u64(state, image->header->sample_count);
	for (uint64_t i = 0; i < image->header->sample_count; i++)
		put_sample(state, image, i);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	XXH3_freeState(state);
	memcpy(ret, canonical.digest, sizeof(canonical.digest));
	return 0;
}
