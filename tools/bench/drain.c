/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining a lane and accounting for it.
 *
 * CPU time is that of the daemon since the lane's first ticket and of this process since the lane
 * was opened. With --limit the run is cut into rounds: feeder drains some batches and fills its
 * ring again, then stands still while libjpeg-turbo alone decodes the same crops; a round's CPU
 * time is taken between two moments at which the ring is full, so it is that of as many batches
 * as were drained.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "order/order.h"
#include "stat/snapshot.h"

#define FULL_POLL_US   40000
#define FULL_POLLS_MAX 1000
#define PROGRESS_NS    (500 * NS_PER_MS)

struct drain {
	const struct bench_options *o;
	struct bench_result *result;
	struct feeder *f;
	struct feeder_lane *lane;
	struct feeder_lane_info info;
	struct limit_crops *crops;
	uint64_t total; /* batches to drain */
	uint64_t done;
	uint64_t client_cpu_start;
	uint64_t open_ns; /* feeder_lane_open was called */
	uint64_t progress_ns;
	double wait_seconds;
	double seconds;
};

static int say(int error, int status)
{
	const char *sentence = feeder_last_error();

	fprintf(stderr, "feeder-bench: %s\n", *sentence ? sentence : strerror(-error));
	return status;
}

static int connect_daemon(struct drain *d)
{
	struct feeder_connect_options options;
	int r;

	feeder_connect_options_init(&options);
	options.socket = d->o->socket;
	options.program = "feeder-bench";
	options.workers = d->o->workers;
	options.set = d->o->set_count ? d->o->sets : NULL;
	options.fresh = d->o->socket == NULL;
	if (d->o->socket)
		options.timeout_ms = 5000;
	r = feeder_connect(&d->f, &options);
	return r < 0 ? say(r, EXIT_NODAEMON) : EXIT_DONE;
}

static void show_index_progress(void *context, uint64_t files, uint64_t directories)
{
	(void)context;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rindexing: %llu files in %llu directories ",
			(unsigned long long)files, (unsigned long long)directories);
}

static int open_lane(struct drain *d)
{
	const struct bench_options *o = d->o;
	struct feeder_lane_config config;
	int r;

	feeder_lane_config_init(&config);
	config.train = !o->eval;
	config.batch_size = o->batch;
	config.rank = o->rank;
	config.world_size = o->world;
	config.accumulate = o->accumulate;
	config.order = o->order;
	config.tail = o->tail;
	config.bad = o->bad;
	config.seed = o->seed;
	config.height = o->size;
	config.width = o->size;
	config.slots = o->slots;
	config.pixel_digest = o->digest;
	config.progress = show_index_progress;
	/* nothing is prepared that is not drained; --limit wants full rings to its end */
	if (!o->limit && !o->from)
		config.max_batches = o->steps;
	if (!o->limit && !o->steps)
		config.max_epochs = o->epochs;
	d->open_ns = now_ns();
	r = feeder_lane_open(&d->lane, d->f, o->dataset, &config);
	if (r < 0)
		return say(r, r == -EPIPE ? EXIT_NODAEMON : EXIT_FINDING);
	d->info.size = sizeof(d->info);
	feeder_lane_info(d->lane, &d->info);
	return EXIT_DONE;
}

/* Seeks to step `from` of epoch 0: the cursor is that of a run which consumed so many steps. */
static int start_at(struct drain *d)
{
	const struct bench_options *o = d->o;
	struct shard shard = {
		.n = d->info.samples,
		.world = o->world,
		.rank = o->rank,
		.batch = o->batch,
		.accumulate = o->accumulate,
		.tail = o->tail,
		.parts = 1,
	};
	uint8_t bytes[FEEDER_CURSOR_MAX];
	uint8_t encoded[CURSOR_SIZE];
	struct cursor cursor;
	char text[256];
	int size = feeder_cursor(d->lane, bytes, sizeof(bytes)), r;

	if (size < 0 || cursor_decode(&cursor, bytes, (size_t)size, text, sizeof(text)) < 0)
		return say(size < 0 ? size : -EBADMSG, EXIT_FINDING);
	if (o->from >= d->info.steps_epoch) {
		fprintf(stderr, "feeder-bench: --from %llu is past the epoch's %llu steps\n",
			(unsigned long long)o->from, (unsigned long long)d->info.steps_epoch);
		return EXIT_USAGE;
	}
	cursor = cursor_after(&cursor, &shard, o->from);
	cursor_encode(&cursor, encoded);
	r = feeder_seek(d->lane, encoded, sizeof(encoded));
	if (r < 0)
		return say(r, EXIT_FINDING);
	feeder_lane_info(d->lane, &d->info);
	return EXIT_DONE;
}

static void show_progress(struct drain *d)
{
	uint64_t now = now_ns();

	if (d->o->json || !isatty(STDERR_FILENO) || now - d->progress_ns < PROGRESS_NS)
		return;
	d->progress_ns = now;
	fprintf(stderr, "\r%llu of %llu batches, %.0f images/s, waiting %.0f %% ",
		(unsigned long long)d->done, (unsigned long long)d->total,
		d->seconds > 0 ? (double)d->result->images / d->seconds : 0.0,
		d->seconds > 0 ? 100.0 * d->wait_seconds / d->seconds : 0.0);
	fflush(stderr);
}

static uint64_t dump_number(const struct drain *d)
{
	return d->o->from + d->done;
}

static int take_batch(struct drain *d)
{
	struct feeder_batch batch = { .size = sizeof(batch) };
	int r, status = EXIT_DONE;

	do {
		r = feeder_next(d->lane, &batch, -1);
	} while (r == -EINTR);
	if (r < 0)
		return say(r, EXIT_FINDING);
	if (d->done == 0)
		d->result->first_batch_ms = (double)(now_ns() - d->open_ns) / 1e6;
	d->wait_seconds += (double)batch.wait_ns / 1e9;
	d->result->images += batch.count;
	d->result->bad_samples += batch.bad_count;
	if (d->crops && limit_crops_add(d->crops, d->lane, &batch) < 0)
		status = say(-EIO, EXIT_FINDING);
	if (d->o->dump && bench_dump(d->o->dump, dump_number(d), d->lane, &batch, d->o->size) < 0)
		status = EXIT_FINDING;
	feeder_release(d->lane, batch.number);
	d->done++;
	return status;
}

static int drain_some(struct drain *d, uint64_t batches)
{
	int status = EXIT_DONE;

	for (uint64_t i = 0; i < batches && status == EXIT_DONE; i++) {
		uint64_t start = now_ns();

		status = take_batch(d);
		d->seconds += (double)(now_ns() - start) / 1e9;
		show_progress(d);
	}
	return status;
}

/* A moment at which the ring is full and the daemon idle: its CPU time and what was published. */
struct moment {
	uint64_t daemon_cpu_ns;
	uint64_t client_cpu_ns;
	uint64_t samples;
};

static int look(struct drain *d, struct moment *ret, bool *ret_full)
{
	const struct stats_lane_record *lane;
	struct snapshot s;
	char text[256];
	int r = snapshot_take(&s, d->f, text, sizeof(text));

	if (r < 0)
		return say(r, EXIT_FINDING);
	lane = snapshot_lane(&s, d->info.lane);
	if (lane) {
		*ret = (struct moment){
			.daemon_cpu_ns = s.daemon[STATS_DAEMON_process_cpu],
			.client_cpu_ns = process_cpu_ns(),
			.samples = lane->counters[STATS_LANE_samples],
		};
		*ret_full = lane->counters[STATS_LANE_ready] == lane->counters[STATS_LANE_slots];
	}
	snapshot_free(&s);
	return lane ? EXIT_DONE : say(-ENOENT, EXIT_FINDING);
}

static int wait_full(struct drain *d, struct moment *ret)
{
	bool full = false;
	int status;

	for (unsigned int i = 0; i < FULL_POLLS_MAX; i++) {
		status = look(d, ret, &full);
		if (status != EXIT_DONE)
			return status;
		if (full) {
			usleep(FULL_POLL_US); /* reads ahead come to rest */
			return look(d, ret, &full);
		}
		usleep(FULL_POLL_US);
	}
	fprintf(stderr, "feeder-bench: the ring did not fill in %d s\n",
		FULL_POLLS_MAX * FULL_POLL_US / 1000000);
	return EXIT_FINDING;
}

static double per_cpu_second(const struct moment *from, const struct moment *to, uint64_t images)
{
	uint64_t cpu =
		to->daemon_cpu_ns - from->daemon_cpu_ns + (to->client_cpu_ns - from->client_cpu_ns);

	return cpu ? (double)images * 1e9 / (double)cpu : 0.0;
}

/* One round: some batches by feeder, the same crops by libjpeg-turbo alone. */
static int run_round(struct drain *d, uint64_t batches, double *io_wall)
{
	struct bench_round *round = &d->result->round[d->result->rounds];
	struct moment before, after;
	uint64_t wall;
	int status = wait_full(d, &before);

	if (status != EXIT_DONE)
		return status;
	wall = now_ns();
	status = drain_some(d, batches);
	if (status == EXIT_DONE)
		status = wait_full(d, &after);
	if (status != EXIT_DONE)
		return status;
	*io_wall += (double)(now_ns() - wall) / 1e9;
	round->feeder = per_cpu_second(&before, &after, after.samples - before.samples);
	round->limit = limit_crops_run(d->crops, d->lane);
	if (round->limit < 0)
		return EXIT_FINDING;
	d->result->rounds++;
	return EXIT_DONE;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count == 0  ? 0.0
	       : count % 2 ? values[count / 2]
			   : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int run_rounds(struct drain *d)
{
	struct bench_result *r = d->result;
	double ratios[ROUNDS], limits[ROUNDS], wall = d->seconds;
	uint64_t batches = d->total - d->done;
	uint64_t rounds = batches < ROUNDS ? batches : ROUNDS;
	int status = EXIT_DONE;

	for (uint64_t i = 0; i < rounds && status == EXIT_DONE; i++)
		status = run_round(d, batches * (i + 1) / rounds - batches * i / rounds, &wall);
	if (status != EXIT_DONE)
		return status;
	for (unsigned int i = 0; i < r->rounds; i++) {
		limits[i] = r->round[i].limit;
		ratios[i] = limits[i] > 0 ? r->round[i].feeder / limits[i] : 0.0;
	}
	r->limit_images_per_cpu_s = median(limits, r->rounds);
	r->ratio_to_limit = median(ratios, r->rounds);
	d->seconds = wall;
	return EXIT_DONE;
}

static void account_counters(struct drain *d, const struct snapshot *s)
{
	const struct stats_lane_record *lane = snapshot_lane(s, d->info.lane);
	struct bench_result *r = d->result;
	double cpu, decode, transform;

	r->workers = (unsigned int)s->daemon[STATS_DAEMON_workers];
	snprintf(r->reader, sizeof(r->reader), "%s", s->header.reader);
	snprintf(r->simd, sizeof(r->simd), "%s", s->header.simd);
	snprintf(r->codec, sizeof(r->codec), "%s", s->header.codec);
	if (!lane)
		return;
	r->setup_cpu_s =
		(double)(lane->counters[STATS_LANE_opened_cpu] + d->client_cpu_start) / 1e9;
	cpu = (double)(s->daemon[STATS_DAEMON_process_cpu] - lane->counters[STATS_LANE_opened_cpu] +
		       process_cpu_ns() - d->client_cpu_start) /
	      1e9;
	decode = (double)lane->counters[STATS_LANE_decode_cpu] / 1e9;
	transform = (double)lane->counters[STATS_LANE_transform_cpu] / 1e9;
	if (decode + transform > 0)
		r->decode_share = decode / (decode + transform);
	if (d->o->limit)
		return; /* this process's CPU time holds the limit's: the rounds have the rate */
	if (cpu > 0) {
		r->images_per_cpu_s = (double)lane->counters[STATS_LANE_samples] / cpu;
		r->other_share = 1.0 - (decode + transform) / cpu;
	}
}

static int finish(struct drain *d)
{
	struct bench_result *r = d->result;
	double rates[ROUNDS];
	struct snapshot s;
	char text[256];

	r->steps = d->done;
	r->order_digest = feeder_order_digest(d->lane);
	r->pixel_digest = feeder_pixel_digest(d->lane);
	r->seconds = d->seconds;
	r->wait_seconds = d->wait_seconds;
	r->images_per_s = d->seconds > 0 ? (double)r->images / d->seconds : 0.0;
	r->ring_bytes = d->info.ring_bytes;
	r->dataset_samples = d->info.samples;
	r->classes = d->info.class_count;
	snprintf(r->dataset_format, sizeof(r->dataset_format), "%s", d->info.format);
	r->private_daemon = feeder_is_private(d->f);
	if (snapshot_take(&s, d->f, text, sizeof(text)) < 0)
		return say(-EPIPE, EXIT_FINDING);
	account_counters(d, &s);
	snapshot_free(&s);
	for (unsigned int i = 0; i < r->rounds; i++)
		rates[i] = r->round[i].feeder;
	if (r->rounds)
		r->images_per_cpu_s = median(rates, r->rounds);
	return EXIT_DONE;
}

/* The daemon's workers, for the limit's threads. */
static unsigned int daemon_workers(struct drain *d)
{
	struct snapshot s;
	char text[256];
	unsigned int workers = 1;

	if (snapshot_take(&s, d->f, text, sizeof(text)) == 0) {
		workers = (unsigned int)s.daemon[STATS_DAEMON_workers];
		snapshot_free(&s);
	}
	return workers;
}

static int run(struct drain *d)
{
	const struct bench_options *o = d->o;
	uint64_t start;
	int status = open_lane(d);

	if (status == EXIT_DONE && o->from)
		status = start_at(d);
	if (status != EXIT_DONE)
		return status;
	d->client_cpu_start = process_cpu_ns();
	d->total = o->steps ? o->steps : d->info.steps + (o->epochs - 1) * d->info.steps_epoch;
	if (o->limit) {
		/* the first batch is not part of a round: its time is that from an empty ring */
		if (d->total > 1)
			status = drain_some(d, 1);
		d->crops = limit_crops_new(o->dataset, daemon_workers(d));
		if (status == EXIT_DONE)
			status = d->crops ? run_rounds(d) : say(-ENOMEM, EXIT_FINDING);
	} else {
		start = now_ns();
		status = drain_some(d, d->total);
		d->seconds = (double)(now_ns() - start) / 1e9;
	}
	if (isatty(STDERR_FILENO) && !o->json)
		fputs("\r\033[K", stderr);
	return status == EXIT_DONE ? finish(d) : status;
}

int bench_run(const struct bench_options *o, struct bench_result *ret)
{
	struct drain d = { .o = o, .result = ret };
	int status;

	memset(ret, 0, sizeof(*ret));
	status = connect_daemon(&d);
	if (status == EXIT_DONE)
		status = run(&d);
	limit_crops_free(d.crops);
	feeder_lane_close(d.lane);
	feeder_disconnect(d.f);
	return status;
}
