/* SPDX-License-Identifier: Apache-2.0 */
/* feeder-stat's command line and exit statuses. */
#ifndef STAT_OPTIONS_H
#define STAT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define EXIT_DONE     0
#define EXIT_UNWELL   1 /* health: a daemon is not well; or the output could not be written */
#define EXIT_USAGE    2
#define EXIT_NODAEMON 3

enum command {
	COMMAND_TOP,
	COMMAND_JSON,
	COMMAND_WHY,
	COMMAND_ERRORS,
	COMMAND_METRICS,
	COMMAND_HEALTH,
	COMMAND_DIGEST,
};

struct options {
	enum command command;
	const char *socket; /* NULL: every daemon */
	uint64_t interval_ns;
	uint64_t count; /* rounds; 0: not given */
	bool once;
	bool json; /* why and errors */
};

/* -1 to go on, else the exit status: what is wrong was said, or what was asked printed. */
int options_parse(struct options *ret, int argc, char **argv);

#endif
