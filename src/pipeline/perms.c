/* SPDX-License-Identifier: Apache-2.0 */
/* Permutations shared by lanes, computed in the background. */
#include "pipeline/perms.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/stop.h"
#include "base/thread.h"

struct perm {
	/* constant after start */
	struct perms *owner;
	int kind;
	uint64_t n;
	uint64_t seed;
	uint64_t epoch;

	/* guarded by owner->lock */
	struct list link; /* in owner->all; unlinked for adopted ids */
	unsigned int refs;
	bool wanted; /* waits to be computed */
	int error;
	struct permutation *permutation;
};

struct perms {
	void (*ready)(void *context);
	void *context;
	pthread_t thread;

	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list all;
	bool stopping;

	atomic_bool stop; /* looked at by the computation */
};

static struct perm *next_wanted(struct perms *perms)
{
	LIST_FOR_EACH (node, &perms->all) {
		struct perm *perm = CONTAINER_OF(node, struct perm, link);

		if (perm->wanted)
			return perm;
	}
	return NULL;
}

/* Drops a reference with the lock held. */
static void unref_locked(struct perm *perm)
{
	if (--perm->refs > 0)
		return;
	list_remove(&perm->link);
	permutation_free(perm->permutation);
	free(perm);
}

static void compute(struct perms *perms, struct perm *perm)
{
	struct permutation *permutation = NULL;
	int r;

	perm->wanted = false;
	perm->refs++;
	pthread_mutex_unlock(&perms->lock);
	r = permutation_new(
		&permutation, perm->kind, perm->n, perm->seed, perm->epoch, NULL, 0, &perms->stop);
	pthread_mutex_lock(&perms->lock);
	perm->permutation = permutation;
	perm->error = r;
	unref_locked(perm);
	pthread_mutex_unlock(&perms->lock);
	perms->ready(perms->context);
	pthread_mutex_lock(&perms->lock);
}

static void *perms_main(void *arg)
{
	struct perms *perms = arg;

	pthread_mutex_lock(&perms->lock);
	while (!perms->stopping) {
		struct perm *perm = next_wanted(perms);

		if (perm)
			compute(perms, perm);
		else
			pthread_cond_wait(&perms->work, &perms->lock);
	}
	pthread_mutex_unlock(&perms->lock);
	return NULL;
}

int perms_new(struct perms **ret, void (*ready)(void *context), void *context)
{
	struct perms *perms = calloc(1, sizeof(*perms));
	int r;

	if (!perms)
		return -ENOMEM;
	perms->ready = ready;
	perms->context = context;
	list_init(&perms->all);
	pthread_mutex_init(&perms->lock, NULL);
	pthread_cond_init(&perms->work, NULL);
	r = thread_start(&perms->thread, "feeder-order", perms_main, perms);
	if (r < 0) {
		free(perms);
		return r;
	}
	*ret = perms;
	return 0;
}

void perms_free(struct perms *perms)
{
	if (!perms)
		return;
	stop_ask(&perms->stop);
	pthread_mutex_lock(&perms->lock);
	perms->stopping = true;
	pthread_cond_signal(&perms->work);
	pthread_mutex_unlock(&perms->lock);
	pthread_join(perms->thread, NULL);
	pthread_cond_destroy(&perms->work);
	pthread_mutex_destroy(&perms->lock);
	free(perms);
}

static struct perm *perm_new(
	struct perms *perms, int kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct perm *perm = calloc(1, sizeof(*perm));

	if (!perm)
		return NULL;
	perm->owner = perms;
	perm->kind = kind;
	perm->n = n;
	perm->seed = seed;
	perm->epoch = epoch;
	perm->refs = 1;
	list_init(&perm->link);
	return perm;
}

static struct perm *find(struct perms *perms, int kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
	LIST_FOR_EACH (node, &perms->all) {
		struct perm *perm = CONTAINER_OF(node, struct perm, link);

		if (perm->kind == kind && perm->n == n && perm->seed == seed &&
			perm->epoch == epoch)
			return perm;
	}
	return NULL;
}

struct perm *perms_get(struct perms *perms, int kind, uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct perm *perm;

	pthread_mutex_lock(&perms->lock);
	perm = find(perms, kind, n, seed, epoch);
	if (perm) {
		perm->refs++;
	} else {
		perm = perm_new(perms, kind, n, seed, epoch);
		if (perm) {
			list_append(&perms->all, &perm->link);
			/* what holds nothing is made at once */
			if (kind == ORDER_TORCH)
				perm->wanted = true;
			else
				perm->error = permutation_new(
					&perm->permutation, kind, n, seed, epoch, NULL, 0, NULL);
			pthread_cond_signal(&perms->work);
		}
	}
	pthread_mutex_unlock(&perms->lock);
	return perm;
}

struct perm *perms_adopt(struct perms *perms, int kind, const int64_t *ids, uint64_t count,
	uint64_t dataset_n, uint64_t epoch, int *ret_error)
{
	struct perm *perm = perm_new(perms, kind, count, 0, epoch);

	*ret_error = -ENOMEM;
	if (!perm)
		return NULL;
	*ret_error =
		permutation_new(&perm->permutation, kind, count, 0, epoch, ids, dataset_n, NULL);
	if (*ret_error < 0) {
		free(perm);
		return NULL;
	}
	return perm;
}

void perm_put(struct perm *perm)
{
	if (!perm)
		return;
	struct perms *perms = perm->owner;

	pthread_mutex_lock(&perms->lock);
	unref_locked(perm);
	pthread_mutex_unlock(&perms->lock);
}

const struct permutation *perm_permutation(struct perm *perm, int *ret_error)
{
	const struct permutation *permutation;

	pthread_mutex_lock(&perm->owner->lock);
	permutation = perm->permutation;
	*ret_error = perm->error;
	pthread_mutex_unlock(&perm->owner->lock);
	return permutation;
}

uint64_t perm_epoch(const struct perm *perm)
{
	return perm->epoch;
}
