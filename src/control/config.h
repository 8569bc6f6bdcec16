/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings: built-in defaults, then the file, then flags. Every key stands in one
 * table that the file, --set and the documentation share; a key, section or value that is not
 * known is refused with file and line, since a typing error must not silently mean a default.
 */
#ifndef CONTROL_CONFIG_H
#define CONTROL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFIG_FILE    "/etc/feeder/feeder.conf"
#define CONFIG_SOCKET  "/run/feeder/feeder.sock"
#define CONFIG_TEXT    1024 /* enough for every sentence */
#define CONFIG_FOREVER 0    /* of idle_exit */

/* Numbers are those of enum reader_backend. */
enum config_reader { CONFIG_READER_AUTO, CONFIG_READER_URING, CONFIG_READER_PREAD };

/* Per uid. */
struct config_limits {
	uint64_t ring_bytes; /* 0: half of the memory that the daemon may use */
	uint64_t lanes;
	uint64_t sessions;
	uint64_t workers_share; /* percent of the workers' time while others wait */
};

/* A directory that may be read, and who besides the daemon's own uid may have it read. */
struct config_root {
	char *path;
	uid_t *uids;
	size_t uid_count;
	gid_t *gids;
	size_t gid_count;
};

struct config {
	char *socket;       /* NULL: CONFIG_SOCKET */
	char *cache_dir;    /* NULL: $CACHE_DIRECTORY, else $XDG_CACHE_HOME/feeder */
	uint64_t workers;   /* 0: as many as CPUs allowed, less one an attached rank */
	uint64_t readahead; /* bytes */
	uint64_t slots;
	uint64_t reader;       /* enum config_reader */
	uint64_t entropy;      /* 0: libjpeg */
	uint64_t checkpoints;  /* 0: off */
	uint64_t idle_exit_ns; /* without a session; CONFIG_FOREVER: never */
	uint64_t read_deadline_ns;
	uint64_t max_pixels;     /* 0: the decoder's default */
	uint64_t max_scans;      /* 0: likewise */
	uint64_t decode_memory;  /* bytes; 0: likewise */
	uint64_t decode_time_ns; /* 0: likewise */
	struct config_limits limits;
	struct config_root *roots;
	size_t root_count;
};

/* The defaults. */
void config_init(struct config *config);
void config_deinit(struct config *config);

/*
 * Reads a file over what config holds. 0, -ENOENT (no such file, sentence too), -EINVAL with
 * "FILE:LINE: sentence", another negative errno.
 */
int config_read(struct config *config, const char *path, char *text, size_t size);
/* One KEY=VALUE of [daemon], or limits.KEY=VALUE. -EINVAL with a sentence. */
int config_set(struct config *config, const char *assignment, char *text, size_t size);
/* A root without an allow list (again: the same one). -ENOMEM. */
int config_add_root(struct config *config, const char *path);

/* Whether any root admits others than the daemon's own uid. */
bool config_admits_others(const struct config *config);

/* Calls row for every key: for the manual page's test and `--help`. */
void config_list(void (*row)(void *context, const char *section, const char *key), void *context);

#endif
