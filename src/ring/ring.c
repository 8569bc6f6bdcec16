/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of a lane's shared memory. */
#include "ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "build-config.h"
#if HAVE_NUMA
#include <numaif.h>
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE 4096u

/*
 * Bytes that rings were promised and have not reserved yet: two that are made at once must not
 * both count on the same memory. Guarded by promise_lock.
 */
static pthread_mutex_t promise_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t promised;

/* The bytes, if the machine can spare them: a sixteenth of what it has left stays with it. */
static int promise(uint64_t bytes, uint64_t *ret_available)
{
	uint64_t available;
	int r = 0;

	/* looked at under the lock: a ring just reserved is in it or still among the promises */
	pthread_mutex_lock(&promise_lock);
	available = memory_available();
	available -= promised < available ? promised : available;
	if (bytes > available - available / 16)
		r = -ENOMEM;
	else
		promised += bytes;
	pthread_mutex_unlock(&promise_lock);
	*ret_available = available;
	return r;
}

/* They are reserved now, or given up. */
static void promise_end(uint64_t bytes)
{
	pthread_mutex_lock(&promise_lock);
	promised -= bytes;
	pthread_mutex_unlock(&promise_lock);
}

struct ring {
	/* constant after start */
	struct ring_header header;
	struct ring_extent extents[RING_FIELDS_MAX];
	uint8_t *payload;
	uint8_t *control;
	int payload_fd; /* read-only */
	int control_fd;
	int writer_fd;     /* until ring_reserve_rest */
	uint64_t promised; /* likewise */

	/* guarded by the pipeline's lock */
	uint64_t published;
	uint32_t reserved; /* slots whose memory is there */
};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Lays the payload out; every offset follows from the shape. -EOVERFLOW above 2^46 bytes. */
static int layout(const struct ring_shape *shape, struct ring_header *h,
	struct ring_extent extents[RING_FIELDS_MAX])
{
	uint64_t slot = 0;

	memset(h, 0, sizeof(*h));
	for (uint32_t i = 0; i < shape->field_count; i++) {
		uint64_t bytes;

		if (__builtin_mul_overflow(
			    shape->fields[i].place_bytes, (uint64_t)shape->capacity, &bytes) ||
			bytes > (uint64_t)1 << 44)
			return -EOVERFLOW;
		extents[i] = (struct ring_extent){ slot, bytes };
		slot = round_up(slot + bytes, RING_LINE);
	}
	h->magic = RING_MAGIC;
	h->major = RING_MAJOR;
	h->minor = RING_MINOR;
	h->header_size = sizeof(*h);
	h->flags = shape->flags;
	h->slots = shape->slots;
	h->capacity = shape->capacity;
	h->field_count = shape->field_count;
	h->field_size = sizeof(struct ring_field);
	h->place_size = sizeof(struct ring_place);
	h->fields_offset = sizeof(*h);
	h->words_offset = h->fields_offset + RING_FIELDS_MAX * sizeof(struct ring_field);
	h->descriptor_offset = h->words_offset + sizeof(struct ring_words);
	h->places_offset = sizeof(struct ring_descriptor);
	h->descriptor_stride =
		h->places_offset + (uint64_t)shape->capacity * sizeof(struct ring_place);
	h->slot_offset = round_up(h->descriptor_offset + shape->slots * h->descriptor_stride, PAGE);
	h->slot_stride = round_up(slot, PAGE);
	h->total_size = h->slot_offset + shape->slots * h->slot_stride;
	h->lane = shape->lane;
	memcpy(h->fingerprint, shape->fingerprint, sizeof(h->fingerprint));
	h->waiting_offset = RING_CONTROL_WAITING;
	h->telemetry_offset = RING_CONTROL_TELEMETRY;
	h->release_offset = RING_CONTROL_RELEASE;
	h->release_stride = RING_LINE;
	h->control_size = (uint32_t)round_up(h->release_offset + shape->slots * RING_LINE, PAGE);
	return h->total_size > (uint64_t)1 << 46 ? -EOVERFLOW : 0;
}

int ring_size(const struct ring_shape *shape, uint64_t *ret)
{
	struct ring_extent extents[RING_FIELDS_MAX];
	struct ring_header h;
	int r = layout(shape, &h, extents);

	if (r < 0)
		return r;
	*ret = h.total_size;
	return 0;
}

/* Reserves [offset, offset + bytes) of fd. */
static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
	int r;

	do {
		r = fallocate(fd, 0, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
	} while (r == -EINTR);
	return r;
}

static int no_room(uint64_t bytes, uint64_t available, int error, char *text, size_t size)
{
	snprintf(text, size,
		"the ring needs %.1f MiB of memory and %.1f MiB are available: %s; ask for fewer "
		"slots, a smaller batch or a smaller image",
		(double)bytes / 1048576.0, (double)available / 1048576.0, strerror(-error));
	return error;
}

/* Best effort: a missing node or permission costs locality, not correctness. */
static void place_memory(void *map, uint64_t bytes, int node)
{
#if HAVE_NUMA
	if (node >= 0 && node < 1024) {
		unsigned long mask[1024 / (8 * sizeof(unsigned long))] = { 0 };

		mask[(size_t)node / (8 * sizeof(unsigned long))] |=
			1ul << ((size_t)node % (8 * sizeof(unsigned long)));
		mbind(map, bytes, MPOL_PREFERRED, mask, 1024, 0);
	}
#else
	(void)node;
#endif
	madvise(map, bytes, MADV_HUGEPAGE);
	madvise(map, bytes, MADV_DONTFORK);
}

/*
 * A memfd of `bytes` bytes, mapped writable, of which the first `now` are reserved. Reserving is
 * the first touch: where the memory is to be has to be said before it.
 */
static int make_memory(const char *name, uint64_t bytes, uint64_t now, int node, int *ret_fd,
	uint8_t **ret_map, char *text, size_t size)
{
	CLEANUP(fd_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;
	int r = 0;

	if (fd < 0 || fchmod(fd, 0400) < 0 || ftruncate(fd, (off_t)bytes) < 0) {
		r = -errno;
		snprintf(text, size, "making a memfd failed: %s", strerror(-r));
		return r;
	}
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		r = -errno;
		snprintf(text, size, "mapping %.1f MiB failed: %s", (double)bytes / 1048576.0,
			strerror(-r));
		return r;
	}
	place_memory(map, bytes, node);
	r = reserve(fd, 0, now);
	if (r < 0) {
		munmap(map, bytes);
		return no_room(bytes, memory_available(), r, text, size);
	}
	*ret_fd = fd_steal(&fd);
	*ret_map = map;
	return 0;
}

/* The descriptor that leaves the daemon cannot write, whatever its receiver does with it. */
static int reopen_read_only(int fd)
{
	char path[64];
	int read_only;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	return read_only < 0 ? -errno : read_only;
}

static void write_fields(
	const struct ring_shape *shape, const struct ring_header *h, uint8_t *payload)
{
	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ring_shape_field *from = &shape->fields[i];
		struct ring_field *to =
			(void *)(payload + h->fields_offset + i * sizeof(struct ring_field));

		snprintf(to->name, sizeof(to->name), "%s", from->name);
		to->dtype = from->dtype;
		to->ndim = from->ndim;
		memcpy(to->shape, from->shape, sizeof(to->shape));
		memcpy(to->strides, from->strides, sizeof(to->strides));
	}
	memcpy(payload, h, sizeof(*h));
}

static int seal(struct ring *ring, int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (!(ring->header.flags & RING_PAYLOAD_RW))
		seals |= F_SEAL_FUTURE_WRITE;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) < 0 ||
		fcntl(ring->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

int ring_new(struct ring **ret, const struct ring_shape *shape, char *text, size_t size)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	const struct ring_header *h;
	uint64_t available;
	int r;

	if (!ring)
		return -ENOMEM;
	ring->payload_fd = -1;
	ring->control_fd = -1;
	ring->writer_fd = -1;
	ring->reserved = 1;
	h = &ring->header;
	r = layout(shape, &ring->header, ring->extents);
	if (r < 0) {
		snprintf(text, size, "a ring of %u slots of this batch is too large", shape->slots);
		goto fail;
	}
	r = promise(h->total_size, &available);
	if (r < 0) {
		no_room(h->total_size, available, r, text, size);
		goto fail;
	}
	ring->promised = h->total_size;
	r = make_memory("feeder-ring", h->total_size, h->slot_offset + h->slot_stride,
		shape->numa_node, &ring->writer_fd, &ring->payload, text, size);
	if (r < 0)
		goto fail;
	r = make_memory("feeder-control", h->control_size, h->control_size, shape->numa_node,
		&ring->control_fd, &ring->control, text, size);
	if (r < 0)
		goto fail;
	write_fields(shape, &ring->header, ring->payload);
	if (ring->header.flags & RING_PAYLOAD_RW)
		ring->payload_fd = fcntl(ring->writer_fd, F_DUPFD_CLOEXEC, 0);
	else
		ring->payload_fd = reopen_read_only(ring->writer_fd);
	r = ring->payload_fd < 0 ? -errno : seal(ring, ring->writer_fd);
	if (r < 0) {
		snprintf(text, size, "sealing the ring failed: %s", strerror(-r));
		goto fail;
	}
	*ret = ring;
	return 0;
fail:
	ring_free(ring);
	return r;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	if (ring->payload)
		munmap(ring->payload, ring->header.total_size);
	if (ring->control)
		munmap(ring->control, ring->header.control_size);
	fd_close(ring->payload_fd);
	fd_close(ring->control_fd);
	fd_close(ring->writer_fd);
	promise_end(ring->promised);
	free(ring);
}

int ring_reserve_rest(struct ring *ring, char *text, size_t size)
{
	const struct ring_header *h = &ring->header;
	uint64_t offset = h->slot_offset + h->slot_stride;
	int r = reserve(ring->writer_fd, offset, h->total_size - offset);

	ring->writer_fd = fd_close(ring->writer_fd);
	promise_end(ring->promised);
	ring->promised = 0;
	return r < 0 ? no_room(h->total_size, memory_available(), r, text, size) : 0;
}

void ring_open_rest(struct ring *ring)
{
	ring->reserved = ring->header.slots;
}

int ring_payload_fd(const struct ring *ring)
{
	return ring->payload_fd;
}

int ring_control_fd(const struct ring *ring)
{
	return ring->control_fd;
}

uint64_t ring_bytes(const struct ring *ring)
{
	return ring->header.total_size;
}

uint32_t ring_slots(const struct ring *ring)
{
	return ring->header.slots;
}

static uint32_t *release_word(const struct ring *ring, uint64_t n)
{
	return (void *)(ring->control + ring->header.release_offset +
			(uint64_t)ring_slot_of(n, ring->header.slots) *
				ring->header.release_stride);
}

bool ring_slot_free(const struct ring *ring, uint64_t n)
{
	uint64_t before = n > ring->header.slots ? n - ring->header.slots : 0;

	if (before > ring->published || ring_slot_of(n, ring->header.slots) >= ring->reserved)
		return false;
	return ring_load_acquire(release_word(ring, n)) == (uint32_t)before; /* E2 */
}

uint32_t ring_held(const struct ring *ring)
{
	uint32_t slots = ring->header.slots;
	uint64_t oldest = ring->published > slots ? ring->published - slots + 1 : 1;
	uint32_t held = 0;

	for (uint64_t n = oldest; n <= ring->published; n++)
		held += ring_load_acquire(release_word(ring, n)) != (uint32_t)n; /* E2 */
	return held;
}

struct ring_descriptor *ring_descriptor(const struct ring *ring, uint64_t n)
{
	return (void *)(ring->payload + ring->header.descriptor_offset +
			ring_slot_of(n, ring->header.slots) * ring->header.descriptor_stride);
}

struct ring_place *ring_place(const struct ring *ring, uint64_t n, uint32_t i)
{
	return (void *)((uint8_t *)ring_descriptor(ring, n) + ring->header.places_offset +
			(uint64_t)i * ring->header.place_size);
}

void *ring_field_data(const struct ring *ring, uint64_t n, uint32_t field)
{
	return ring->payload + ring->header.slot_offset +
	       ring_slot_of(n, ring->header.slots) * ring->header.slot_stride +
	       ring->extents[field].offset;
}

struct ring_extent ring_field_extent(const struct ring *ring, uint32_t field)
{
	return ring->extents[field];
}

void ring_populate(void *data, uint64_t bytes)
{
	uintptr_t first = (uintptr_t)data / PAGE * PAGE;
	uintptr_t end = round_up((uintptr_t)data + bytes, PAGE);

	madvise((void *)first, end - first, MADV_POPULATE_WRITE);
}

static struct ring_words *words(const struct ring *ring)
{
	return (void *)(ring->payload + ring->header.words_offset);
}

void ring_publish(struct ring *ring, uint64_t n)
{
	uint32_t *waiting = (void *)(ring->control + ring->header.waiting_offset);

	ring->published = n;
	ring_store_seq(&words(ring)->published, (uint32_t)n); /* E1, E3 */
	if (ring_load_seq(waiting))                           /* E3 */
		ring_futex_wake(&words(ring)->published);
}

uint64_t ring_published(const struct ring *ring)
{
	return ring->published;
}

void ring_set_state(struct ring *ring, enum ring_state state)
{
	ring_store_release(&words(ring)->state, (uint32_t)state); /* E4 */
	ring_futex_wake(&words(ring)->published);
}

enum ring_state ring_state(const struct ring *ring)
{
	return (enum ring_state)ring_load_acquire(&words(ring)->state); /* E4 */
}

struct ring_telemetry ring_telemetry(const struct ring *ring)
{
	const struct ring_telemetry *t = (void *)(ring->control + ring->header.telemetry_offset);
	struct ring_telemetry copy = {
		.wait_ns = ring_load_relaxed64(&t->wait_ns), /* E5 */
		.consumed = ring_load_relaxed64(&t->consumed),
		.copied_bytes = ring_load_relaxed64(&t->copied_bytes),
		.copy_ns = ring_load_relaxed64(&t->copy_ns),
	};

	return copy;
}
