/* SPDX-License-Identifier: Apache-2.0 */
/* The double. */
#include "fake-pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/list.h"
#include "pipeline/pipeline.h"
#include "source/source.h"

struct fake fake;

struct pipeline {
	struct pipeline_config config;
	pthread_mutex_t lock;
	struct list lanes;
	uint64_t last_id;
};

struct lane {
	struct list link;
	struct pipeline *pipeline;
	struct lane_identity identity;
	uint64_t id;
	int payload, control, doorbell;
	bool drained;
	bool shut;
	int error;
};

struct dataset {
	atomic_int refs;
	uint8_t fingerprint[16];
	char display[4096];
};

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.lane_bytes = 1 << 20;
}

/* ---- pipeline ---- */

static struct pipeline *the_pipeline;

int pipeline_new(
	struct pipeline **ret, const struct pipeline_config *config, char *text, size_t size)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	snprintf(text, size, "%s", "");
	if (!p)
		return -ENOMEM;
	p->config = *config;
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->lanes);
	the_pipeline = p;
	*ret = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void pipeline_set_active_workers(struct pipeline *p, unsigned int n)
{
	(void)p;
	fake.active_workers = n;
}

void pipeline_facts(struct pipeline *p, struct pipeline_facts *ret)
{
	*ret = (struct pipeline_facts){ p->config.workers, "fake", "", "none", "c" };
}

void pipeline_counters(struct pipeline *p, uint64_t counters[STATS_DAEMON_COUNT])
{
	(void)p;
	counters[STATS_DAEMON_reads] = 42;
}

int pipeline_lane_size(struct pipeline *p, const struct lane_request *request, uint64_t *ret_bytes,
	char *text, size_t size)
{
	(void)p;
	if (request->open->batch == 0) {
		snprintf(text, size, "batch 0");
		return -EINVAL;
	}
	*ret_bytes = fake.lane_bytes;
	return 0;
}

int lane_request_identity(
	const struct lane_request *request, struct lane_identity *ret, char *text, size_t size)
{
	const struct control_open_lane *open = request->open;

	if (open->cursor_size != 0 && open->cursor_size != 16) {
		snprintf(text, size, "a fake cursor has 16 bytes");
		return -EBADMSG;
	}
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->fingerprint, request->dataset->fingerprint, sizeof(ret->fingerprint));
	ret->order = open->order;
	ret->seed = open->seed;
	ret->world = open->world;
	ret->batch = open->batch;
	ret->accumulate = open->accumulate;
	ret->tail = open->tail;
	memcpy(&ret->epoch, open->cursor, 8);
	memcpy(&ret->c, open->cursor + 8, 8);
	return 0;
}

static int ring_memfd(uint64_t bytes)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		abort();
	return fd;
}

int pipeline_lane_new(struct lane **ret, struct pipeline *p, const struct lane_request *request,
	struct control_lane *reply, int ret_fds[3], char *text, size_t size)
{
	while (fake.hold_lanes)
		usleep(1000);
	if (fake.fail_lane) {
		snprintf(text, size, "the fake lane fails");
		return fake.fail_lane;
	}
	struct lane *lane = calloc(1, sizeof(*lane));
	if (!lane)
		return -ENOMEM;
	lane_request_identity(request, &lane->identity, text, size);
	lane->pipeline = p;
	lane->payload = ring_memfd(fake.lane_bytes);
	lane->control = ring_memfd(4096);
	lane->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_lock(&p->lock);
	lane->id = ++p->last_id;
	list_append(&p->lanes, &lane->link);
	pthread_mutex_unlock(&p->lock);
	*reply = (struct control_lane){ .size = sizeof(*reply), .first = 1, .steps = 7 };
	ret_fds[0] = fcntl(lane->payload, F_DUPFD_CLOEXEC, 3);
	ret_fds[1] = fcntl(lane->control, F_DUPFD_CLOEXEC, 3);
	ret_fds[2] = fcntl(lane->doorbell, F_DUPFD_CLOEXEC, 3);
	fake.worker_share = request->worker_share;
	fake.lanes++;
	*ret = lane;
	return 0;
}

void pipeline_lane_free(struct lane *lane)
{
	if (!lane)
		return;
	pthread_mutex_lock(&lane->pipeline->lock);
	list_remove(&lane->link);
	pthread_mutex_unlock(&lane->pipeline->lock);
	close(lane->payload);
	close(lane->control);
	close(lane->doorbell);
	free(lane);
	fake.lanes--;
}

uint64_t lane_id(const struct lane *lane)
{
	return lane->id;
}

int lane_doorbell_fd(const struct lane *lane)
{
	return lane->doorbell;
}

void lane_doorbell(struct lane *lane)
{
	(void)lane;
	fake.doorbells++;
}

int lane_seek(struct lane *lane, const void *cursor, size_t cursor_size, struct control_lane *reply,
	char *text, size_t size)
{
	(void)lane;
	(void)cursor;
	if (cursor_size != 16) {
		snprintf(text, size, "a fake cursor has 16 bytes");
		return -EBADMSG;
	}
	*reply = (struct control_lane){ .generation = 1 };
	return 0;
}

int lane_set_epoch(struct lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count,
	struct control_lane *reply, char *text, size_t size)
{
	(void)lane;
	(void)text;
	(void)size;
	*reply = (struct control_lane){ .steps = epoch };
	for (uint64_t i = 0; i < count; i++)
		reply->first += (uint64_t)ids[i];
	return 0;
}

void lane_drain(struct lane *lane)
{
	fake.drains++;
	lane->drained = !fake.never_drained;
	lane->pipeline->config.lane_event(lane->pipeline->config.context, lane->id);
}

bool lane_drained(const struct lane *lane)
{
	return lane->drained;
}

void lane_shut(struct lane *lane)
{
	lane->shut = true;
}

int lane_error(const struct lane *lane, struct control_error *ret)
{
	if (lane->error)
		*ret = (struct control_error){ .code = lane->error, .text = "the budget is spent" };
	return lane->error;
}

void fake_fail_lane(uint64_t id)
{
	struct pipeline *p = the_pipeline;

	LIST_FOR_EACH (l, &p->lanes) {
		struct lane *lane = CONTAINER_OF(l, struct lane, link);

		if (lane->id == id)
			lane->error = -EBADMSG;
	}
	p->config.lane_event(p->config.context, id);
}

void lane_counters(struct lane *lane, uint64_t counters[STATS_LANE_COUNT], uint32_t *ret_state)
{
	memset(counters, 0, STATS_LANE_COUNT * sizeof(*counters));
	counters[STATS_LANE_batches] = 100 + lane->id;
	*ret_state = lane->shut ? 3 : 0;
}

uint32_t lane_cases(struct lane *lane, struct stats_case *ret, uint32_t max)
{
	if (max == 0)
		return 0;
	*ret = (struct stats_case){ .lane = lane->id, .id = 5, .status = 13, .count = 1 };
	return 1;
}

void lane_identity(const struct lane *lane, struct lane_identity *ret)
{
	*ret = lane->identity;
}

/* ---- source ---- */

int dataset_open(struct dataset **ret, int fd, int dirfd, const char *display,
	const struct dataset_options *options, char *text, size_t size)
{
	uint64_t files = 0;

	(void)fd;
	(void)dirfd;
	fake.opens++;
	while (fake.hold_opens) {
		if (options->progress && options->progress(options->context, ++files, 1)) {
			snprintf(text, size, "canceled");
			return -ECANCELED;
		}
		usleep(1000);
	}
	struct dataset *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->refs = 1;
	d->fingerprint[0] = (uint8_t)fake.fingerprint;
	snprintf(d->display, sizeof(d->display), "%s", display);
	fake.datasets++;
	*ret = d;
	return 0;
}

struct dataset *dataset_ref(struct dataset *d)
{
	d->refs++;
	fake.datasets++;
	return d;
}

void dataset_unref(struct dataset *d)
{
	if (!d)
		return;
	fake.datasets--;
	if (--d->refs == 0)
		free(d);
}

uint64_t dataset_length(const struct dataset *d)
{
	(void)d;
	return 10;
}

const uint8_t *dataset_fingerprint(const struct dataset *d)
{
	return d->fingerprint;
}

uint32_t dataset_class_count(const struct dataset *d)
{
	(void)d;
	return 2;
}

const char *dataset_class_name(const struct dataset *d, uint32_t i)
{
	(void)d;
	return i == 0 ? "cat" : "dog";
}

const char *dataset_format(const struct dataset *d)
{
	(void)d;
	return "folder";
}

const char *dataset_display(const struct dataset *d)
{
	return d->display;
}

bool dataset_index_used(const struct dataset *d)
{
	(void)d;
	return false;
}

void dataset_sample(const struct dataset *d, uint64_t id, struct sample *ret)
{
	(void)d;
	*ret = (struct sample){ .label = (int64_t)id % 2 };
}

int dataset_path(const struct dataset *d, uint64_t id, char *ret, size_t size)
{
	(void)d;
	return snprintf(ret, size, "cat/%llu.jpg", (unsigned long long)id);
}

int dataset_save_verdicts(struct dataset *d)
{
	(void)d;
	return 0;
}
