/* SPDX-License-Identifier: Apache-2.0 */
/* Names of orders and tails, as they stand in options and messages. */
#include "order/order.h"

#include <string.h>

static const char *const kind_names[] = {
	[ORDER_TORCH] = "torch",
	[ORDER_FEISTEL] = "feistel",
	[ORDER_SEQUENTIAL] = "sequential",
	[ORDER_BLOCK] = "block",
	[ORDER_DATALOADER] = "dataloader",
	[ORDER_IDS] = "ids",
};

static const char *const tail_names[] = {
	[ORDER_PAD] = "pad",
	[ORDER_DROP] = "drop",
	[ORDER_MASK] = "mask",
};

#define COUNT(names) ((int)(sizeof(names) / sizeof((names)[0])))

static int parse(const char *const *names, int count, const char *name)
{
	for (int i = 1; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return 0;
}

const char *order_kind_name(int kind)
{
	return kind > 0 && kind < COUNT(kind_names) ? kind_names[kind] : NULL;
}

int order_kind_parse(const char *name)
{
	return parse(kind_names, COUNT(kind_names), name);
}

const char *order_tail_name(int tail)
{
	return tail > 0 && tail < COUNT(tail_names) ? tail_names[tail] : NULL;
}

int order_tail_parse(const char *name)
{
	return parse(tail_names, COUNT(tail_names), name);
}
