/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a lane: every parameter is checked, then ring, batches and doorbell are made. */
#include "pipeline/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"

/* The protocol's operation codes are the transform room's. */
_Static_assert((int)CONTROL_OP_RANDOM_RESIZED_CROP == OPERATION_RANDOM_RESIZED_CROP, "ABI");
_Static_assert((int)CONTROL_OP_RESIZE == OPERATION_RESIZE, "ABI");
_Static_assert((int)CONTROL_OP_CENTER_CROP == OPERATION_CENTER_CROP, "ABI");
_Static_assert((int)CONTROL_OP_HORIZONTAL_FLIP == OPERATION_HORIZONTAL_FLIP, "ABI");
_Static_assert((int)CONTROL_OP_NORMALIZE == OPERATION_NORMALIZE, "ABI");
_Static_assert((int)CONTROL_OP_DECODE == OPERATION_DECODE, "ABI");

#define BATCH_MAX 65536u

static void request_shard(const struct lane_request *request, struct shard *ret)
{
	const struct control_open_lane *open = request->open;

	*ret = (struct shard){
		.n = dataset_length(request->dataset),
		.world = open->world,
		.rank = open->rank,
		.batch = open->batch,
		.accumulate = open->accumulate ? open->accumulate : 1,
		.tail = open->tail,
		.part = open->part,
		.parts = open->parts ? open->parts : 1,
	};
}

static int check_request(const struct lane_request *request, char *text, size_t size)
{
	const struct control_open_lane *open = request->open;
	struct shard shard;

	if (!order_kind_name((int)open->order) || open->order == ORDER_BLOCK) {
		snprintf(text, size, "order %u (%s) is not in this version of feeder", open->order,
			open->order == ORDER_BLOCK ? "block" : "unknown");
		return -ENOSYS;
	}
	if (open->bad < CONTROL_BAD_FAIL || open->bad > CONTROL_BAD_SUBSTITUTE) {
		snprintf(text, size, "bad-sample policy %u is none of fail, mask, substitute",
			open->bad);
		return -EINVAL;
	}
	if (open->batch == 0 || open->batch > BATCH_MAX) {
		snprintf(text, size, "batch size %u is not 1 to %u", open->batch, BATCH_MAX);
		return -EINVAL;
	}
	request_shard(request, &shard);
	return shard_check(&shard, text, size);
}

static int wrong_dataset(const struct lane_request *request, char *text, size_t size)
{
	snprintf(text, size,
		"the cursor belongs to another dataset than %s: their fingerprints differ (files "
		"were "
		"added, removed, renamed or changed in size, or labels moved); start a new epoch "
		"to go on "
		"with this one",
		dataset_display(request->dataset));
	return -ESTALE;
}

/* Decodes a cursor for this dataset, order and seed; size 0 is the start of everything. */
int lane_take_cursor(const struct lane_request *request, const void *bytes, size_t bytes_size,
	struct cursor *ret, char *text, size_t size)
{
	const struct control_open_lane *open = request->open;
	struct cursor c = { .order = open->order, .seed = open->seed, .epoch = open->epoch };
	int r;

	memcpy(c.fingerprint, dataset_fingerprint(request->dataset), sizeof(c.fingerprint));
	if (bytes_size > 0) {
		r = cursor_decode(&c, bytes, bytes_size, text, size);
		if (r < 0)
			return r;
		if (memcmp(c.fingerprint, dataset_fingerprint(request->dataset),
			    sizeof(c.fingerprint)) != 0)
			return wrong_dataset(request, text, size);
		if (c.order != open->order || c.seed != open->seed) {
			snprintf(text, size,
				"the cursor is of order %s with seed %llu, the lane is of order %s "
				"with seed "
				"%llu",
				order_kind_name((int)c.order), (unsigned long long)c.seed,
				order_kind_name((int)open->order), (unsigned long long)open->seed);
			return -EINVAL;
		}
	}
	*ret = c;
	return 0;
}

int lane_settle(
	struct cursor *cursor, const struct shard *shard, bool *ret_moved, char *text, size_t size)
{
	struct cursor at = cursor_settle(cursor, shard, ret_moved);

	if (shard_steps(shard, at.c) == 0) {
		snprintf(text, size,
			"no step in an epoch: %llu samples are fewer than one group of world %u x "
			"batch %u "
			"x accumulate %u, and tail = drop leaves them out; use a smaller batch, "
			"pad or mask",
			(unsigned long long)shard->n, shard->world, shard->batch,
			shard->accumulate);
		return -EINVAL;
	}
	*cursor = at;
	return 0;
}

int lane_request_identity(
	const struct lane_request *request, struct lane_identity *ret, char *text, size_t size)
{
	const struct control_open_lane *open = request->open;
	struct cursor cursor;
	struct shard shard;
	bool moved = false;
	int r = check_request(request, text, size);

	if (r == 0)
		r = lane_take_cursor(request, open->cursor, open->cursor_size, &cursor, text, size);
	if (r < 0)
		return r;
	request_shard(request, &shard);
	if (!order_brings_ids(open->order))
		r = lane_settle(&cursor, &shard, &moved, text, size);
	if (r < 0)
		return r;
	*ret = (struct lane_identity){
		.order = open->order,
		.seed = open->seed,
		.world = shard.world,
		.batch = shard.batch,
		.accumulate = shard.accumulate,
		.tail = shard.tail,
		.epoch = cursor.epoch,
		.c = cursor.c,
	};
	memcpy(ret->fingerprint, cursor.fingerprint, sizeof(ret->fingerprint));
	return 0;
}

void lane_identity(const struct lane *lane, struct lane_identity *ret)
{
	*ret = (struct lane_identity){
		.order = lane->order,
		.seed = lane->seed,
		.world = lane->shard.world,
		.batch = lane->shard.batch,
		.accumulate = lane->shard.accumulate,
		.tail = lane->shard.tail,
		.epoch = lane->opened_at.epoch,
		.c = lane->opened_at.c,
	};
	memcpy(ret->fingerprint, lane->opened_at.fingerprint, sizeof(ret->fingerprint));
}

static int make_shape(struct pipeline *p, const struct lane_request *request,
	const struct recipe *recipe, struct ring_shape *ret, char *text, size_t size)
{
	const struct control_open_lane *open = request->open;
	struct shard shard;

	memset(ret, 0, sizeof(*ret));
	request_shard(request, &shard);
	ret->slots = open->slots ? open->slots : p->config.slots;
	if (ret->slots < RING_SLOTS_MIN || ret->slots > RING_SLOTS_MAX) {
		snprintf(text, size, "a ring has %d to %d slots, not %u", RING_SLOTS_MIN,
			RING_SLOTS_MAX, ret->slots);
		return -EINVAL;
	}
	ret->capacity = shard_capacity(&shard);
	ret->flags = open->flags & CONTROL_LANE_PAYLOAD_RW ? RING_PAYLOAD_RW : 0;
	ret->numa_node = open->numa_node;
	memcpy(ret->fingerprint, dataset_fingerprint(request->dataset), sizeof(ret->fingerprint));
	recipe_fields(recipe, ret->capacity, ret);
	return 0;
}

/* Twice what is planned at once: after a seek the old ones may be held a while. */
static unsigned int batches_of(uint32_t slots)
{
	return 2 * (slots + BATCHES_AHEAD);
}

int pipeline_lane_size(struct pipeline *p, const struct lane_request *request, uint64_t *ret_bytes,
	char *text, size_t size)
{
	struct recipe recipe;
	struct ring_shape shape;
	int r = check_request(request, text, size);

	if (r < 0)
		return r;
	r = recipe_init(&recipe, request->open, text, size);
	if (r < 0)
		return r;
	r = make_shape(p, request, &recipe, &shape, text, size);
	if (r == 0)
		r = ring_size(&shape, ret_bytes);
	/* its tickets take memory too, much of it for large batches of small images */
	if (r == 0)
		*ret_bytes +=
			batches_of(shape.slots) * (uint64_t)shape.capacity * sizeof(struct ticket);
	if (r == -EOVERFLOW)
		snprintf(text, size, "a ring of this batch and size is too large");
	recipe_deinit(&recipe);
	return r;
}

static int open_outside(const struct read_tree *tree, const char *path)
{
	struct lane *lane = tree->context;
	struct pipeline *p = lane->pipeline;

	if (!p->config.open_outside)
		return -EXDEV;
	return p->config.open_outside(p->config.context, lane->uid, tree->dirfd, path,
		O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static int make_batches(struct lane *lane, uint32_t slots)
{
	lane->batch_count = batches_of(slots);
	lane->batches = calloc(lane->batch_count, sizeof(*lane->batches));
	if (!lane->batches)
		return -ENOMEM;
	for (unsigned int i = 0; i < lane->batch_count; i++) {
		struct batch *batch = &lane->batches[i];

		batch->lane = lane;
		batch->tickets = calloc(lane->capacity, sizeof(*batch->tickets));
		if (!batch->tickets)
			return -ENOMEM;
		for (uint32_t k = 0; k < lane->capacity; k++) {
			batch->tickets[k].batch = batch;
			batch->tickets[k].place = k;
			batch->tickets[k].path = batch->tickets[k].path_inline;
			list_init(&batch->tickets[k].link);
		}
		list_append(&lane->free, &batch->link);
	}
	return 0;
}

static struct lane *lane_alloc(struct pipeline *p, const struct lane_request *request)
{
	const struct control_open_lane *open = request->open;
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->pipeline = p;
	lane->uid = request->uid;
	lane->device = open->pci_id[0] != '\0';
	lane->doorbell = -1;
	lane->dataset = dataset_ref(request->dataset);
	lane->dataset_n = dataset_length(lane->dataset);
	lane->tree = (struct read_tree){
		.dirfd = dataset_dirfd(lane->dataset),
		.open_outside = open_outside,
		.context = lane,
	};
	lane->order = open->order;
	lane->seed = open->seed;
	lane->bad = open->bad;
	lane->worker_share = request->worker_share ? request->worker_share : 100;
	lane->max_batches = open->max_batches;
	lane->opened_ns = now_ns();
	list_init(&lane->link);
	list_init(&lane->free);
	list_init(&lane->planned);
	list_init(&lane->zombies);
	list_init(&lane->ready);
	list_init(&lane->reread);
	request_shard(request, &lane->shard);
	lane->capacity = shard_capacity(&lane->shard);
	lane->generation = 1;
	lane->next_number = 1;
	lane->epoch_bad_of = UINT64_MAX;
	return lane;
}

static int dup_fds(const struct lane *lane, int ret_fds[3])
{
	const int from[3] = { ring_payload_fd(lane->ring), ring_control_fd(lane->ring),
		lane->doorbell };

	for (int i = 0; i < 3; i++) {
		ret_fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 0);
		if (ret_fds[i] < 0) {
			int r = -errno;

			while (i-- > 0)
				ret_fds[i] = fd_close(ret_fds[i]);
			return r;
		}
	}
	return 0;
}

static int enroll(struct lane *lane, const struct lane_request *request)
{
	struct pipeline *p = lane->pipeline;

	lane->job = job_get(p, request->job_key, request->open->weight);
	if (!lane->job)
		return -ENOMEM;
	lane->counters[STATS_LANE_opened_cpu] = process_cpu_ns();
	lane->idle_mark = pipeline_idle_ns(p, now_ns());
	list_append(&p->lanes, &lane->link);
	p->lane_count++;
	planner_kick(p);
	return 0;
}

static int build(struct lane *lane, const struct lane_request *request, bool *ret_moved, char *text,
	size_t size)
{
	const struct control_open_lane *open = request->open;
	struct pipeline *p = lane->pipeline;
	struct ring_shape shape;
	int r = lane_take_cursor(request, open->cursor, open->cursor_size, &lane->base, text, size);

	*ret_moved = false;
	if (r == 0 && !order_brings_ids(lane->order))
		r = lane_settle(&lane->base, &lane->shard, ret_moved, text, size);
	if (r < 0)
		return r;
	lane->opened_at = lane->base;
	lane->end_epoch = open->max_epochs ? lane->base.epoch + open->max_epochs : UINT64_MAX;
	r = recipe_init(&lane->recipe, open, text, size);
	if (r == 0)
		r = make_shape(p, request, &lane->recipe, &shape, text, size);
	if (r < 0)
		return r;
	pthread_mutex_lock(&p->lock);
	lane->id = ++p->next_lane;
	pthread_mutex_unlock(&p->lock);
	shape.lane = lane->id;
	r = ring_new(&lane->ring, &shape, text, size);
	if (r == 0)
		r = make_batches(lane, shape.slots);
	if (r < 0)
		return r;
	lane->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return lane->doorbell < 0 ? -errno : 0;
}

/* The lane works on its first slot while the memory of the others is still being reserved. */
static int start(struct lane *lane, const struct lane_request *request, bool moved,
	struct control_lane *reply, char *text, size_t size)
{
	struct pipeline *p = lane->pipeline;
	int r;

	pthread_mutex_lock(&p->lock);
	lane_fill_reply(lane, moved, reply);
	r = enroll(lane, request);
	pthread_mutex_unlock(&p->lock);
	if (r < 0) {
		lane_destroy(lane);
		return r;
	}
	r = ring_reserve_rest(lane->ring, text, size);
	if (r < 0) {
		pipeline_lane_free(lane);
		return r;
	}
	pthread_mutex_lock(&p->lock);
	ring_open_rest(lane->ring);
	lane_grant(lane);
	planner_kick(p);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int pipeline_lane_new(struct lane **ret, struct pipeline *p, const struct lane_request *request,
	struct control_lane *reply, int ret_fds[3], char *text, size_t size)
{
	struct lane *lane;
	bool moved = false;
	int r = check_request(request, text, size);

	if (r < 0)
		return r;
	lane = lane_alloc(p, request);
	if (!lane)
		return -ENOMEM;
	r = build(lane, request, &moved, text, size);
	if (r == 0)
		r = dup_fds(lane, ret_fds);
	if (r < 0) {
		lane_destroy(lane);
		return r;
	}
	r = start(lane, request, moved, reply, text, size);
	if (r < 0) {
		for (int i = 0; i < 3; i++)
			ret_fds[i] = fd_close(ret_fds[i]);
		return r;
	}
	*ret = lane;
	return 0;
}
