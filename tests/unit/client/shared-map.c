/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of a ring on one mapping, so that TSan sees the same addresses from both threads.
 * Linked with --wrap: the real ring_map_open checks and maps, then its pointers are replaced by
 * the fake daemon's.
 */
#include "fake-daemon.h"

int __real_ring_map_open(
	struct ring_map *ret, int payload_fd, int control_fd, char *text, size_t size);
void __real_ring_map_close(struct ring_map *map);
int __wrap_ring_map_open(
	struct ring_map *ret, int payload_fd, int control_fd, char *text, size_t size);
void __wrap_ring_map_close(struct ring_map *map);

int __wrap_ring_map_open(
	struct ring_map *ret, int payload_fd, int control_fd, char *text, size_t size)
{
	struct ring_map map;
	int r = __real_ring_map_open(&map, payload_fd, control_fd, text, size);
	uint8_t *payload = NULL;
	uint8_t *control = NULL;

	if (r < 0)
		return r;
	*ret = map;
	if (fake_mapping(map.header.lane, &payload, &control)) {
		ret->payload = payload;
		ret->control = control;
		__real_ring_map_close(&map);
	}
	return 0;
}

void __wrap_ring_map_close(struct ring_map *map)
{
	uint8_t *payload = NULL;
	uint8_t *control = NULL;

	/* the fake unmaps its own */
	if (map->payload && fake_mapping(map->header.lane, &payload, &control) &&
		payload == map->payload)
		return;
	__real_ring_map_close(map);
}
