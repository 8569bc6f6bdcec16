/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of feeder-stat. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "feeder/feeder.h"

static const char help[] =
	"usage: feeder-stat [COMMAND] [--socket PATH] [--interval S] [--count N] [--once] "
	"[--json]\n"
	"\n"
	"Shows what the feeder daemons of this machine do. Without --socket: every daemon that\n"
	"this user may see.\n"
	"\n"
	"  top      a table that refreshes: rates, ready slots, waits, the limit of each lane\n"
	"           (the default; without a terminal it is printed once)\n"
	"  why      a sentence for each lane: what limits it, with a number, and what would help\n"
	"  errors   the bad samples: lane, sample, file, status, reason\n"
	"  digest   order and pixel digest of each lane, with its position\n"
	"  health   a line for each daemon: both versions, ok or what is wrong\n"
	"  json     everything, one JSON object a daemon\n"
	"  metrics  everything, as OpenMetrics text\n"
	"\n"
	"  --socket PATH  only the daemon that listens there\n"
	"  --interval S   seconds between two looks (1)\n"
	"  --count N      as many rounds (top: until interrupted; the others: 1)\n"
	"  --once         top: one table; why: since the lanes were opened, at once\n"
	"  --json         why, errors: as JSON\n"
	"  --version, --help\n"
	"\n"
	"Exit status: 0 done; 1 health: a daemon is unwell; 2 usage; 3 no daemon.\n";

static const char *const commands[] = {
	[COMMAND_TOP] = "top",
	[COMMAND_JSON] = "json",
	[COMMAND_WHY] = "why",
	[COMMAND_ERRORS] = "errors",
	[COMMAND_METRICS] = "metrics",
	[COMMAND_HEALTH] = "health",
	[COMMAND_DIGEST] = "digest",
};

enum {
	OPTION_SOCKET = 256,
	OPTION_INTERVAL,
	OPTION_COUNT,
	OPTION_ONCE,
	OPTION_JSON,
	OPTION_VERSION,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "count", required_argument, NULL, OPTION_COUNT },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ NULL, 0, NULL, 0 },
};

static int usage(const char *format, const char *what)
{
	fprintf(stderr, "feeder-stat: ");
	fprintf(stderr, format, what);
	fprintf(stderr, "; feeder-stat --help lists what there is\n");
	return EXIT_USAGE;
}

static int take_interval(struct options *o, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0.01 && value <= 86400))
		return usage("--interval takes seconds from 0.01 to 86400, not '%s'", text);
	o->interval_ns = (uint64_t)(value * (double)NS_PER_SEC);
	return -1;
}

static int take_count(struct options *o, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value == 0 || value > 1ull << 62)
		return usage("--count takes a whole number from 1, not '%s'", text);
	o->count = value;
	return -1;
}

static int take_command(struct options *o, const char *name)
{
	static const char *const later[] = { "gpu", "trace", "ceiling" };

	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(name, commands[i])) {
			o->command = (enum command)i;
			return -1;
		}
	}
	for (unsigned int i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (!strcmp(name, later[i])) {
			fprintf(stderr, "feeder-stat: this version (%s) has no %s\n",
				FEEDER_VERSION, name);
			return EXIT_USAGE;
		}
	}
	return usage("there is no command '%s'", name);
}

static int take(struct options *o, int option, const char *argument)
{
	switch (option) {
	case OPTION_SOCKET:
		o->socket = optarg;
		return *optarg ? -1 : usage("--socket takes a path, not '%s'", optarg);
	case OPTION_INTERVAL:
		return take_interval(o, optarg);
	case OPTION_COUNT:
		return take_count(o, optarg);
	case OPTION_ONCE:
		o->once = true;
		return -1;
	case OPTION_JSON:
		o->json = true;
		return -1;
	case OPTION_VERSION:
		puts("feeder-stat " FEEDER_VERSION);
		return EXIT_DONE;
	case OPTION_HELP:
		fputs(help, stdout);
		return EXIT_DONE;
	default:
		return usage("unknown or incomplete option %s", argument);
	}
}

int options_parse(struct options *ret, int argc, char **argv)
{
	struct options o = { .command = COMMAND_TOP, .interval_ns = NS_PER_SEC };
	int option, r;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		r = take(&o, option, argv[optind - 1]);
		if (r >= 0)
			return r;
	}
	if (optind < argc) {
		r = take_command(&o, argv[optind]);
		if (r >= 0)
			return r;
	}
	if (optind + 1 < argc)
		return usage("one command at a time, and not also '%s'", argv[optind + 1]);
	if (o.json && o.command != COMMAND_WHY && o.command != COMMAND_ERRORS)
		return usage(
			"--json goes with why and errors, and not with %s", commands[o.command]);
	if (o.once && o.count)
		return usage("--once and --count exclude each other%s", "");
	*ret = o;
	return -1;
}
