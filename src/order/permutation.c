/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch's order: an array of ids, or a formula, behind one question. */
#include "order/order.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/stop.h"
#include "order/feistel.h"
#include "order/randperm.h"

#define HUGE_PAGE  ((size_t)2 << 20)
#define IDS_A_LOOK 65536 /* ids checked between two looks at stop */

struct permutation {
	/* constant after start */
	int kind;
	uint64_t n;
	size_t memory;
	uint32_t *narrow; /* ids below 2^32, or */
	uint64_t *wide;   /* any id, or neither */
	struct feistel feistel;
};

/* Shuffles walk at random: large arrays ask for huge pages, which spare most of the TLB misses. */
static void *array_new(uint64_t n, size_t width, size_t *ret_size)
{
	size_t size;
	void *array;

	if (__builtin_mul_overflow(n, width, &size) || size > SIZE_MAX - HUGE_PAGE)
		return NULL;
	if (size < 2 * HUGE_PAGE) {
		array = malloc(size);
	} else {
		size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		array = aligned_alloc(HUGE_PAGE, size);
		if (array)
			madvise(array, size, MADV_HUGEPAGE);
	}
	if (array)
		*ret_size = size;
	return array;
}

/* An array for n ids, each below limit. */
static int hold(struct permutation *p, uint64_t limit)
{
	if (limit <= (uint64_t)UINT32_MAX + 1)
		p->narrow = array_new(p->n, sizeof(*p->narrow), &p->memory);
	else
		p->wide = array_new(p->n, sizeof(*p->wide), &p->memory);
	return p->narrow || p->wide ? 0 : -ENOMEM;
}

static int shuffle(struct permutation *p, uint64_t seed, uint64_t epoch, const atomic_bool *stop)
{
	uint32_t low = (uint32_t)(seed + epoch); /* torch's generator cuts it to 32 bits */
	int r = hold(p, p->n);

	if (r < 0)
		return r;
	if (p->wide)
		return randperm_inside_out_wide(p->wide, p->n, low, stop);
	if (randperm_is_inside_out(p->n))
		return randperm_inside_out(p->narrow, p->n, low, stop);
	return randperm_swap(p->narrow, p->n, low, stop);
}

static int copy(
	struct permutation *p, const int64_t *ids, uint64_t dataset_n, const atomic_bool *stop)
{
	int r;

	if (!ids)
		return -EINVAL;
	r = hold(p, dataset_n);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < p->n; i++) {
		int64_t id = ids[i]; /* once: the client may still write to it */

		if (i % IDS_A_LOOK == 0 && stop_asked(stop))
			return -ECANCELED;
		if (id < 0 || (uint64_t)id >= dataset_n)
			return -ERANGE;
		if (p->narrow)
			p->narrow[i] = (uint32_t)id;
		else
			p->wide[i] = (uint64_t)id;
	}
	return 0;
}

int permutation_new(struct permutation **ret, int kind, uint64_t n, uint64_t seed, uint64_t epoch,
	const int64_t *ids, uint64_t dataset_n, const atomic_bool *stop)
{
	struct permutation *p;
	int r = 0;

	if (n == 0)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->kind = kind;
	p->n = n;
	switch (kind) {
	case ORDER_TORCH:
		r = shuffle(p, seed, epoch, stop);
		break;
	case ORDER_FEISTEL:
		feistel_init(&p->feistel, n, seed, epoch);
		break;
	case ORDER_SEQUENTIAL:
		break;
	case ORDER_BLOCK:
		r = -ENOSYS;
		break;
	case ORDER_DATALOADER:
	case ORDER_IDS:
		r = copy(p, ids, dataset_n, stop);
		break;
	default:
		r = -EINVAL;
		break;
	}
	if (r < 0) {
		permutation_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void permutation_free(struct permutation *p)
{
	if (!p)
		return;
	free(p->narrow);
	free(p->wide);
	free(p);
}

uint64_t permutation_at(const struct permutation *p, uint64_t position)
{
	if (p->narrow)
		return p->narrow[position];
	if (p->wide)
		return p->wide[position];
	return p->kind == ORDER_FEISTEL ? feistel_at(&p->feistel, position) : position;
}

uint64_t permutation_length(const struct permutation *p)
{
	return p->n;
}

size_t permutation_memory(const struct permutation *p)
{
	return p->memory;
}
