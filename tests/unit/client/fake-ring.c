/* SPDX-License-Identifier: Apache-2.0 */
/* The fake daemon's rings: layout, poison, numbered batches. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake-parts.h"

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t id;
	uint8_t *payload;
	uint8_t *control;
} mappings[64];
static uint64_t last_id;

bool fake_mapping(uint64_t id, uint8_t **ret_payload, uint8_t **ret_control)
{
	bool found;

	pthread_mutex_lock(&mappings_lock);
	found = mappings[id % 64].id == id;
	*ret_payload = mappings[id % 64].payload;
	*ret_control = mappings[id % 64].control;
	pthread_mutex_unlock(&mappings_lock);
	return found;
}

static uint64_t mapping_id(void)
{
	uint64_t id;

	pthread_mutex_lock(&mappings_lock);
	id = ++last_id;
	pthread_mutex_unlock(&mappings_lock);
	return id;
}

static void mapping_set(uint64_t id, uint8_t *payload, uint8_t *control)
{
	pthread_mutex_lock(&mappings_lock);
	mappings[id % 64].id = id;
	mappings[id % 64].payload = payload;
	mappings[id % 64].control = control;
	pthread_mutex_unlock(&mappings_lock);
}

uint8_t fake_pixel(uint64_t n, uint32_t i)
{
	return (uint8_t)(n * 7 + i);
}

int64_t fake_label(uint64_t n, uint32_t i)
{
	return (int64_t)(n * 1000 + i);
}

/* ---- rings ---- */

static uint64_t up(uint64_t x, uint64_t to)
{
	return (x + to - 1) / to * to;
}

static uint64_t image_bytes(const struct fake *fake)
{
	return (uint64_t)fake->config.side * fake->config.side * 3;
}

static void lay_out(const struct fake *fake, struct fake_lane *lane)
{
	uint64_t capacity = fake->config.capacity;
	struct ring_header *h = &lane->header;

	*h = (struct ring_header){
		.magic = RING_MAGIC,
		.major = RING_MAJOR,
		.header_size = sizeof(*h),
		.slots = fake->config.slots,
		.capacity = fake->config.capacity,
		.field_count = 2,
		.field_size = sizeof(struct ring_field),
		.place_size = sizeof(struct ring_place),
		.fields_offset = sizeof(*h),
		.words_offset = 1024,
		.descriptor_offset = 4096,
		.places_offset = sizeof(struct ring_descriptor),
		.lane = lane->id,
		.waiting_offset = RING_CONTROL_WAITING,
		.telemetry_offset = RING_CONTROL_TELEMETRY,
		.release_offset = RING_CONTROL_RELEASE,
		.release_stride = 8,
	};
	h->control_size = (uint32_t)up(h->release_offset + h->slots * h->release_stride, 4096);
	h->descriptor_stride = h->places_offset + capacity * h->place_size;
	h->slot_offset = up(h->descriptor_offset + h->slots * h->descriptor_stride, 4096);
	h->slot_stride = up(up(capacity * image_bytes(fake), 64) + capacity * 8, 4096);
	h->total_size = h->slot_offset + h->slots * h->slot_stride;
}

static void write_fields(const struct fake *fake, struct fake_lane *lane)
{
	struct ring_field *fields = (void *)(lane->payload + lane->header.fields_offset);
	uint64_t side = fake->config.side;

	fields[0] = (struct ring_field){
		.name = "images",
		.dtype = 1,
		.ndim = 4,
		.shape = { fake->config.capacity, side, side, 3 },
		.strides = { (int64_t)(side * side * 3), (int64_t)(side * 3), 3, 1 },
	};
	fields[1] = (struct ring_field){
		.name = "labels",
		.dtype = 5,
		.ndim = 1,
		.shape = { fake->config.capacity },
		.strides = { 8 },
	};
	for (unsigned int i = 0; i < 2 && fake->config.on_field; i++)
		fake->config.on_field(&fields[i], i, fake->config.context);
}

static uint8_t *make_memory(uint64_t size, int *ret_fd)
{
	void *p;

	*ret_fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(*ret_fd >= 0 && ftruncate(*ret_fd, (off_t)size) == 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	MUST(p != MAP_FAILED);
	return p;
}

void fake_make_ring(struct fake *fake, struct fake_lane *lane)
{
	lane->id = mapping_id();
	lay_out(fake, lane);
	lane->payload = make_memory(lane->header.total_size, &lane->payload_fd);
	lane->control = make_memory(lane->header.control_size, &lane->control_fd);
	lane->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	write_fields(fake, lane);
	memcpy(lane->payload, &lane->header, sizeof(lane->header));
	if (fake->config.on_header)
		fake->config.on_header((void *)lane->payload, fake->config.context);
	fcntl(lane->payload_fd, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | 0x0010 /* FUTURE_WRITE */ | F_SEAL_SEAL);
	fcntl(lane->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (fake->config.shared_map)
		mapping_set(lane->id, lane->payload, lane->control);
}

void fake_free_lane(struct fake_lane *lane)
{
	uint8_t *payload;
	uint8_t *control;

	if (!lane->used)
		return;
	/* a shared mapping stays for the process's life: the client may still read it */
	if (!fake_mapping(lane->id, &payload, &control)) {
		munmap(lane->payload, lane->header.total_size);
		munmap(lane->control, lane->header.control_size);
	}
	fd_close(lane->payload_fd);
	fd_close(lane->control_fd);
	fd_close(lane->doorbell);
	*lane = (struct fake_lane){ .used = false };
}

/* ---- publishing ---- */

void fake_put_cursor(uint8_t ret[FAKE_CURSOR], uint64_t epoch, uint64_t step)
{
	memcpy(ret, "FAKE\1\0\0\0", 8);
	memcpy(ret + 8, &epoch, 8);
	memcpy(ret + 16, &step, 8);
}

struct ring_words *fake_words(struct fake_lane *lane)
{
	return (void *)(lane->payload + lane->header.words_offset);
}

static bool slot_free(struct fake_lane *lane, uint64_t n)
{
	uint32_t slots = lane->header.slots;
	const uint32_t *word;

	if (n <= slots)
		return true;
	word = (void *)(lane->control + lane->header.release_offset +
			ring_slot_of(n, slots) * lane->header.release_stride);
	return ring_load_acquire(word) == (uint32_t)(n - slots); /* E2 */
}

static void fill_places(struct fake_lane *lane, uint8_t *record, uint64_t n)
{
	for (uint32_t i = 0; i < lane->header.capacity; i++) {
		struct ring_place place = {
			.id_asked = n * 10 + i,
			.id = n * 10 + i,
			.position = n * 100 + i,
			.kind = RING_PIXELS,
			.valid = 1,
			.label = fake_label(n, i),
			.box_w = 3,
		};

		memcpy(record + lane->header.places_offset + i * lane->header.place_size, &place,
			sizeof(place));
	}
}

static void fill(struct fake *fake, struct fake_lane *lane, uint64_t n)
{
	uint32_t slot = ring_slot_of(n, lane->header.slots);
	uint8_t *data = lane->payload + lane->header.slot_offset + slot * lane->header.slot_stride;
	uint8_t *record = lane->payload + lane->header.descriptor_offset +
			  slot * lane->header.descriptor_stride;
	uint64_t labels = up(lane->header.capacity * image_bytes(fake), 64);
	bool last = lane->step + 1 == fake->config.steps;
	struct ring_descriptor d = {
		.number = n,
		.generation = lane->generation,
		.flags = last ? RING_LAST_OF_EPOCH : 0,
		.epoch = lane->epoch,
		.step = lane->step,
		.capacity = lane->header.capacity,
		.count = last ? lane->header.capacity - 1 : lane->header.capacity,
		.batches_left = fake->config.steps - lane->step - 1,
		.order_digest = n,
		.pixel_digest = n * n,
		.cursor_size = FAKE_CURSOR,
		.fields = { { 0, lane->header.capacity * image_bytes(fake) },
			{ labels, lane->header.capacity * 8 } },
	};

	memset(data, FAKE_POISON, lane->header.slot_stride);
	memset(record, FAKE_POISON, lane->header.descriptor_stride);
	fake_put_cursor(d.cursor, last ? lane->epoch + 1 : lane->epoch, last ? 0 : lane->step + 1);
	for (uint32_t i = 0; i < lane->header.capacity; i++) {
		int64_t label = fake_label(n, i);

		memset(data + i * image_bytes(fake), fake_pixel(n, i), image_bytes(fake));
		memcpy(data + labels + i * 8, &label, 8);
	}
	if (fake->config.on_descriptor)
		fake->config.on_descriptor(&d, fake->config.context);
	memcpy(record, &d, sizeof(d));
	fill_places(lane, record, n);
	lane->epoch += last;
	lane->step = last ? 0 : lane->step + 1;
}

void fake_publish(struct fake *fake, struct fake_lane *lane)
{
	while (lane->published < lane->allowed && slot_free(lane, lane->published + 1)) {
		uint32_t *waiting = (void *)(lane->control + lane->header.waiting_offset);

		lane->published++;
		fill(fake, lane, lane->published);
		ring_store_seq(&fake_words(lane)->published, (uint32_t)lane->published); /* E3 */
		if (ring_load_seq(waiting))
			ring_futex_wake(&fake_words(lane)->published);
	}
}
