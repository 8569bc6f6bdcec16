/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pillow's antialiased resize: which variant runs, and what it is given.
 *
 * Every variant gives the same bytes. A pass whose size does not change needs no special case:
 * its only coefficient is 2^22 and the rounding is lossless.
 */
#include "transform/resize-variants.h"

#include <errno.h>
#include <stdlib.h>

#define RESIZE_MOST 65535 /* pixels of a side: what a JPEG can have */

static const struct resize_variant *const variants[RESIZE_LEVELS] = {
	[RESIZE_C] = &resize_variant_c,
#if HAVE_X86_SIMD
	[RESIZE_AVX2] = &resize_variant_avx2,
	[RESIZE_AVX512] = &resize_variant_avx512,
	[RESIZE_AVX512_VNNI] = &resize_variant_vnni,
#endif
};

static const char *const names[RESIZE_LEVELS] = {
	[RESIZE_C] = "c",
	[RESIZE_AVX2] = "avx2",
	[RESIZE_AVX512] = "avx512",
	[RESIZE_AVX512_VNNI] = "avx512-vnni",
};

enum resize_level resize_best_level(void)
{
	for (int level = RESIZE_LEVELS - 1; level > RESIZE_C; level--)
		if (variants[level] && variants[level]->supported())
			return (enum resize_level)level;
	return RESIZE_C;
}

const char *resize_level_name(enum resize_level level)
{
	return level < RESIZE_LEVELS ? names[level] : NULL;
}

int resizer_new(struct resizer **ret, enum resize_level level)
{
	struct resizer *r;

	if (level >= RESIZE_LEVELS)
		level = resize_best_level();
	if (!variants[level] || !variants[level]->supported())
		return -ENOTSUP;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->variant = variants[level];
	*ret = r;
	return 0;
}

void resizer_free(struct resizer *r)
{
	if (!r)
		return;
	axis_deinit(&r->x);
	axis_deinit(&r->y);
	scratch_release(&r->table.memory);
	scratch_release(&r->table.columns);
	scratch_release(&r->rows.memory);
	scratch_release(&r->ring);
	scratch_release(&r->last);
	free(r);
}

static bool axis_valid(const struct axis_shape *s)
{
	return s->in && s->in <= RESIZE_MOST && s->out && s->out <= RESIZE_MOST && s->count &&
	       s->first < s->out && s->count <= s->out - s->first;
}

int resizer_run(struct resizer *r, const struct resize_plan *plan, const uint8_t *src,
	size_t src_stride, uint32_t src_x, uint32_t src_y, uint8_t *dst, size_t dst_stride)
{
	struct axis_shape x = { plan->in_w, plan->out_w, plan->wx, plan->ww, plan->filter };
	struct axis_shape y = { plan->in_h, plan->out_h, plan->wy, plan->wh, plan->filter };
	struct resize_job job = {
		.x = &r->x,
		.y = &r->y,
		.flip = plan->flip,
		.clip = plan->filter == FILTER_BICUBIC,
		.src = src,
		.src_stride = src_stride,
		.src_x = src_x,
		.src_y = src_y,
		.dst = dst,
		.dst_stride = dst_stride,
	};
	int rc;

	if (!axis_valid(&x) || !axis_valid(&y))
		return -EINVAL;
	if (plan->filter != FILTER_BILINEAR && plan->filter != FILTER_BICUBIC)
		return -EINVAL;
	rc = axis_prepare(&r->x, &x, r->variant->fill);
	if (rc < 0)
		return rc;
	rc = axis_prepare(&r->y, &y, r->variant->fill);
	if (rc < 0)
		return rc;
	return r->variant->run(r, &job, r->variant->kernels);
}
