/* SPDX-License-Identifier: Apache-2.0 */
/* Roots: the set, who may use which, the judgement. */
#include "control/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/refcount.h"
#include "control/beneath.h"

struct root {
	int fd; /* O_PATH */
	struct place_id id;
	struct config_root rule;
};

/* Immutable once made. */
struct root_set {
	struct refcount refs;
	unsigned int generation;
	size_t count;
	struct root roots[];
};

/* What is known of a uid from its connected peers: the union of their groups. */
struct member {
	struct list link;
	uid_t uid;
	unsigned int peers;
	gid_t *gids;
	size_t gid_count;
};

struct roots {
	/* constant after start */
	bool everything;
	uid_t own_uid;

	/* guarded by lock */
	pthread_mutex_t lock;
	struct root_set *set;
	struct list members;
};

/* ---- the set ---- */

static void set_unref(struct root_set *set)
{
	if (!set || !refcount_drop(&set->refs))
		return;
	for (size_t i = 0; i < set->count; i++) {
		fd_close(set->roots[i].fd);
		free(set->roots[i].rule.path);
		free(set->roots[i].rule.uids);
		free(set->roots[i].rule.gids);
	}
	free(set);
}

static struct root_set *set_take(struct roots *roots)
{
	pthread_mutex_lock(&roots->lock);
	struct root_set *set = roots->set;
	refcount_take(&set->refs);
	pthread_mutex_unlock(&roots->lock);
	return set;
}

static void *copy_ids(const void *ids, size_t count, bool *ok)
{
	void *copy = count ? malloc(count * sizeof(uid_t)) : NULL;

	if (count && !copy)
		*ok = false;
	else if (count)
		memcpy(copy, ids, count * sizeof(uid_t));
	return copy;
}

/* What a unit's sandbox may have to do with a path that is not there or not readable. */
static const char *likely_cause(const char *path)
{
	static const char *const homes[] = { "/home", "/root", "/run/user", NULL };
	static const char *const temporary[] = { "/tmp", "/var/tmp", NULL };

	if (!getenv("INVOCATION_ID"))
		return "";
	for (size_t i = 0; homes[i]; i++) {
		if (!strncmp(path, homes[i], strlen(homes[i])))
			return "; the unit's ProtectHome= is the likely cause";
	}
	for (size_t i = 0; temporary[i]; i++) {
		if (!strncmp(path, temporary[i], strlen(temporary[i])))
			return "; the unit's PrivateTmp= is the likely cause";
	}
	return "";
}

static int open_root(struct root *root, const struct config_root *rule, char *text, size_t size)
{
	bool ok = true;

	root->rule.path = strdup(rule->path);
	root->rule.uids = copy_ids(rule->uids, rule->uid_count, &ok);
	root->rule.gids = copy_ids(rule->gids, rule->gid_count, &ok);
	root->rule.uid_count = rule->uid_count;
	root->rule.gid_count = rule->gid_count;
	root->fd = -1;
	if (!root->rule.path || !ok) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	root->fd = open(rule->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root->fd < 0 ? -errno : place_id_read(&root->id, root->fd);
	if (r == 0 && faccessat(root->fd, ".", X_OK, AT_EACCESS) < 0)
		r = -errno;
	if (r < 0)
		snprintf(text, size, "root %s: %s%s", rule->path, strerror(-r),
			r == -EACCES || r == -ENOENT ? likely_cause(rule->path) : "");
	return r;
}

static int set_new(struct root_set **ret, const struct config *config, char *text, size_t size)
{
	static unsigned int generation; /* control thread only */

	if (config->root_count > ROOTS_MAX) {
		snprintf(text, size, "%zu roots are given, at most %d are possible",
			config->root_count, ROOTS_MAX);
		return -EINVAL;
	}
	struct root_set *set = calloc(1, sizeof(*set) + config->root_count * sizeof(set->roots[0]));
	if (!set) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	refcount_init(&set->refs);
	set->generation = ++generation;
	for (size_t i = 0; i < config->root_count; i++) {
		set->count = i + 1;
		int r = open_root(&set->roots[i], &config->roots[i], text, size);
		if (r < 0) {
			set_unref(set);
			return r;
		}
	}
	*ret = set;
	return 0;
}

int roots_new(
	struct roots **ret, const struct config *config, bool everything, char *text, size_t size)
{
	struct roots *roots = calloc(1, sizeof(*roots));
	int r;

	if (!roots) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	pthread_mutex_init(&roots->lock, NULL);
	list_init(&roots->members);
	roots->everything = everything;
	roots->own_uid = geteuid();
	r = set_new(&roots->set, config, text, size);
	if (r < 0) {
		roots_free(roots);
		return r;
	}
	*ret = roots;
	return 0;
}

int roots_reload(struct roots *roots, const struct config *config, char *text, size_t size)
{
	struct root_set *set, *old;
	int r = set_new(&set, config, text, size);

	if (r < 0)
		return r;
	pthread_mutex_lock(&roots->lock);
	old = roots->set;
	roots->set = set;
	pthread_mutex_unlock(&roots->lock);
	set_unref(old);
	return 0;
}

static void member_free(struct member *m)
{
	list_remove(&m->link);
	free(m->gids);
	free(m);
}

void roots_free(struct roots *roots)
{
	if (!roots)
		return;
	LIST_FOR_EACH_SAFE (l, tmp, &roots->members)
		member_free(CONTAINER_OF(l, struct member, link));
	set_unref(roots->set);
	pthread_mutex_destroy(&roots->lock);
	free(roots);
}

/* ---- who ---- */

static struct member *find_member(struct roots *roots, uid_t uid)
{
	LIST_FOR_EACH (l, &roots->members) {
		struct member *m = CONTAINER_OF(l, struct member, link);

		if (m->uid == uid)
			return m;
	}
	return NULL;
}

static bool has_gid(const struct member *m, gid_t gid)
{
	for (size_t i = 0; m && i < m->gid_count; i++) {
		if (m->gids[i] == gid)
			return true;
	}
	return false;
}

static int add_gid(struct member *m, gid_t gid)
{
	if (has_gid(m, gid))
		return 0;
	gid_t *gids = realloc(m->gids, (m->gid_count + 1) * sizeof(*gids));
	if (!gids)
		return -ENOMEM;
	gids[m->gid_count++] = gid;
	m->gids = gids;
	return 0;
}

static struct member *enter_member(struct roots *roots, uid_t uid)
{
	struct member *m = find_member(roots, uid);

	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return NULL;
		m->uid = uid;
		list_append(&roots->members, &m->link);
	}
	m->peers++;
	return m;
}

int roots_enter(struct roots *roots, const struct peer *peer)
{
	pthread_mutex_lock(&roots->lock);
	struct member *m = enter_member(roots, peer->uid);
	int r = m ? add_gid(m, peer->gid) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < peer->group_count; i++)
		r = add_gid(m, peer->groups[i]);
	pthread_mutex_unlock(&roots->lock);
	if (r < 0 && m)
		roots_leave(roots, peer->uid);
	return r;
}

void roots_leave(struct roots *roots, uid_t uid)
{
	pthread_mutex_lock(&roots->lock);
	struct member *m = find_member(roots, uid);
	if (m && --m->peers == 0)
		member_free(m);
	pthread_mutex_unlock(&roots->lock);
}

static bool rule_names(const struct config_root *rule, uid_t uid)
{
	for (size_t i = 0; i < rule->uid_count; i++) {
		if (rule->uids[i] == uid)
			return true;
	}
	return false;
}

/* root could read everything without asking the daemon. */
static bool is_master(const struct roots *roots, uid_t uid)
{
	return uid == roots->own_uid || uid == 0;
}

/* The mask over set; called with the lock held. */
static uint64_t mask_over(
	const struct roots *roots, const struct root_set *set, uid_t uid, const struct member *m)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct config_root *rule = &set->roots[i].rule;
		bool may = is_master(roots, uid) || rule_names(rule, uid);

		for (size_t k = 0; !may && k < rule->gid_count; k++)
			may = has_gid(m, rule->gids[k]);
		if (may)
			mask |= 1ull << i;
	}
	return mask;
}

/* A consistent pair of set and mask. */
static struct root_set *set_take_for(struct roots *roots, uid_t uid, uint64_t *ret_mask)
{
	pthread_mutex_lock(&roots->lock);
	struct root_set *set = roots->set;
	refcount_take(&set->refs);
	*ret_mask = mask_over(roots, set, uid, find_member(roots, uid));
	pthread_mutex_unlock(&roots->lock);
	return set;
}

uint64_t roots_mask(struct roots *roots, uid_t uid)
{
	uint64_t mask;

	set_unref(set_take_for(roots, uid, &mask));
	return mask;
}

unsigned int roots_generation(struct roots *roots)
{
	struct root_set *set = set_take(roots);
	unsigned int generation = set->generation;

	set_unref(set);
	return generation;
}

bool roots_admit(struct roots *roots, const struct peer *peer)
{
	bool admitted = is_master(roots, peer->uid);
	struct root_set *set = set_take(roots);

	for (size_t i = 0; !admitted && !roots->everything && i < set->count; i++) {
		const struct config_root *rule = &set->roots[i].rule;

		admitted = rule_names(rule, peer->uid);
		for (size_t k = 0; !admitted && k < rule->gid_count; k++)
			admitted = peer_in_group(peer, rule->gids[k]);
	}
	set_unref(set);
	return admitted;
}

/* ---- the judgement ---- */

static bool beneath_any(const struct root_set *set, uint64_t mask, int fd, bool directory)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct root *root = &set->roots[i];

		if ((mask >> i & 1) && ((directory && beneath_by_parents(fd, &root->id)) ||
					       beneath_by_name(fd, root->fd)))
			return true;
	}
	return false;
}

/* The path's text lies in a root, and yet the descriptor does not: who looks elsewhere? */
static const char *explain(const struct root_set *set, uint64_t mask, const char *path)
{
	for (size_t i = 0; i < set->count; i++) {
		const char *root = set->roots[i].rule.path;
		size_t length = strlen(root);

		if ((mask >> i & 1) && !strncmp(path, root, length) &&
			(path[length] == '/' || path[length] == '\0'))
			return *likely_cause(path)
				       ? likely_cause(path)
				       : "; it has the name of a root but is another directory "
					 "there for "
					 "the daemon (a container, a mount of your own, or a link)";
	}
	return "";
}

static void refuse(const struct root_set *set, uint64_t mask, uid_t uid, const char *path,
	char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size,
		"%s is not beneath a root that the daemon may read for uid %u%s; roots:", path,
		(unsigned int)uid, explain(set, mask, path));

	for (size_t i = 0; i < set->count && used < size; i++) {
		if (mask >> i & 1)
			used += (size_t)snprintf(
				text + used, size - used, " %s", set->roots[i].rule.path);
	}
	if (mask == 0 && used < size)
		snprintf(text + used, size - used, " none (allow= of feeder.conf(5))");
}

int roots_judge(struct roots *roots, uid_t uid, int fd, int dirfd, const char *path, char *text,
	size_t size)
{
	struct stat st;
	uint64_t mask;

	if (fstat(fd, &st) < 0) {
		int error = errno;

		snprintf(text, size, "%s: %s", path, strerror(error));
		return -error;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(text, size, "%s is neither a directory nor a list file, but a %s", path,
			S_ISFIFO(st.st_mode)   ? "FIFO"
			: S_ISSOCK(st.st_mode) ? "socket"
			: S_ISLNK(st.st_mode)  ? "symbolic link"
					       : "device");
		return -EINVAL;
	}
	if (S_ISREG(st.st_mode) && dirfd < 0) {
		snprintf(text, size, "%s is a file, and came without its directory", path);
		return -EINVAL;
	}
	if (roots->everything)
		return 0;
	struct root_set *set = set_take_for(roots, uid, &mask);
	bool may = S_ISDIR(st.st_mode)
			   ? beneath_any(set, mask, fd, true)
			   : beneath_any(set, mask, dirfd, true) &&
				     (is_entry_of(fd, dirfd) || beneath_any(set, mask, fd, false));
	if (!may)
		refuse(set, mask, uid, path, text, size);
	set_unref(set);
	return may ? 0 : -EACCES;
}

static bool judge_end(struct roots *roots, uid_t uid, int fd, bool directory)
{
	uint64_t mask;

	if (roots->everything)
		return true;
	struct root_set *set = set_take_for(roots, uid, &mask);
	bool may = beneath_any(set, mask, fd, directory);
	set_unref(set);
	return may;
}

int roots_open_outside(struct roots *roots, uid_t uid, int dirfd, const char *path, int flags)
{
	CLEANUP(fd_closep)
	int fd = open_resolved(dirfd, path, O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);
	struct stat st;
	char link[32];

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!judge_end(roots, uid, fd, S_ISDIR(st.st_mode)))
		return -EXDEV;
	if ((flags & O_DIRECTORY) && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	/* Opening a FIFO waits and opening a device acts: the caller sees what it is by fstat. */
	if ((flags & O_PATH) || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return fd_steal(&fd);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	int opened = open(link, (flags & ~(O_NOFOLLOW | O_CREAT)) | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}
