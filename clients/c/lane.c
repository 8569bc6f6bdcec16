/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a lane. What the daemon hands over is checked here, once, and copied: the
 * ring's header (protocol/ring.c), its field list, and the first two fields' shapes.
 */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

struct feeder_lane *fdr_lane_find(struct feeder *f, uint32_t handle)
{
	LIST_FOR_EACH (pos, &f->lanes) {
		struct feeder_lane *lane = CONTAINER_OF(pos, struct feeder_lane, link);

		if (lane->handle == handle)
			return lane;
	}
	return NULL;
}

int fdr_lane_fail(struct feeder_lane *lane, int code, const char *text)
{
	/* the first cause is the one to tell */
	if (!lane->error) {
		lane->error = code;
		snprintf(lane->error_text, sizeof(lane->error_text), "%s", text);
	}
	return lane->error;
}

static int fail_ring(const char *what)
{
	return fdr_fail(-EPROTO, "the daemon's ring is malformed: %s", what);
}

/* ---- fields ---- */

static uint64_t dtype_bytes(uint32_t dtype)
{
	switch (dtype) {
	case FEEDER_UINT8:
		return 1;
	case FEEDER_FLOAT16:
	case FEEDER_BFLOAT16:
		return 2;
	case FEEDER_FLOAT32:
	case FEEDER_INT32:
		return 4;
	case FEEDER_INT64:
		return 8;
	default:
		return 0;
	}
}

static int find_field(const struct feeder_lane *lane, const char *name)
{
	for (uint32_t i = 0; i < lane->field_count; i++) {
		if (strcmp(lane->fields[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

static void copy_fields(struct feeder_lane *lane)
{
	lane->field_count = lane->map.header.field_count;
	for (uint32_t i = 0; i < lane->field_count; i++) {
		struct ring_field *field = &lane->fields[i];

		memcpy(field, ring_map_field(&lane->map, i), sizeof(*field));
		field->name[sizeof(field->name) - 1] = '\0';
	}
}

/* Bytes of one place of a field whose first dimension is the place; 0 where it does not fit. */
static uint64_t place_bytes(const struct ring_field *field)
{
	uint64_t bytes = dtype_bytes(field->dtype);

	if (field->ndim < 1 || field->ndim > 8 || field->ragged)
		return 0;
	for (uint32_t i = 1; i < field->ndim; i++) {
		if (__builtin_mul_overflow(bytes, field->shape[i], &bytes))
			return 0;
	}
	return bytes;
}

static int check_fields(struct feeder_lane *lane)
{
	uint32_t capacity = lane->map.header.capacity;
	int images = find_field(lane, "images");
	int labels = find_field(lane, "labels");
	const struct ring_field *field;

	if (images < 0 || labels < 0)
		return fail_ring("it has no images or no labels");
	field = &lane->fields[images];
	lane->image_bytes = place_bytes(field);
	if (lane->image_bytes == 0 || field->shape[0] != capacity || field->strides[0] <= 0 ||
		(uint64_t)field->strides[0] < lane->image_bytes)
		return fail_ring("the shape of images");
	field = &lane->fields[labels];
	if (field->dtype != FEEDER_INT64 || place_bytes(field) != 8 || field->ndim != 1 ||
		field->shape[0] != capacity || field->strides[0] != 8)
		return fail_ring("the shape of labels");
	lane->images = (uint32_t)images;
	lane->labels = (uint32_t)labels;
	return 0;
}

/* ---- the reply ---- */

/* An eventfd has no file type; a pipe could raise SIGPIPE, a socket block. */
static int check_doorbell(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != 0)
		return fail_ring("it has no doorbell");
	return 0;
}

static int map_ring(struct feeder_lane *lane, int payload, int control)
{
	char text[256] = "";
	int r;

	if (payload < 0 || control < 0)
		return fail_ring("its descriptors are missing");
	r = ring_map_open(&lane->map, payload, control, text, sizeof(text));
	if (r < 0)
		return fdr_fail(r, "%s", text[0] ? text : strerror(-r));
	lane->words = ring_map_words(&lane->map);
	lane->held = calloc(lane->map.header.slots, sizeof(*lane->held));
	if (!lane->held)
		return fdr_fail_memory();
	copy_fields(lane);
	return check_fields(lane);
}

static int take_standing(struct feeder_lane *lane, const struct control_lane *reply)
{
	if (reply->cursor_size > sizeof(lane->cursor))
		return fail_ring("the cursor's size");
	memcpy(lane->cursor, reply->cursor, reply->cursor_size);
	lane->cursor_size = reply->cursor_size;
	lane->generation = reply->generation;
	lane->steps = reply->steps;
	lane->steps_epoch = reply->steps_epoch;
	return 0;
}

static int take_reply(struct feeder_lane *lane)
{
	struct feeder *f = lane->f;
	CLEANUP(fd_closep) int payload = -1;
	CLEANUP(fd_closep) int control = -1;
	struct control_lane reply;
	int r = fdr_reply(f, &reply, sizeof(reply), NULL, NULL);

	payload = fdr_take_fd(f, 0);
	control = fdr_take_fd(f, 1);
	lane->doorbell = fdr_take_fd(f, 2);
	control_packet_close(f->packet);
	if (r < 0)
		return r;
	lane->handle = reply.lane;
	r = take_standing(lane, &reply);
	if (r == 0)
		r = check_doorbell(lane->doorbell);
	if (r == 0)
		r = map_ring(lane, payload, control);
	if (r == 0 && (reply.first == 0 || reply.lane == 0))
		r = fail_ring("the first batch's number");
	lane->next = reply.first;
	lane->last = reply.last;
	lane->moved = reply.moved != 0;
	return r;
}

int fdr_lane_moved(struct feeder_lane *lane, const struct control_lane *reply)
{
	uint64_t ahead = reply->first - lane->next;
	int r;

	/* nothing but what was published before the move can lie between */
	if (reply->first < lane->next || ahead > lane->map.header.slots) {
		r = fail_ring("the first batch after a seek");
		return fdr_lane_fail(lane, r, feeder_last_error());
	}
	for (uint64_t n = lane->next; n < reply->first; n++)
		fdr_give_back(lane, n);
	if (ahead > 0)
		fdr_doorbell(lane);
	lane->next = reply->first;
	lane->last = reply->last;
	lane->moved = reply->moved != 0;
	lane->at_start = false;
	r = take_standing(lane, reply);
	return r < 0 ? fdr_lane_fail(lane, r, feeder_last_error()) : 0;
}

/* ---- open and close ---- */

static int request(struct feeder_lane *lane, const struct feeder_lane_config *config)
{
	struct control_open_lane body;
	struct fdr_call call = {
		.type = CONTROL_OPEN_LANE,
		.body = &body,
		.size = sizeof(body),
		.timeout_ms = config->timeout_ms,
		.progress = config->progress,
		.context = config->context,
	};
	int r = fdr_config_message(&body, config);

	if (r < 0)
		return r;
	body.dataset = lane->dataset.reply.dataset;
	snprintf(body.job, sizeof(body.job), "%s", lane->f->job);
	snprintf(body.name, sizeof(body.name), "%s", lane->name);
	r = fdr_call(lane->f, &call);
	return r < 0 ? r : take_reply(lane);
}

static int set_name(struct feeder_lane *lane, const struct feeder_lane_config *config)
{
	CLEANUP(freep) char *whole = NULL;

	if (config->lane_name && config->lane_name[0]) {
		if (strlen(config->lane_name) >= sizeof(lane->name))
			return fdr_fail(-ENAMETOOLONG,
				"lane config: lane_name is longer than %zu bytes",
				sizeof(lane->name) - 1);
		snprintf(lane->name, sizeof(lane->name), "%s", config->lane_name);
		return 0;
	}
	/* ranks may spell the path differently; where it leads is the same */
	whole = realpath(lane->path, NULL);
	fdr_name_take(lane, config->train ? "train" : "eval", whole ? whole : lane->path);
	return 0;
}

static void lane_free(struct feeder_lane *lane)
{
	if (!lane)
		return;
	fdr_name_give(lane);
	list_remove(&lane->link);
	/* in the child of a fork something else may be mapped there by now */
	if (!lane->f->forked)
		ring_map_close(&lane->map);
	fd_close(lane->doorbell);
	fdr_dataset_deinit(&lane->dataset);
	free(lane->held);
	free(lane->path);
	free(lane);
}

static int lane_new(struct feeder_lane **ret, struct feeder *f, const char *path,
	const struct feeder_lane_config *config)
{
	struct feeder_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return fdr_fail_memory();
	lane->f = f;
	lane->doorbell = -1;
	lane->timeout_ms = config->timeout_ms;
	list_init(&lane->link);
	list_init(&lane->name_link);
	lane->path = strdup(path);
	if (!lane->path) {
		lane_free(lane);
		return fdr_fail_memory();
	}
	*ret = lane;
	return 0;
}

static int open_lane(struct feeder_lane *lane, const struct feeder_lane_config *config)
{
	struct control_open_lane checked;
	int r = fdr_config_message(&checked, config);

	if (r == 0)
		r = fdr_dataset_open(&lane->dataset, lane->f, lane->path, config);
	if (r < 0)
		return r;
	r = set_name(lane, config);
	if (r == 0)
		r = request(lane, config);
	if (r < 0) {
		if (lane->handle)
			fdr_send_close(lane->f, lane->handle, 0);
		fdr_send_close(lane->f, 0, lane->dataset.reply.dataset);
		return r;
	}
	list_append(&lane->f->lanes, &lane->link);
	lane->at_start = !config->cursor;
	lane->at_epoch = config->epoch;
	return 0;
}

int feeder_lane_open(struct feeder_lane **ret, struct feeder *f, const char *path,
	const struct feeder_lane_config *given)
{
	struct feeder_lane_config config;
	struct feeder_lane *lane = NULL;
	int r = fdr_alive(f);

	feeder_lane_config_init(&config);
	if (r == 0 && given)
		r = fdr_struct_in(&config, sizeof(config), given, "feeder_lane_config");
	if (r == 0)
		r = lane_new(&lane, f, path, &config);
	if (r < 0)
		return r;
	r = open_lane(lane, &config);
	if (r < 0) {
		lane_free(lane);
		return r;
	}
	*ret = lane;
	return 0;
}

/* How long a close may take when the daemon does not answer. */
#define CLOSE_TIMEOUT_MS 1000

void feeder_lane_close(struct feeder_lane *lane)
{
	if (!lane)
		return;
	if (!lane->f->forked && !lane->f->dead) {
		struct control_close body = {
			.size = sizeof(body),
			.lane = lane->handle,
		};
		struct fdr_call call = {
			.type = CONTROL_CLOSE,
			.body = &body,
			.size = sizeof(body),
			.timeout_ms = CLOSE_TIMEOUT_MS,
		};

		/* answered, so that the name is free at once also for other connections */
		if (fdr_call(lane->f, &call) == 0)
			control_packet_close(lane->f->packet);
		fdr_send_close(lane->f, 0, lane->dataset.reply.dataset);
	}
	lane_free(lane);
}

int feeder_lane_info(struct feeder_lane *lane, struct feeder_lane_info *ret)
{
	struct feeder_lane_info info = {
		.samples = lane->dataset.reply.samples,
		.class_count = lane->dataset.reply.class_count,
		.capacity = lane->map.header.capacity,
		.slots = lane->map.header.slots,
		.steps = lane->steps,
		.steps_epoch = lane->steps_epoch,
		.ring_bytes = lane->map.header.total_size,
		.image_bytes = lane->image_bytes,
		.name = lane->name,
		.format = lane->dataset.reply.format,
		.index_used = lane->dataset.reply.index_used,
		.moved = lane->moved,
		.lane = lane->map.header.lane,
	};

	memcpy(info.fingerprint, lane->dataset.reply.fingerprint, sizeof(info.fingerprint));
	return fdr_struct_out(ret, &info, sizeof(info), "feeder_lane_info");
}
