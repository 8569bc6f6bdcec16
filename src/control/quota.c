/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: one account a uid, there while anything is charged to it. */
#include "control/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"

struct account {
	struct list link;
	uid_t uid;
	uint64_t sessions;
	uint64_t lanes;
	uint64_t bytes;
};

struct quota {
	struct config_limits limits;
	uint64_t available;
	uint64_t bytes; /* of all accounts */
	struct list accounts;
};

int quota_new(struct quota **ret, const struct config_limits *limits, uint64_t available)
{
	struct quota *quota = calloc(1, sizeof(*quota));

	if (!quota)
		return -ENOMEM;
	quota->limits = *limits;
	quota->available = available;
	list_init(&quota->accounts);
	*ret = quota;
	return 0;
}

void quota_free(struct quota *quota)
{
	if (!quota)
		return;
	LIST_FOR_EACH_SAFE (l, tmp, &quota->accounts) {
		list_remove(l);
		free(CONTAINER_OF(l, struct account, link));
	}
	free(quota);
}

void quota_set_limits(struct quota *quota, const struct config_limits *limits)
{
	quota->limits = *limits;
}

uint64_t quota_ring_limit(const struct quota *quota)
{
	return quota->limits.ring_bytes ? quota->limits.ring_bytes : quota->available / 2;
}

uint32_t quota_workers_share(const struct quota *quota)
{
	return (uint32_t)quota->limits.workers_share;
}

static struct account *find_account(struct quota *quota, uid_t uid)
{
	LIST_FOR_EACH (l, &quota->accounts) {
		struct account *account = CONTAINER_OF(l, struct account, link);

		if (account->uid == uid)
			return account;
	}
	return NULL;
}

static struct account *open_account(struct quota *quota, uid_t uid, char *text, size_t size)
{
	struct account *account = find_account(quota, uid);

	if (account)
		return account;
	account = calloc(1, sizeof(*account));
	if (!account) {
		snprintf(text, size, "the daemon is out of memory");
		return NULL;
	}
	account->uid = uid;
	list_append(&quota->accounts, &account->link);
	return account;
}

static void close_if_empty(struct account *account)
{
	if (account->sessions || account->lanes || account->bytes)
		return;
	list_remove(&account->link);
	free(account);
}

static int take_one(struct account *account, uint64_t *held, uint64_t limit, const char *what,
	const char *key, char *text, size_t size)
{
	if (*held < limit) {
		++*held;
		return 0;
	}
	snprintf(text, size,
		"uid %u has %" PRIu64 " %s open, and its limit is %" PRIu64
		" (%s under [limits] of feeder.conf)",
		(unsigned int)account->uid, *held, what, limit, key);
	close_if_empty(account);
	return -EDQUOT;
}

int quota_take_session(struct quota *quota, uid_t uid, char *text, size_t size)
{
	struct account *a = open_account(quota, uid, text, size);

	return a ? take_one(a, &a->sessions, quota->limits.sessions, "sessions", "sessions", text,
			   size)
		 : -ENOMEM;
}

int quota_take_lane(struct quota *quota, uid_t uid, char *text, size_t size)
{
	struct account *a = open_account(quota, uid, text, size);

	return a ? take_one(a, &a->lanes, quota->limits.lanes, "lanes", "lanes", text, size)
		 : -ENOMEM;
}

int quota_take_bytes(struct quota *quota, uid_t uid, uint64_t bytes, char *text, size_t size)
{
	struct account *a = open_account(quota, uid, text, size);
	uint64_t limit = quota_ring_limit(quota);

	if (!a)
		return -ENOMEM;
	if (bytes <= limit && a->bytes <= limit - bytes) {
		a->bytes += bytes;
		quota->bytes += bytes;
		return 0;
	}
	snprintf(text, size,
		"the lane's ring needs %" PRIu64 " bytes; uid %u holds %" PRIu64
		" bytes of rings (closed ones count while a process still maps them), and its "
		"limit "
		"is %" PRIu64 " (ring_bytes under [limits] of feeder.conf); fewer slots, a smaller "
		"batch or image need less",
		bytes, (unsigned int)uid, a->bytes, limit);
	close_if_empty(a);
	return -EDQUOT;
}

void quota_give_session(struct quota *quota, uid_t uid)
{
	struct account *account = find_account(quota, uid);

	account->sessions--;
	close_if_empty(account);
}

void quota_give_lane(struct quota *quota, uid_t uid)
{
	struct account *account = find_account(quota, uid);

	account->lanes--;
	close_if_empty(account);
}

void quota_give_bytes(struct quota *quota, uid_t uid, uint64_t bytes)
{
	struct account *account = find_account(quota, uid);

	account->bytes -= bytes;
	quota->bytes -= bytes;
	close_if_empty(account);
}

uint64_t quota_ring_bytes(const struct quota *quota)
{
	return quota->bytes;
}
