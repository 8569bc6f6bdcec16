/* SPDX-License-Identifier: Apache-2.0 */
/* The quarantine list. */
#include "pipeline/cases.h"

#include <stdlib.h>
#include <string.h>

static uint32_t slot_of(const struct cases *cases, uint64_t id)
{
	uint32_t mask = cases->table_size - 1;
	uint32_t i = (uint32_t)((id * 0x9E3779B97F4A7C15ull) >> 32) & mask;

	while (cases->table[i] && cases->rows[cases->table[i] - 1].id != id)
		i = (i + 1) & mask;
	return i;
}

static bool grow(struct cases *cases)
{
	uint32_t capacity = cases->capacity ? cases->capacity * 2 : 64;
	struct bad_case *rows;
	uint32_t *table;

	if (capacity > CASES_MAX)
		return false;
	rows = realloc(cases->rows, capacity * sizeof(*rows));
	if (!rows)
		return false;
	cases->rows = rows;
	table = calloc(capacity * 2, sizeof(*table));
	if (!table)
		return false;
	free(cases->table);
	cases->table = table;
	cases->table_size = capacity * 2;
	cases->capacity = capacity;
	for (uint32_t i = 0; i < cases->count; i++)
		table[slot_of(cases, rows[i].id)] = i + 1;
	return true;
}

void cases_add(struct cases *cases, uint64_t id, uint64_t epoch, const struct fault *fault)
{
	uint32_t slot = 0;

	if (cases->table_size) {
		slot = slot_of(cases, id);
		if (cases->table[slot]) {
			cases->rows[cases->table[slot] - 1].count++;
			return;
		}
	}
	if (cases->count == cases->capacity) {
		if (!grow(cases)) {
			cases->dropped++;
			return;
		}
		slot = slot_of(cases, id);
	}
	cases->rows[cases->count] =
		(struct bad_case){ .id = id, .epoch = epoch, .count = 1, .fault = *fault };
	cases->table[slot] = ++cases->count;
}

void cases_deinit(struct cases *cases)
{
	free(cases->rows);
	free(cases->table);
	memset(cases, 0, sizeof(*cases));
}
