/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder-stat: what the daemons of this machine do.
 *
 *	options.c   the command line
 *	sockets.c   where daemons listen
 *	collect.c   a round: snapshots of all of them
 *	snapshot.c  a statistics segment, checked
 *	delta.c     what happened between two snapshots
 *	why.c       verdicts
 *	top.c json.c metrics.c report.c  printers
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect.h"
#include "options.h"
#include "text.h"
#include "why.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	/* no SA_RESTART: sleeps and waits end at once */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* whoever reads may go away: writing then fails, and that ends the program quietly */
	signal(SIGPIPE, SIG_IGN);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(ns / NS_PER_SEC),
		.tv_nsec = (long)(ns % NS_PER_SEC),
	};

	/* a signal that is not for us (a terminal's change of size) goes by */
	while (!interrupted && nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* Columns and rows of the terminal on stdout; false where it is none. */
static bool terminal(unsigned int *ret_columns, unsigned int *ret_rows)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO))
		return false;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row > 1 ? size.ws_row - 1u : 1;
	return true;
}

static void print_top(const struct views *views, bool refreshing)
{
	unsigned int columns = 0, rows = 0;

	if (terminal(&columns, &rows) && refreshing)
		fputs("\033[H", stdout);
	top_print(stdout, views, columns, refreshing ? rows : 0);
	if (refreshing)
		fputs("\033[J", stdout);
}

/* What stdout cannot say: daemons that are there and do not answer. */
static void warn_problems(const struct options *o, const struct views *views)
{
	unsigned int lanes = 0;

	if (o->command == COMMAND_HEALTH || o->command == COMMAND_TOP)
		return;
	for (unsigned int i = 0; i < views->count; i++) {
		if (!view_ok(&views->rows[i]))
			fprintf(stderr, "feeder-stat: %s\n", views->rows[i].problem);
		lanes += views->rows[i].now.header.lane_count;
	}
	if (lanes == 0 && (o->command == COMMAND_WHY || o->command == COMMAND_DIGEST))
		fprintf(stderr, "feeder-stat: no lane is open\n");
}

static bool any_ok(const struct views *views)
{
	for (unsigned int i = 0; i < views->count; i++) {
		if (view_ok(&views->rows[i]))
			return true;
	}
	return false;
}

/* The exit status so far. */
static int print(const struct options *o, const struct views *views, bool refreshing)
{
	warn_problems(o, views);
	switch (o->command) {
	case COMMAND_TOP:
		print_top(views, refreshing);
		break;
	case COMMAND_JSON:
		json_print(stdout, views);
		break;
	case COMMAND_WHY:
		why_print(stdout, views, o->json);
		break;
	case COMMAND_ERRORS:
		errors_print(stdout, views, o->json);
		break;
	case COMMAND_METRICS:
		if (any_ok(views))
			metrics_print(stdout, views);
		break;
	case COMMAND_HEALTH:
		return health_print(stdout, views, feeder_version()) ? EXIT_UNWELL : EXIT_DONE;
	case COMMAND_DIGEST:
		digest_print(stdout, views);
		break;
	}
	return any_ok(views) ? EXIT_DONE : EXIT_NODAEMON;
}

/* False when nobody reads any more, or nothing can be written (said). */
static bool flush(int *status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (errno != EPIPE) {
		fprintf(stderr, "feeder-stat: cannot write: %s\n", strerror(errno));
		*status = EXIT_UNWELL;
	}
	return false;
}

/* Looks, into *views, whose older snapshots become those to compare with. */
static int look(const struct options *o, struct views *views, bool first)
{
	struct views next = { .rows = NULL };
	char text[1024], clean[TEXT_MAX(1024)];
	int n = collect(&next, o->socket, views, text, sizeof(text));

	views_free(views);
	*views = next;
	if (n > 0 || interrupted || (n == 0 && !first))
		return EXIT_DONE;
	if (n < 0)
		fprintf(stderr, "feeder-stat: %s\n", text_clean(clean, sizeof(clean), text));
	else
		fprintf(stderr, "feeder-stat: no daemon of this user is running (looked at "
				"FEEDER_SOCKET, /run/feeder/feeder.sock and the private ones)\n");
	return EXIT_NODAEMON;
}

static int run(const struct options *o)
{
	bool compares = o->command == COMMAND_TOP || (o->command == COMMAND_WHY && !o->once);
	bool refreshing = o->command == COMMAND_TOP && !o->once && isatty(STDOUT_FILENO);
	uint64_t rounds = o->count ? o->count : refreshing ? UINT64_MAX : 1;
	struct views views = { .rows = NULL };
	int status = EXIT_DONE;

	if (compares)
		status = look(o, &views, true);
	if (refreshing && status == EXIT_DONE)
		fputs("\033[2J", stdout);
	for (uint64_t i = 0; i < rounds && status != EXIT_NODAEMON && !interrupted; i++) {
		if (compares || i > 0)
			sleep_ns(o->interval_ns);
		if (interrupted)
			break;
		status = look(o, &views, i == 0 && !compares);
		if (status == EXIT_DONE && !interrupted)
			status = print(o, &views, refreshing);
		if (!flush(&status))
			break;
	}
	views_free(&views);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	int status = options_parse(&options, argc, argv);

	if (status < 0) {
		catch_signals();
		status = run(&options);
	} else {
		flush(&status);
	}
	return status;
}
