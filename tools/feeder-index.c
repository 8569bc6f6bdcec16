/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder-index: makes the index of a dataset ahead of time, or says what is in one.
 *
 * It works in this process with the room that the daemon uses, so the index is the one that a
 * daemon of this user finds. It reads what its user may read: links out of the dataset are
 * followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "feeder/version.h"
#include "source/cache_dir.h"
#include "source/source.h"

#define EXIT_FINDING 1
#define EXIT_USAGE   2

struct request {
	const char *path;
	bool list;
	struct dataset_options options;
	char cache[PATH_MAX];
	uint64_t started_ns;
	bool showing; /* a progress line stands on the terminal */
};

static const char help[] =
	"usage: feeder-index PATH [--in-place] [--rebuild] [--hidden] [--allow-empty] [--list]\n"
	"                    [--cache DIR]\n"
	"\n"
	"Makes the index of a dataset, unless a good one is there, and says what is in it.\n"
	"PATH is a directory of classes, a directory of images, or a list of path<TAB>label.\n"
	"\n"
	"  --in-place     keep the index inside the dataset, as .feeder-index\n"
	"  --rebuild      scan even if there is an index\n"
	"  --hidden       count names that begin with a dot, as torchvision does\n"
	"  --allow-empty  classes without samples keep their number\n"
	"  --list         print path<TAB>label of every sample instead\n"
	"  --cache DIR    where indexes are kept; default $CACHE_DIRECTORY,\n"
	"                 else $XDG_CACHE_HOME/feeder, else ~/.cache/feeder\n"
	"  --version      print the version\n"
	"  --help         print this\n"
	"\n"
	"Exit status: 0 done; 1 the dataset cannot be opened, or its index not be kept; 2 usage.\n";

static int usage(const char *sentence, const char *what)
{
	fprintf(stderr, "feeder-index: ");
	fprintf(stderr, sentence, what);
	fprintf(stderr, "\nTry feeder-index --help.\n");
	return EXIT_USAGE;
}

static int later_option(const char *name)
{
	fprintf(stderr, "feeder-index: this version (%s) has no option --%s\n", FEEDER_VERSION,
		name);
	return EXIT_USAGE;
}

enum {
	OPTION_IN_PLACE = 256,
	OPTION_REBUILD,
	OPTION_HIDDEN,
	OPTION_ALLOW_EMPTY,
	OPTION_LIST,
	OPTION_CACHE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_CHECKPOINTS,
	OPTION_VERIFY,
};

static const struct option long_options[] = {
	{ "in-place", no_argument, NULL, OPTION_IN_PLACE },
	{ "rebuild", no_argument, NULL, OPTION_REBUILD },
	{ "hidden", no_argument, NULL, OPTION_HIDDEN },
	{ "allow-empty", no_argument, NULL, OPTION_ALLOW_EMPTY },
	{ "list", no_argument, NULL, OPTION_LIST },
	{ "cache", required_argument, NULL, OPTION_CACHE },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "checkpoints", no_argument, NULL, OPTION_CHECKPOINTS },
	{ "verify", no_argument, NULL, OPTION_VERIFY },
	{ NULL, 0, NULL, 0 },
};

/* -1 to go on, else the exit status. */
static int take_option(struct request *q, int option)
{
	switch (option) {
	case OPTION_IN_PLACE:
		q->options.in_place = true;
		return -1;
	case OPTION_REBUILD:
		q->options.rebuild = true;
		return -1;
	case OPTION_HIDDEN:
		q->options.hidden = true;
		return -1;
	case OPTION_ALLOW_EMPTY:
		q->options.allow_empty = true;
		return -1;
	case OPTION_LIST:
		q->list = true;
		return -1;
	case OPTION_CACHE:
		q->options.cache_dir = optarg;
		return -1;
	case OPTION_VERSION:
		puts("feeder-index " FEEDER_VERSION);
		return EXIT_SUCCESS;
	case OPTION_HELP:
		fputs(help, stdout);
		return EXIT_SUCCESS;
	case OPTION_CHECKPOINTS:
		return later_option("checkpoints");
	case OPTION_VERIFY:
		return later_option("verify");
	default:
		fprintf(stderr, "Try feeder-index --help.\n"); /* getopt said what is wrong */
		return EXIT_USAGE;
	}
}

static int parse(struct request *q, int argc, char **argv)
{
	int option, r;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		r = take_option(q, option);
		if (r >= 0)
			return r;
	}
	if (optind == argc)
		return usage("%s: which dataset?", "PATH is missing");
	if (optind + 1 < argc)
		return usage("one PATH at a time, and not also %s", argv[optind + 1]);
	if (q->options.in_place && q->options.cache_dir)
		return usage("%s are two places for one index", "--in-place and --cache");
	q->path = argv[optind];
	if (!q->options.in_place && !q->options.cache_dir &&
		cache_dir_default(q->cache, sizeof(q->cache)) >= 0)
		q->options.cache_dir = q->cache;
	return -1;
}

static void clear_line(struct request *q)
{
	if (q->showing)
		fputs("\r\033[K", stderr);
	q->showing = false;
}

static bool progress(void *context, uint64_t files, uint64_t directories)
{
	struct request *q = context;

	if (!isatty(STDERR_FILENO) || now_ns() - q->started_ns < NS_PER_SEC)
		return false;
	fprintf(stderr, "\r\033[K%" PRIu64 " files in %" PRIu64 " directories", files, directories);
	q->showing = true;
	return false;
}

static void warning(void *context, const char *sentence)
{
	clear_line(context);
	fprintf(stderr, "feeder-index: warning: %s\n", sentence);
}

static int open_outside(void *context, int dirfd, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned int)flags, .resolve = RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	(void)context;
	return fd < 0 ? -errno : fd;
}

/* An O_PATH descriptor of the directory that path stands in. */
static int open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int fd;

	parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	fd = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	free(parent);
	return fd;
}

static int open_dataset(struct request *q, struct dataset **ret)
{
	CLEANUP(fd_closep) int fd = open(q->path, O_PATH | O_CLOEXEC);
	CLEANUP(fd_closep) int parent = -1;
	char text[1024];
	int r;

	if (fd >= 0)
		parent = open_parent(q->path);
	if (fd < 0 || parent < 0) {
		r = -errno;
		fprintf(stderr, "feeder-index: %s: %s\n", q->path, strerror(-r));
		return r;
	}
	r = dataset_open(ret, fd, parent, q->path, &q->options, text, sizeof(text));
	clear_line(q);
	if (r < 0)
		fprintf(stderr, "feeder-index: %s\n", text);
	return r;
}

static void print_list(const struct dataset *d)
{
	for (uint64_t id = 0; id < dataset_length(d); id++) {
		char path[2 * PATH_MAX];
		struct sample s;

		dataset_sample(d, id, &s);
		if (dataset_path(d, id, path, sizeof(path)) >= 0)
			printf("%s\t%" PRId64 "\n", path, s.label);
	}
}

static void print_summary(const struct request *q, const struct dataset *d)
{
	const uint8_t *fingerprint = dataset_fingerprint(d);
	const char *path = dataset_index_path(d);
	double seconds = (double)(now_ns() - q->started_ns) / NS_PER_SEC;

	printf("samples      %" PRIu64 "\n", dataset_length(d));
	printf("classes      %" PRIu32 "\n", dataset_class_count(d));
	printf("format       %s\n", dataset_format(d));
	printf("fingerprint  ");
	for (int i = 0; i < FINGERPRINT_SIZE; i++)
		printf("%02x", fingerprint[i]);
	printf("\nindex        %s (%s in %.2f s)\n", *path ? path : "none",
		dataset_index_used(d) ? "reused" : "built", seconds);
}

int main(int argc, char **argv)
{
	struct request q = { .path = NULL };
	struct dataset *d;
	int r;

	q.options.progress = progress;
	q.options.warning = warning;
	q.options.open_outside = open_outside;
	q.options.context = &q;
	r = parse(&q, argc, argv);
	if (r >= 0)
		return r;
	q.started_ns = now_ns();
	if (!q.options.in_place && !q.options.cache_dir)
		warning(&q,
			"there is no cache directory: HOME is not set, and no --cache is given");
	if (open_dataset(&q, &d) < 0)
		return EXIT_FINDING;
	if (q.list)
		print_list(d);
	else
		print_summary(&q, d);
	r = *dataset_index_path(d) ? EXIT_SUCCESS : EXIT_FINDING;
	dataset_unref(d);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "feeder-index: cannot write: %s\n", strerror(errno));
		return EXIT_FINDING;
	}
	return r;
}
