/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder-photos: a folder of photo-like JPEGs, for the demo, the benchmarks and the tests.
 *
 * The same seed and options give the same files, whatever the number of threads, as long as the
 * JPEG library is the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/philox.h"
#include "build-config.h"
#include "tools/dev/damage.h"
#include "tools/dev/noise.h"
#include "tools/dev/photo.h"
#include "tools/dev/scene.h"

#define MOST_THREADS 256

struct run {
	/* constant after start */
	const char *directory;
	const char *list_path;
	uint32_t count;
	uint32_t classes;
	uint32_t damage_every; /* 0 = none */
	uint32_t threads;
	struct photo_wish wish;
	struct noise *noise;
	bool progress;

	pthread_mutex_t lock;
	/* guarded by lock */
	uint32_t next;
	uint32_t done;
	uint64_t bytes;
	int error; /* the first, negative errno */
	char failed[PATH_MAX];
};

static const char help[] =
	"usage: feeder-photos DIR [options]\n"
	"Fills DIR with photo-like JPEGs in class folders; the same seed gives the same files.\n"
	"\n"
	"  --count N           photos (2000)\n"
	"  --classes N         class folders (10)\n"
	"  --size WxH          the usual size (500x375)\n"
	"  --mean-kb N         mean size of a file of that size, 1000 bytes (90)\n"
	"  --seed N            (0)\n"
	"  --damage N          break one file in N, each in another way\n"
	"  --damage-list FILE  write the broken ones there: path, kind and expected status,\n"
	"                      separated by tabs (maybe: depends on the box that is decoded)\n"
	"  --threads N         (as many as CPUs)\n";

static int usage(const char *what)
{
	fprintf(stderr, "feeder-photos: %s; feeder-photos --help shows the options\n", what);
	return 2;
}

static const struct damage *damage_of(const struct run *run, uint32_t number)
{
	uint32_t every = run->damage_every, block;

	if (!every)
		return NULL;
	block = number /
		every; /* the place moves on from block to block, so that all classes suffer */
	if (number % every != (block + every / 2) % every)
		return NULL;
	return &damages[block % damage_count];
}

/* Relative to the directory. */
static void photo_path(const struct run *run, uint32_t number, char *ret, size_t size)
{
	snprintf(ret, size, "class%03u/%06u.jpg", number % run->classes, number);
}

static int file_write(const char *path, const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < size && !r; at += (size_t)n) {
		n = write(fd, data + at, size - at);
		if (n < 0) {
			r = -errno;
			n = 0;
		}
	}
	if (close(fd) < 0 && !r)
		r = -errno;
	return r;
}

static int one(struct run *run, struct photo_maker *maker, uint32_t number, const char *path,
	uint64_t *ret_bytes)
{
	const struct damage *damage = damage_of(run, number);
	struct philox_stream random;
	struct photo photo;
	int r;

	r = photo_make(maker, number, damage != NULL, &photo);
	if (!r && damage) {
		philox_stream_init(&random, run->wish.seed, number, 0, 0, 3);
		r = damage->apply(&photo, &random);
	}
	if (!r)
		r = file_write(path, photo.data, photo.size);
	if (!r)
		*ret_bytes = photo.size;
	return r;
}

static void progress(const struct run *run)
{
	unsigned int filled = (unsigned int)((uint64_t)run->done * 40 / run->count);

	fprintf(stderr, "\rphotos [%.*s%*s] %u of %u", (int)filled,
		"########################################", (int)(40 - filled), "", run->done,
		run->count);
}

static bool next_take(struct run *run, uint32_t *ret)
{
	bool more;

	pthread_mutex_lock(&run->lock);
	more = !run->error && run->next < run->count;
	if (more)
		*ret = run->next++;
	pthread_mutex_unlock(&run->lock);
	return more;
}

static void next_done(struct run *run, int r, const char *path, uint64_t bytes)
{
	pthread_mutex_lock(&run->lock);
	if (r < 0 && !run->error) {
		run->error = r;
		snprintf(run->failed, sizeof(run->failed), "%s", path);
	}
	run->done++;
	run->bytes += bytes;
	if (run->progress && (run->done % 16 == 0 || run->done == run->count))
		progress(run);
	pthread_mutex_unlock(&run->lock);
}

static void *worker(void *argument)
{
	struct run *run = argument;
	struct photo_maker *maker;
	char name[64], path[PATH_MAX];
	uint64_t bytes = 0;
	uint32_t number;
	int r = photo_maker_new(&maker, run->noise, &run->wish);

	if (r < 0) {
		next_done(run, r, run->directory, 0);
		return NULL;
	}
	while (next_take(run, &number)) {
		photo_path(run, number, name, sizeof(name));
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", run->directory, name) >=
			sizeof(path))
			r = -ENAMETOOLONG;
		else
			r = one(run, maker, number, path, &bytes);
		next_done(run, r, path, bytes);
	}
	photo_maker_free(maker);
	return NULL;
}

static int list_write(const struct run *run)
{
	const struct damage *damage;
	char name[64];
	FILE *file = fopen(run->list_path, "we");
	int r = 0;

	if (!file)
		return -errno;
	for (uint32_t i = 0; i < run->count; i++) {
		damage = damage_of(run, i);
		photo_path(run, i, name, sizeof(name));
		if (damage)
			fprintf(file, "%s\t%s\t%s\n", name, damage->kind, damage->status);
	}
	if (ferror(file))
		r = -EIO;
	if (fclose(file) && !r)
		r = -errno;
	return r;
}

static int directories_make(const struct run *run)
{
	char path[PATH_MAX];

	if (mkdir(run->directory, 0777) < 0 && errno != EEXIST)
		return -errno;
	for (uint32_t i = 0; i < run->classes && i < run->count; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/class%03u", run->directory, i) >=
			sizeof(path))
			return -ENAMETOOLONG;
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Every thread that could be started works; one is enough. */
static int threads_run(struct run *run)
{
	pthread_t threads[MOST_THREADS];
	uint32_t started = 0;
	int r = 0;

	while (started < run->threads) {
		r = -pthread_create(&threads[started], NULL, worker, run);
		if (r < 0)
			break;
		started++;
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (!started)
		return r;
	if (run->progress)
		fputc('\n', stderr);
	return run->error;
}

static int photos(struct run *run)
{
	const char *where = run->directory;
	int r = directories_make(run);

	if (!r)
		r = noise_new(&run->noise, run->wish.seed);
	if (!r) {
		r = threads_run(run);
		if (run->failed[0])
			where = run->failed;
	}
	noise_free(run->noise);
	if (!r && run->list_path) {
		where = run->list_path;
		r = list_write(run);
	}
	if (r < 0) {
		fprintf(stderr, "feeder-photos: %s: %s\n", where, strerror(-r));
		return 1;
	}
	printf("%u photos in %u classes, %.1f kB each, in %s\n", run->count,
		run->classes < run->count ? run->classes : run->count,
		(double)run->bytes / run->count / 1000, run->directory);
	return fflush(stdout) ? 1 : 0;
}

/* A whole decimal number of lowest..highest, or -EINVAL. */
static int number_parse(const char *text, uint64_t lowest, uint64_t highest, uint64_t *ret)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || value < lowest ||
		value > highest)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int size_parse(const char *text, struct photo_wish *wish)
{
	unsigned int w, h;
	char rest;

	if (sscanf(text, "%5ux%5u%c", &w, &h, &rest) != 2 || w < 1 || h < 1 || w > SCENE_MAX_SIDE ||
		h > SCENE_MAX_SIDE)
		return -EINVAL;
	wish->width = w;
	wish->height = h;
	return 0;
}

static uint32_t cpus_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (uint32_t)CPU_COUNT(&set);
}

static int option_take(struct run *run, int option, const char *text)
{
	uint64_t value = 0;
	int r;

	switch (option) {
	case 'd':
		run->list_path = text;
		return 0;
	case 'z':
		return size_parse(text, &run->wish);
	case 's':
		return number_parse(text, 0, UINT64_MAX, &run->wish.seed);
	case 'c':
		r = number_parse(text, 1, 1000 * 1000 * 1000, &value);
		run->count = (uint32_t)value;
		return r;
	case 'l':
		r = number_parse(text, 1, 1000 * 1000, &value);
		run->classes = (uint32_t)value;
		return r;
	case 'm':
		r = number_parse(text, 1, 100 * 1000, &value);
		run->wish.mean_bytes = (uint32_t)value * 1000;
		return r;
	case 'e':
		r = number_parse(text, 1, 1000 * 1000 * 1000, &value);
		run->damage_every = (uint32_t)value;
		return r;
	default:
		r = number_parse(text, 1, MOST_THREADS, &value);
		run->threads = (uint32_t)value;
		return r;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "classes", required_argument, NULL, 'l' },
		{ "size", required_argument, NULL, 'z' },
		{ "mean-kb", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "damage", required_argument, NULL, 'e' },
		{ "damage-list", required_argument, NULL, 'd' },
		{ "threads", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	static struct run run = { .count = 2000,
		.classes = 10,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wish = { .width = 500, .height = 375, .mean_bytes = 90 * 1000 } };
	char text[200];
	int option, index = 0;

	run.threads = cpus_allowed();
	run.threads = run.threads > MOST_THREADS ? MOST_THREADS : run.threads;
	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (option == '?')
			return 2;
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (option == 'v')
			return puts("feeder-photos " FEEDER_BUILD_VERSION) < 0;
		if (option_take(&run, option, optarg) < 0) {
			snprintf(text, sizeof(text), "%.100s is not a value for --%s", optarg,
				options[index].name);
			return usage(text);
		}
	}
	if (optind != argc - 1)
		return usage("give one folder");
	run.directory = argv[optind];
	run.progress = isatty(STDERR_FILENO);
	return photos(&run);
}
