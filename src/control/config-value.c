/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of single settings. */
#include "control/config-value.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "control/config.h"

int value_path(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	char **path = field;

	(void)range;
	if (value[0] == '\0') {
		snprintf(text, size, "a path is missing");
		return -EINVAL;
	}
	char *copy = strdup(value);
	if (!copy) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	free(*path);
	*path = copy;
	return 0;
}

/* A decimal number at the start of value; *ret_end where it ends. */
static int parse_number(const char *value, uint64_t *ret, const char **ret_end)
{
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	if (errno)
		return -ERANGE;
	*ret = number;
	*ret_end = end;
	return 0;
}

static int check_range(const struct key_range *range, uint64_t number, char *text, size_t size)
{
	if (number >= range->min && number <= range->max)
		return 0;
	snprintf(text, size, "must be from %" PRIu64 " to %" PRIu64, range->min, range->max);
	return -EINVAL;
}

int value_number(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	uint64_t number;
	const char *end;

	if (parse_number(value, &number, &end) < 0 || *end) {
		snprintf(text, size, "not a whole number");
		return -EINVAL;
	}
	int r = check_range(range, number, text, size);
	if (r == 0)
		*(uint64_t *)field = number;
	return r;
}

int value_number_or_auto(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	if (strcmp(value, "auto") != 0)
		return value_number(field, range, value, text, size);
	*(uint64_t *)field = 0;
	return 0;
}

int value_bytes(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	static const char units[] = "KMGT";
	uint64_t number;
	const char *end;
	unsigned int shift = 0;

	if (parse_number(value, &number, &end) < 0) {
		snprintf(text, size, "not a number of bytes (as 64M)");
		return -EINVAL;
	}
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (*end || (number << shift) >> shift != number) {
		snprintf(text, size, "not a number of bytes (as 64M)");
		return -EINVAL;
	}
	int r = check_range(range, number << shift, text, size);
	if (r == 0)
		*(uint64_t *)field = number << shift;
	return r;
}

int value_seconds(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	uint64_t seconds = 0;
	int r = value_number(&seconds, range, value, text, size);

	if (r == 0)
		*(uint64_t *)field = seconds * NS_PER_SEC;
	return r;
}

int value_choice(
	void *field, const struct key_range *range, const char *value, char *text, size_t size)
{
	size_t used;

	for (const struct value_word *w = range->words; w->word; w++) {
		if (strcmp(w->word, value) != 0)
			continue;
		if (w->refusal) {
			snprintf(text, size, "%s", w->refusal);
			return -EINVAL;
		}
		*(uint64_t *)field = w->value;
		return 0;
	}
	used = (size_t)snprintf(text, size, "must be one of");
	for (const struct value_word *w = range->words; w->word && used < size; w++) {
		if (!w->refusal)
			used += (size_t)snprintf(text + used, size - used, " %s", w->word);
	}
	return -EINVAL;
}

static int add_id(uint32_t **ids, size_t *count, uint32_t id)
{
	uint32_t *grown = realloc(*ids, (*count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[(*count)++] = id;
	*ids = grown;
	return 0;
}

/* A number or a name of the user database; the largest value means nobody there. */
static bool parse_id(const char *word, uint32_t *ret)
{
	const char *end;
	uint64_t number;

	if (parse_number(word, &number, &end) < 0 || *end || number >= UINT32_MAX)
		return false;
	*ret = (uint32_t)number;
	return true;
}

static int add_word(struct config_root *root, const char *word, char *text, size_t size)
{
	bool group = word[0] == '@';
	const char *name = word + group;
	uint32_t id;

	if (!parse_id(name, &id)) {
		struct group *g = group ? getgrnam(name) : NULL;
		struct passwd *u = group ? NULL : getpwnam(name);

		if (!g && !u) {
			snprintf(text, size, "allow: there is no %s \"%s\"",
				group ? "group" : "user", name);
			return -EINVAL;
		}
		id = g ? g->gr_gid : u->pw_uid;
	}
	int r = group ? add_id(&root->gids, &root->gid_count, id)
		      : add_id(&root->uids, &root->uid_count, id);
	if (r < 0)
		snprintf(text, size, "out of memory");
	return r;
}

int value_allow(struct config_root *root, const char *value, char *text, size_t size)
{
	char *copy CLEANUP(freep) = strdup(value);
	char *state;

	if (!copy) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	char *word = strtok_r(copy, ", \t", &state);
	if (!word) {
		snprintf(text, size, "allow: needs users (1000, alice) or groups (@100, @staff)");
		return -EINVAL;
	}
	for (; word; word = strtok_r(NULL, ", \t", &state)) {
		int r = add_word(root, word, text, size);

		if (r < 0)
			return r;
	}
	return 0;
}
