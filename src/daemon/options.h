/* SPDX-License-Identifier: Apache-2.0 */
/* feederd's command line. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct config;

/* Pointers into argv. */
struct options {
	const char *config_file; /* NULL: the default one, if it is there */
	const char *socket;
	const char *workers;
	bool check_config;
	bool private_daemon;
	const char **roots;
	size_t root_count;
	const char **sets;
	size_t set_count;
};

/* 0 go on; else the process ends now with *ret_status. */
int options_parse(struct options *ret, int argc, char **argv, int *ret_status);
void options_deinit(struct options *options);
/*
 * Defaults, file, flags. -EINVAL, … with a sentence. Also what a daemon started so would be
 * refused for: nothing to serve, or nothing to read.
 */
int options_config(const struct options *options, struct config *ret, char *text, size_t size);

#endif
