/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, and the settings that come of it. */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/config.h"
#include "feeder/version.h"

static const char help[] =
	"usage: feederd [--config FILE] [--check-config] [--socket PATH] [--root DIR]...\n"
	"               [--workers N] [--foreground] [--set KEY=VALUE]...\n"
	"\n"
	"Reads, decodes and shuffles image datasets for the trainers of this node.\n"
	"\n"
	"  --config FILE    settings; default " CONFIG_FILE ", if it is there\n"
	"  --check-config   check the settings and exit: 0 in order, 1 not\n"
	"  --socket PATH    where clients connect; default " CONFIG_SOCKET "\n"
	"  --root DIR       a directory that may be read, besides those of the settings\n"
	"  --workers N      decode threads, taken literally; default: CPUs allowed, less one\n"
	"                   for each attached rank\n"
	"  --foreground     nothing: feederd never leaves the foreground\n"
	"  --set KEY=VALUE  a setting of feeder.conf(5), [daemon] KEY or limits.KEY\n"
	"  --version        print the version\n"
	"  --help           print this\n"
	"\n"
	"SIGTERM and SIGINT stop it within 10 s, a second one at once; SIGHUP rereads roots and\n"
	"limits. feederd(8) says more.\n";

enum {
	OPT_CONFIG = 256,
	OPT_CHECK,
	OPT_SOCKET,
	OPT_ROOT,
	OPT_WORKERS,
	OPT_FOREGROUND,
	OPT_SET,
	OPT_PRIVATE,
	OPT_VERSION,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "check-config", no_argument, NULL, OPT_CHECK },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "set", required_argument, NULL, OPT_SET },
	{ "private", no_argument, NULL, OPT_PRIVATE }, /* libfeeder's: a job's own daemon */
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static int finish(int *ret_status, int status)
{
	*ret_status = status;
	return 1;
}

static int take_option(struct options *o, int option, int *ret_status)
{
	switch (option) {
	case OPT_CONFIG:
		o->config_file = optarg;
		return 0;
	case OPT_CHECK:
		o->check_config = true;
		return 0;
	case OPT_SOCKET:
		o->socket = optarg;
		return 0;
	case OPT_ROOT:
		o->roots[o->root_count++] = optarg;
		return 0;
	case OPT_WORKERS:
		o->workers = optarg;
		return 0;
	case OPT_FOREGROUND:
		return 0;
	case OPT_SET:
		o->sets[o->set_count++] = optarg;
		return 0;
	case OPT_PRIVATE:
		o->private_daemon = true;
		return 0;
	case OPT_VERSION:
		printf("feederd " FEEDER_VERSION "\n");
		return finish(ret_status, 0);
	case OPT_HELP:
		fputs(help, stdout);
		return finish(ret_status, 0);
	default:
		fprintf(stderr, "feederd: see feederd --help\n");
		return finish(ret_status, 2);
	}
}

int options_parse(struct options *ret, int argc, char **argv, int *ret_status)
{
	struct options o = {
		.roots = calloc((size_t)argc + 1, sizeof(*o.roots)),
		.sets = calloc((size_t)argc + 1, sizeof(*o.sets)),
	};
	int option, r = 0;

	if (!o.roots || !o.sets) {
		options_deinit(&o);
		return finish(ret_status, 1);
	}
	while (r == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		r = take_option(&o, option, ret_status);
	if (r == 0 && optind < argc) {
		fprintf(stderr, "feederd: unexpected argument \"%s\"; see feederd --help\n",
			argv[optind]);
		r = finish(ret_status, 2);
	}
	if (r != 0) {
		options_deinit(&o);
		return r;
	}
	*ret = o;
	return 0;
}

void options_deinit(struct options *options)
{
	free(options->roots);
	free(options->sets);
	options->roots = NULL;
	options->sets = NULL;
}

static int set_flag(
	struct config *config, const char *key, const char *value, char *text, size_t size)
{
	char assignment[4096];

	if (!value)
		return 0;
	if (snprintf(assignment, sizeof(assignment), "%s=%s", key, value) >=
		(int)sizeof(assignment)) {
		snprintf(text, size, "--%s is too long", key);
		return -EINVAL;
	}
	return config_set(config, assignment, text, size);
}

static int read_file(const struct options *options, struct config *config, char *text, size_t size)
{
	if (options->config_file)
		return config_read(config, options->config_file, text, size);
	/* The node's settings are the service's: a job's own daemon has its user's rights. */
	if (options->private_daemon)
		return 0;
	int r = config_read(config, CONFIG_FILE, text, size);
	return r == -ENOENT ? 0 : r;
}

static int add_roots(const struct options *options, struct config *config, char *text, size_t size)
{
	for (size_t i = 0; i < options->root_count; i++) {
		if (config_add_root(config, options->roots[i]) < 0) {
			snprintf(text, size, "out of memory");
			return -ENOMEM;
		}
	}
	return 0;
}

int options_config(const struct options *options, struct config *ret, char *text, size_t size)
{
	struct config config;
	int r;

	config_init(&config);
	r = read_file(options, &config, text, size);
	for (size_t i = 0; r == 0 && i < options->set_count; i++)
		r = config_set(&config, options->sets[i], text, size);
	if (r == 0)
		r = set_flag(&config, "socket", options->socket, text, size);
	if (r == 0)
		r = set_flag(&config, "workers", options->workers, text, size);
	if (r == 0)
		r = add_roots(options, &config, text, size);
	if (r == 0 && !options->private_daemon && config.root_count == 0) {
		snprintf(text, size,
			"no root: name the directories that may be read with --root DIR, or "
			"[root DIR] in %s",
			options->config_file ? options->config_file : CONFIG_FILE);
		r = -EINVAL;
	}
	if (r == 0 && options->private_daemon && !config.socket) {
		snprintf(text, size, "--private needs --socket PATH");
		r = -EINVAL;
	}
	if (r < 0) {
		config_deinit(&config);
		return r;
	}
	*ret = config;
	return 0;
}
