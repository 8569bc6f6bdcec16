/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings. The file is INI by inih, with two of its limits mended here: it cuts section names
 * at 50 bytes and lines at 200, which would turn a long root path into another path. So section
 * lines are taken out of its hands, and a line that does not fit is refused.
 */
#include "control/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "control/config-value.h"

void config_init(struct config *config)
{
	*config = (struct config){
		.readahead = 64ull << 20,
		.slots = 4,
		.read_deadline_ns = 30 * NS_PER_SEC,
		.limits = {
			.lanes = 64,
			.sessions = 256,
			.workers_share = 100,
		},
	};
}

static void root_deinit(struct config_root *root)
{
	free(root->path);
	free(root->uids);
	free(root->gids);
}

void config_deinit(struct config *config)
{
	for (size_t i = 0; i < config->root_count; i++)
		root_deinit(&config->roots[i]);
	free(config->roots);
	free(config->socket);
	free(config->cache_dir);
	*config = (struct config){ 0 };
}

static struct config_root *find_root(struct config *config, const char *path)
{
	for (size_t i = 0; i < config->root_count; i++) {
		if (!strcmp(config->roots[i].path, path))
			return &config->roots[i];
	}
	return NULL;
}

int config_add_root(struct config *config, const char *path)
{
	if (find_root(config, path))
		return 0;
	struct config_root *roots =
		realloc(config->roots, (config->root_count + 1) * sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	config->roots = roots;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	roots[config->root_count++] = (struct config_root){ .path = copy };
	return 0;
}

bool config_admits_others(const struct config *config)
{
	for (size_t i = 0; i < config->root_count; i++) {
		if (config->roots[i].uid_count > 0 || config->roots[i].gid_count > 0)
			return true;
	}
	return false;
}

/* ---- the table ---- */

struct key {
	const char *section;
	const char *name;
	int (*parse)(void *field, const struct key_range *range, const char *value, char *text,
		size_t size);
	size_t offset; /* of the field in struct config */
	struct key_range range;
};

static const struct value_word reader_words[] = {
	{ "auto", CONFIG_READER_AUTO, NULL },
	{ "uring", CONFIG_READER_URING, NULL },
	{ "pread", CONFIG_READER_PREAD, NULL },
	{ NULL, 0, NULL },
};
static const struct value_word entropy_words[] = {
	{ "libjpeg", 0, NULL },
	{ "own", 1, "feeder's own entropy decoder comes with a later version; use libjpeg" },
	{ NULL, 0, NULL },
};
static const struct value_word checkpoint_words[] = {
	{ "off", 0, NULL },
	{ "on", 1, "checkpoints come with a later version; use off" },
	{ NULL, 0, NULL },
};

#define FIELD(name) offsetof(struct config, name)

static const struct key keys[] = {
	{ "daemon", "socket", value_path, FIELD(socket), { 0, 0, NULL } },
	{ "daemon", "cache_dir", value_path, FIELD(cache_dir), { 0, 0, NULL } },
	{ "daemon", "workers", value_number_or_auto, FIELD(workers), { 1, 4096, NULL } },
	{ "daemon", "readahead", value_bytes, FIELD(readahead), { 1 << 20, 1ull << 40, NULL } },
	{ "daemon", "slots", value_number, FIELD(slots), { 2, 1024, NULL } },
	{ "daemon", "reader", value_choice, FIELD(reader), { 0, 0, reader_words } },
	{ "daemon", "entropy", value_choice, FIELD(entropy), { 0, 0, entropy_words } },
	{ "daemon", "checkpoints", value_choice, FIELD(checkpoints), { 0, 0, checkpoint_words } },
	{ "daemon", "idle_exit", value_seconds, FIELD(idle_exit_ns), { 0, 31536000, NULL } },
	{ "daemon", "read_deadline", value_seconds, FIELD(read_deadline_ns), { 1, 86400, NULL } },
	{ "daemon", "max_pixels", value_number, FIELD(max_pixels), { 1, 1ull << 40, NULL } },
	{ "daemon", "max_scans", value_number, FIELD(max_scans), { 1, 1 << 30, NULL } },
	{ "daemon", "decode_memory", value_bytes, FIELD(decode_memory),
		{ 1 << 20, 1ull << 40, NULL } },
	{ "daemon", "decode_time", value_seconds, FIELD(decode_time_ns), { 1, 86400, NULL } },
	{ "limits", "ring_bytes", value_bytes, FIELD(limits.ring_bytes),
		{ 1 << 20, 1ull << 50, NULL } },
	{ "limits", "lanes", value_number, FIELD(limits.lanes), { 1, 1 << 20, NULL } },
	{ "limits", "sessions", value_number, FIELD(limits.sessions), { 1, 1 << 20, NULL } },
	{ "limits", "workers_share", value_number, FIELD(limits.workers_share), { 1, 100, NULL } },
};

void config_list(void (*row)(void *context, const char *section, const char *key), void *context)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		row(context, keys[i].section, keys[i].name);
	row(context, "root", "allow");
}

static int set_key(struct config *config, const char *section, const char *name, const char *value,
	char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char reason[CONFIG_TEXT / 2];

		if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
			continue;
		int r = keys[i].parse((char *)config + keys[i].offset, &keys[i].range, value,
			reason, sizeof(reason));
		if (r < 0)
			snprintf(text, size, "%s = %s: %s", name, value, reason);
		return r;
	}
	snprintf(text, size, "[%s] has no key \"%s\"", section, name);
	return -EINVAL;
}

int config_set(struct config *config, const char *assignment, char *text, size_t size)
{
	const char *equal = strchr(assignment, '=');
	char name[64];
	const char *section = "daemon", *key = name;

	if (!equal || equal == assignment || (size_t)(equal - assignment) >= sizeof(name)) {
		snprintf(text, size, "\"%s\" is not KEY=VALUE", assignment);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equal - assignment), assignment);
	if (!strncmp(name, "limits.", 7)) {
		section = "limits";
		key = name + 7;
	}
	return set_key(config, section, key, equal + 1, text, size);
}

/* ---- the file ---- */

struct parse {
	struct config *config;
	FILE *file;
	unsigned int line;       /* the last one read */
	unsigned int error_line; /* 0: none */
	char *section;           /* as it stands in the file, whatever its length */
	char reason[CONFIG_TEXT];
	int error;
};

/* Keeps the first error. */
static void __attribute__((format(printf, 3, 4)))
refuse(struct parse *p, int error, const char *format, ...)
{
	va_list ap;

	if (p->error_line > 0)
		return;
	p->error_line = p->line;
	p->error = error;
	va_start(ap, format);
	vsnprintf(p->reason, sizeof(p->reason), format, ap);
	va_end(ap);
}

/* "root PATH" → PATH; NULL for another section. */
static const char *root_path(const char *section)
{
	if (strncmp(section, "root", 4) != 0 || !isspace((unsigned char)section[4]))
		return NULL;
	section += 4;
	while (isspace((unsigned char)*section))
		section++;
	return section;
}

/* Takes a "[...]" line: remembers the section, makes the root. */
static void take_section(struct parse *p, char *line)
{
	char *start = strchr(line, '[') + 1;
	char *end = strrchr(start, ']');

	if (!end || (end[1 + strspn(end + 1, " \t\r\n")] != '\0' && !strchr(end + 1, ';'))) {
		refuse(p, -EINVAL, "a section begins with [ and ends with ]");
		return;
	}
	*end = '\0';
	free(p->section);
	p->section = strdup(start);
	if (!p->section) {
		refuse(p, -ENOMEM, "out of memory");
		return;
	}
	const char *path = root_path(start);
	if (path) {
		if (path[0] != '/')
			refuse(p, -EINVAL, "[root %s]: the path must begin with /", path);
		else if (config_add_root(p->config, path) < 0)
			refuse(p, -ENOMEM, "out of memory");
	} else if (strcmp(start, "daemon") != 0 && strcmp(start, "limits") != 0) {
		refuse(p, -EINVAL,
			"unknown section [%s]; there are [daemon], [limits], [root PATH]", start);
	}
}

/* inih's reader: one line, or NULL at the end. */
static char *next_line(char *ret, int size, void *stream)
{
	struct parse *p = stream;
	char *line CLEANUP(freep) = NULL;
	size_t allocated = 0;
	ssize_t length = getline(&line, &allocated, p->file);

	if (length < 0)
		return NULL;
	p->line++;
	if (strlen(line) != (size_t)length)
		refuse(p, -EINVAL, "a NUL byte");
	const char *text = p->line == 1 && !strncmp(line, "\xef\xbb\xbf", 3) ? line + 3 : line;
	if (text[strspn(text, " \t")] == '[') {
		take_section(p, line);
		snprintf(ret, (size_t)size, "[section]\n");
		return ret;
	}
	if (length >= size) {
		refuse(p, -EINVAL, "longer than %d bytes; lists may go on in indented lines",
			size - 2);
		snprintf(ret, (size_t)size, "\n");
		return ret;
	}
	memcpy(ret, line, (size_t)length + 1);
	return ret;
}

static int take_value(void *user, const char *section, const char *name, const char *value)
{
	struct parse *p = user;
	char text[CONFIG_TEXT];
	const char *path;
	int r;

	(void)section; /* inih's may be cut */
	if (!p->section) {
		refuse(p, -EINVAL, "\"%s\" stands before the first section", name);
		return 1;
	}
	path = root_path(p->section);
	if (!path) {
		r = set_key(p->config, p->section, name, value, text, sizeof(text));
	} else if (strcmp(name, "allow") != 0) {
		r = -EINVAL;
		snprintf(text, sizeof(text), "[root %.256s] has no key \"%s\"", path, name);
	} else {
		struct config_root *root = find_root(p->config, path);

		r = root ? value_allow(root, value, text, sizeof(text)) : 0;
	}
	if (r < 0)
		refuse(p, r, "%s", text);
	return 1;
}

int config_read(struct config *config, const char *path, char *text, size_t size)
{
	struct parse p = { .config = config, .file = fopen(path, "re") };

	if (!p.file) {
		int error = errno;

		snprintf(text, size, "%s: %s", path, strerror(error));
		return -error;
	}
	int line = ini_parse_stream(next_line, &p, take_value, &p);
	if (line > 0 && (p.error_line == 0 || (unsigned int)line < p.error_line)) {
		p.error_line = (unsigned int)line;
		p.error = -EINVAL;
		snprintf(p.reason, sizeof(p.reason), "neither [section] nor key = value");
	} else if (line < 0) {
		refuse(&p, -ENOMEM, "out of memory");
	}
	if (ferror(p.file))
		refuse(&p, -EIO, "reading failed");
	fclose(p.file);
	free(p.section);
	if (p.error_line == 0 && p.error == 0)
		return 0;
	snprintf(text, size, "%s:%u: %s", path, p.error_line, p.reason);
	return p.error;
}
