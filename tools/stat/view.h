/* SPDX-License-Identifier: Apache-2.0 */
/* One round's look at the daemons, and the printers of it. Printers need no daemon. */
#ifndef STAT_VIEW_H
#define STAT_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "snapshot.h"

#define SOCKET_MAX 108 /* of sockaddr_un */

struct view {
	char socket[SOCKET_MAX];
	char problem[1024]; /* a sentence: it is there, and gave no snapshot; else "" */
	struct snapshot now;
	struct snapshot before; /* of the round before; compared tells whether it is there */
	bool compared;
	unsigned int cpus; /* that the daemon may use; 0: not known */
};

struct views {
	struct view *rows;
	unsigned int count;
};

/* NULL unless there is an earlier snapshot of the same run of the daemon. */
static inline const struct snapshot *view_before(const struct view *v)
{
	return v->compared ? &v->before : NULL;
}

static inline bool view_ok(const struct view *v)
{
	return v->problem[0] == '\0';
}

/* "train:/data/x:0 rank 0", into TEXT_MAX(CONTROL_NAME_MAX) + 16 bytes. */
#define LANE_LABEL_MAX (4 * CONTROL_NAME_MAX + 32)
const char *view_lane_label(char ret[LANE_LABEL_MAX], const struct stats_lane_record *lane);

/* ---- printers ---- */

/* columns and rows of the terminal; 0: as wide and long as it comes. */
void top_print(FILE *out, const struct views *views, unsigned int columns, unsigned int rows);
void why_print(FILE *out, const struct views *views, bool json);
void errors_print(FILE *out, const struct views *views, bool json);
void digest_print(FILE *out, const struct views *views);
void json_print(FILE *out, const struct views *views);
void metrics_print(FILE *out, const struct views *views);
/* The number of daemons that are not well. library: the version of libfeeder. */
unsigned int health_print(FILE *out, const struct views *views, const char *library);

#endif
