/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a manual page's source (scdoc) and puts, for the line @COUNTERS@, the list of counters
 * from their declarations.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/stats.h"

/* scdoc's own characters are meant literally. */
static void put(const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\#~", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void put_counters(
	const char *title, const struct stats_counter *counters, unsigned int count)
{
	printf("## %s\n\n", title);
	for (unsigned int i = 0; i < count; i++) {
		const struct stats_counter *c = &counters[i];

		putchar('*');
		put(c->name);
		printf("* (%s, %s): ", strcmp(c->unit, "seconds_ns") ? c->unit : "ns",
			c->kind == STATS_COUNTER ? "counter" : "gauge");
		put(c->line);
		printf("\n\t");
		put(c->paragraph);
		printf("\n\n");
	}
}

int main(int argc, char **argv)
{
	char line[4096];
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!f) {
		fprintf(stderr, "usage: stat-counters PAGE.scd (%s)\n", strerror(errno));
		return 2;
	}
	while (fgets(line, sizeof(line), f)) {
		if (strcmp(line, "@COUNTERS@\n")) {
			fputs(line, stdout);
			continue;
		}
		put_counters("Of the daemon", stats_daemon_counters, STATS_DAEMON_COUNT);
		put_counters("Of a lane", stats_lane_counters, STATS_LANE_COUNT);
	}
	fclose(f);
	return fflush(stdout) == 0 ? 0 : 1;
}
