/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of feeder-bench. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "order/order.h"

static const char help[] =
	"feeder-bench DATASET [options]\n"
	"\n"
	"Drains one lane of DATASET (a folder of class folders, a flat folder, or a list file) "
	"and\n"
	"tells images per second and per CPU second, waits, digests. Without --socket it uses a\n"
	"private daemon of its own.\n"
	"\n"
	"  --batch N          batch size of a rank (256)\n"
	"  --size N           pixels a side of the output (224)\n"
	"  --epochs N         whole epochs to drain (1)\n"
	"  --steps N          batches to drain, instead of epochs\n"
	"  --from STEP        start at that step of the epoch by seeking, as a resumed run would\n"
	"  --world W --rank R rank R of W (0 of 1)\n"
	"  --seed S           (0)\n"
	"  --order NAME       torch, feistel, sequential (torch; with --eval sequential)\n"
	"  --tail NAME        pad, drop, mask (pad)\n"
	"  --accumulate K     steps come in groups of K (1)\n"
	"  --bad NAME         fail, mask, substitute (substitute; with --eval mask)\n"
	"  --workers N        decode threads of the private daemon\n"
	"  --eval             Resize and CenterCrop instead of RandomResizedCrop and flip\n"
	"  --socket PATH      use the daemon that listens there\n"
	"  --set KEY=VALUE    reader=uring|pread, slots=N, … of the private daemon\n"
	"  --limit            also measure libjpeg-turbo alone on the same crops, in the same run\n"
	"  --digest           also compute the pixel digest\n"
	"  --dump DIR         write what was delivered: "
	"step-000000-{images,labels,ids,valid,boxes}.npy\n"
	"  --json             print one JSON object\n"
	"  --version, --help\n"
	"\n"
	"Exit status: 0 done; 1 a bad sample, the budget or a failed daemon ended it; 2 usage;\n"
	"3 no daemon.\n";

enum option_code {
	O_BATCH = 256,
	O_SIZE,
	O_EPOCHS,
	O_STEPS,
	O_FROM,
	O_WORLD,
	O_RANK,
	O_SEED,
	O_ORDER,
	O_TAIL,
	O_ACCUMULATE,
	O_BAD,
	O_WORKERS,
	O_EVAL,
	O_SOCKET,
	O_SET,
	O_LIMIT,
	O_DIGEST,
	O_DUMP,
	O_JSON,
	O_VERSION,
	O_HELP,
	O_LATER,
};

static const struct option options[] = {
	{ "batch", required_argument, NULL, O_BATCH },
	{ "size", required_argument, NULL, O_SIZE },
	{ "epochs", required_argument, NULL, O_EPOCHS },
	{ "steps", required_argument, NULL, O_STEPS },
	{ "from", required_argument, NULL, O_FROM },
	{ "world", required_argument, NULL, O_WORLD },
	{ "rank", required_argument, NULL, O_RANK },
	{ "seed", required_argument, NULL, O_SEED },
	{ "order", required_argument, NULL, O_ORDER },
	{ "tail", required_argument, NULL, O_TAIL },
	{ "accumulate", required_argument, NULL, O_ACCUMULATE },
	{ "bad", required_argument, NULL, O_BAD },
	{ "workers", required_argument, NULL, O_WORKERS },
	{ "eval", no_argument, NULL, O_EVAL },
	{ "socket", required_argument, NULL, O_SOCKET },
	{ "set", required_argument, NULL, O_SET },
	{ "limit", no_argument, NULL, O_LIMIT },
	{ "digest", no_argument, NULL, O_DIGEST },
	{ "dump", required_argument, NULL, O_DUMP },
	{ "json", no_argument, NULL, O_JSON },
	{ "version", no_argument, NULL, O_VERSION },
	{ "help", no_argument, NULL, O_HELP },
	{ "device", required_argument, NULL, O_LATER },
	{ "decode", required_argument, NULL, O_LATER },
	{ NULL, 0, NULL, 0 },
};

static int usage(const char *format, const char *value)
{
	fprintf(stderr, "feeder-bench: ");
	fprintf(stderr, format, value);
	fprintf(stderr, "; --help lists the options\n");
	return EXIT_USAGE + 1;
}

/* A whole number in [low, high]; false with the usage error said. */
static bool number(const char *name, const char *text, uint64_t low, uint64_t high, uint64_t *ret)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (!*text || *text == '-' || *end || value < low || value > high) {
		fprintf(stderr,
			"feeder-bench: --%s takes a whole number from %llu to %llu, not '%s'\n",
			name, (unsigned long long)low, (unsigned long long)high, text);
		return false;
	}
	*ret = value;
	return true;
}

static bool small(
	const char *name, const char *text, unsigned int low, unsigned int high, unsigned int *ret)
{
	uint64_t value;

	if (!number(name, text, low, high, &value))
		return false;
	*ret = (unsigned int)value;
	return true;
}

static int parse_bad(const char *name)
{
	if (!strcmp(name, "fail"))
		return FEEDER_BAD_FAIL;
	if (!strcmp(name, "mask"))
		return FEEDER_BAD_MASK;
	return strcmp(name, "substitute") ? 0 : FEEDER_BAD_SUBSTITUTE;
}

static int parse_order(const char *name)
{
	int order = order_kind_parse(name);

	return order == ORDER_TORCH || order == ORDER_FEISTEL || order == ORDER_SEQUENTIAL ? order
											   : 0;
}

static bool take_set(struct bench_options *o, const char *set)
{
	if (!strchr(set, '=') || o->set_count == SETS_MAX) {
		usage("--set takes KEY=VALUE, not '%s'", set);
		return false;
	}
	if (!strncmp(set, "slots=", 6))
		return small("set slots", set + 6, 2, 1024, &o->slots);
	o->sets[o->set_count++] = set;
	return true;
}

/* One option; 0, or what bench_options_parse returns. */
static int take(struct bench_options *o, int option, const char *value, const char *argument)
{
	const int bad = EXIT_USAGE + 1;

	switch (option) {
	case O_BATCH:
		return small("batch", value, 1, 65536, &o->batch) ? 0 : bad;
	case O_SIZE:
		return small("size", value, 1, 16384, &o->size) ? 0 : bad;
	case O_EPOCHS:
		return number("epochs", value, 1, 1u << 30, &o->epochs) ? 0 : bad;
	case O_STEPS:
		return number("steps", value, 1, UINT64_MAX / 2, &o->steps) ? 0 : bad;
	case O_FROM:
		return number("from", value, 0, UINT64_MAX / 2, &o->from) ? 0 : bad;
	case O_WORLD:
		return small("world", value, 1, 1u << 20, &o->world) ? 0 : bad;
	case O_RANK:
		return small("rank", value, 0, 1u << 20, &o->rank) ? 0 : bad;
	case O_SEED:
		return number("seed", value, 0, UINT64_MAX, &o->seed) ? 0 : bad;
	case O_ORDER:
		o->order = (unsigned int)parse_order(value);
		return o->order ? 0
				: usage("--order is torch, feistel or sequential, not '%s'", value);
	case O_TAIL:
		o->tail = (unsigned int)order_tail_parse(value);
		return o->tail ? 0 : usage("--tail is pad, drop or mask, not '%s'", value);
	case O_ACCUMULATE:
		return small("accumulate", value, 1, 1u << 20, &o->accumulate) ? 0 : bad;
	case O_BAD:
		o->bad = (unsigned int)parse_bad(value);
		return o->bad ? 0 : usage("--bad is fail, mask or substitute, not '%s'", value);
	case O_WORKERS:
		return small("workers", value, 1, 4096, &o->workers) ? 0 : bad;
	case O_EVAL:
		o->eval = true;
		return 0;
	case O_SOCKET:
		o->socket = value;
		return 0;
	case O_SET:
		return take_set(o, value) ? 0 : bad;
	case O_LIMIT:
		o->limit = true;
		return 0;
	case O_DIGEST:
		o->digest = true;
		return 0;
	case O_DUMP:
		o->dump = value;
		return 0;
	case O_JSON:
		o->json = true;
		return 0;
	case O_VERSION:
		printf("feeder-bench %s\n", feeder_version());
		return EXIT_DONE + 1;
	case O_HELP:
		fputs(help, stdout);
		return EXIT_DONE + 1;
	case O_LATER:
		return usage("--%s is not in this version of feeder", argument);
	default:
		return usage("unknown or incomplete option %s", argument);
	}
}

static int check(const struct bench_options *o)
{
	if (o->rank >= o->world)
		return usage("--rank must be below --world%s", "");
	if (o->socket && (o->workers || o->set_count))
		return usage("--workers and --set are for a private daemon: they do not go with "
			     "--socket %s",
			o->socket);
	return 0;
}

int bench_options_parse(struct bench_options *ret, int argc, char **argv)
{
	struct bench_options o = {
		.batch = 256,
		.size = 224,
		.epochs = 1,
		.world = 1,
		.accumulate = 1,
		.tail = FEEDER_TAIL_PAD,
	};
	int option, r, index = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
		/* the name for errors: of a known option its own, else what was typed */
		const char *argument = option > 255 ? options[index].name : argv[optind - 1];

		r = take(&o, option == 'h' ? O_HELP : option, optarg, argument);
		if (r)
			return r;
	}
	if (optind + 1 != argc)
		return usage(optind < argc ? "one DATASET, please: '%s' is one too many"
					   : "a DATASET is needed%s",
			optind < argc ? argv[optind + 1] : "");
	o.dataset = argv[optind];
	*ret = o;
	return check(ret);
}
