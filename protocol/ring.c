/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer's view of a ring: everything that the header says is checked once, against the
 * memfd's real size and seals, and copied; later accesses use the copy only.
 */
#include "protocol/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int ring_futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0) == 0 || errno == EAGAIN)
		return 0;
	return -errno;
}

const char *ring_state_name(uint32_t state)
{
	switch (state) {
	case RING_RUNNING:
		return "running";
	case RING_DRAINING:
		return "draining";
	case RING_FAILED:
		return "failed";
	case RING_CLOSED:
		return "closed";
	default:
		return "unknown";
	}
}

void ring_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int refuse(char *text, size_t size, const char *what)
{
	snprintf(text, size, "the daemon's ring is malformed: %s", what);
	return -EPROTO;
}

/* Whether [offset, offset + count * stride) lies in total, without overflow. */
static int inside(uint64_t offset, uint64_t stride, uint64_t count, uint64_t total)
{
	uint64_t bytes;

	return !__builtin_mul_overflow(stride, count, &bytes) && offset <= total &&
	       bytes <= total - offset;
}

static int check_records(const struct ring_header *h, char *text, size_t size)
{
	if (h->slots < RING_SLOTS_MIN || h->slots > RING_SLOTS_MAX || h->capacity == 0)
		return refuse(text, size, "slots or capacity");
	if (h->field_count > RING_FIELDS_MAX || h->field_size < sizeof(struct ring_field) ||
		h->place_size < sizeof(struct ring_place) ||
		h->places_offset < sizeof(struct ring_descriptor) ||
		(h->place_size | h->field_size | h->places_offset | h->descriptor_stride) % 8)
		return refuse(text, size, "record sizes");
	if (!inside(h->places_offset, h->place_size, h->capacity, h->descriptor_stride))
		return refuse(text, size, "places");
	return 0;
}

static int check_header(const struct ring_header *h, uint64_t total, char *text, size_t size)
{
	int r;

	if (h->magic != RING_MAGIC)
		return refuse(text, size, "no ring");
	if (h->major != RING_MAJOR) {
		snprintf(text, size, "the daemon's ring has version %u.%u, this library reads %u.x",
			h->major, h->minor, RING_MAJOR);
		return -EPROTO;
	}
	if (h->total_size != total || h->header_size < sizeof(*h))
		return refuse(text, size, "sizes");
	r = check_records(h, text, size);
	if (r < 0)
		return r;
	if (!inside(h->fields_offset, h->field_size, h->field_count, total) ||
		!inside(h->words_offset, sizeof(struct ring_words), 1, total) ||
		!inside(h->descriptor_offset, h->descriptor_stride, h->slots, total) ||
		!inside(h->slot_offset, h->slot_stride, h->slots, total) ||
		!inside(h->parcel_offset, h->parcel_size, 1, h->slot_stride))
		return refuse(text, size, "offsets");
	if ((h->fields_offset | h->descriptor_offset) % 8 || h->words_offset % RING_LINE)
		return refuse(text, size, "alignment");
	if (!inside(h->waiting_offset, 4, 1, h->control_size) ||
		!inside(h->telemetry_offset, sizeof(struct ring_telemetry), 1, h->control_size) ||
		!inside(h->release_offset, h->release_stride, h->slots, h->control_size) ||
		h->release_stride < 4 ||
		(h->waiting_offset | h->release_offset | h->release_stride) % 4 ||
		h->telemetry_offset % 8)
		return refuse(text, size, "control words");
	return 0;
}

/* The memfd cannot shrink under the mapping: no SIGBUS later. */
static int check_seals(int fd, uint64_t *ret_size, char *text, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_SEAL)) != (F_SEAL_SHRINK | F_SEAL_SEAL))
		return refuse(text, size, "its memory is not sealed");
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int map_control(struct ring_map *map, int fd, char *text, size_t size)
{
	uint64_t total = 0;
	int r = check_seals(fd, &total, text, size);
	void *p;

	if (r < 0)
		return r;
	if (total < map->header.control_size)
		return refuse(text, size, "control size");
	p = mmap(NULL, map->header.control_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	map->control = p;
	return 0;
}

int ring_map_open(struct ring_map *ret, int payload_fd, int control_fd, char *text, size_t size)
{
	struct ring_map map = { .payload = NULL };
	uint64_t total = 0;
	int r = check_seals(payload_fd, &total, text, size);
	int protection = PROT_READ;
	void *p;

	if (r < 0)
		return r;
	if (total < sizeof(struct ring_header))
		return refuse(text, size, "too small");
	if (pread(payload_fd, &map.header, sizeof(map.header), 0) != (ssize_t)sizeof(map.header))
		return refuse(text, size, "header not readable");
	r = check_header(&map.header, total, text, size);
	if (r < 0)
		return r;
	if (map.header.flags & RING_PAYLOAD_RW)
		protection |= PROT_WRITE;
	p = mmap(NULL, total, protection, MAP_SHARED, payload_fd, 0);
	if (p == MAP_FAILED) {
		snprintf(text, size, "mapping the ring of %llu bytes failed: %s",
			(unsigned long long)total, strerror(errno));
		return -errno;
	}
	map.payload = p;
	madvise(p, total, MADV_DONTFORK);
	r = map_control(&map, control_fd, text, size);
	if (r < 0) {
		munmap(map.payload, total);
		return r;
	}
	madvise(map.control, map.header.control_size, MADV_DONTFORK);
	*ret = map;
	return 0;
}

void ring_map_close(struct ring_map *map)
{
	if (map->payload)
		munmap(map->payload, map->header.total_size);
	if (map->control)
		munmap(map->control, map->header.control_size);
	map->payload = NULL;
	map->control = NULL;
}

const struct ring_words *ring_map_words(const struct ring_map *map)
{
	return (const void *)(map->payload + map->header.words_offset);
}

const struct ring_field *ring_map_field(const struct ring_map *map, uint32_t i)
{
	return (const void *)(map->payload + map->header.fields_offset +
			      (uint64_t)i * map->header.field_size);
}

const struct ring_descriptor *ring_map_descriptor(const struct ring_map *map, uint64_t n)
{
	return (const void *)(map->payload + map->header.descriptor_offset +
			      ring_slot_of(n, map->header.slots) * map->header.descriptor_stride);
}

const struct ring_place *ring_map_place(const struct ring_map *map, uint64_t n, uint32_t i)
{
	return (const void *)((const uint8_t *)ring_map_descriptor(map, n) +
			      map->header.places_offset + (uint64_t)i * map->header.place_size);
}

const uint8_t *ring_map_slot(const struct ring_map *map, uint64_t n)
{
	return map->payload + map->header.slot_offset +
	       ring_slot_of(n, map->header.slots) * map->header.slot_stride;
}

uint32_t *ring_map_release_word(const struct ring_map *map, uint64_t n)
{
	return (uint32_t *)(void *)(map->control + map->header.release_offset +
				    (uint64_t)ring_slot_of(n, map->header.slots) *
					    map->header.release_stride);
}

uint32_t *ring_map_waiting_word(const struct ring_map *map)
{
	return (uint32_t *)(void *)(map->control + map->header.waiting_offset);
}

struct ring_telemetry *ring_map_telemetry(const struct ring_map *map)
{
	return (void *)(map->control + map->header.telemetry_offset);
}
