/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings: text → field, or a reason. Each writes its field on success only. */
#ifndef CONTROL_CONFIG_VALUE_H
#define CONTROL_CONFIG_VALUE_H

#include <stddef.h>
#include <stdint.h>

struct config_root;

/* A word that a choice knows; refusal: known, but not in this version. */
struct value_word {
	const char *word; /* NULL ends the list */
	uint64_t value;
	const char *refusal;
};

struct key_range {
	uint64_t min;
	uint64_t max;
	const struct value_word *words;
};

/* field: char **, replaced. */
int value_path(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);
/* field: uint64_t *, for all that follow. */
int value_number(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);
/* "auto" = 0. */
int value_number_or_auto(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);
/* With K, M, G or T (powers of 1,024) behind the number. */
int value_bytes(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);
/* Seconds, kept as nanoseconds. */
int value_seconds(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);
int value_choice(
	void *field, const struct key_range *range, const char *value, char *text, size_t size);

/* Adds "1000, alice, @staff, @100" to a root's lists. */
int value_allow(struct config_root *root, const char *value, char *text, size_t size);

#endif
