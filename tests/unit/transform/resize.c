/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every variant equals the reference, byte for byte, over random plans: any size, both filters,
 * windows, flips, strides, offsets of the source region; nothing is written outside the window, and
 * nothing that the span does not cover changes the result. That the reference is Pillow's resize is
 * the business of pillow-parity.py.
 */
#include "transform/resize-variants.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 64 /* around every row of dst, and readable behind src */

struct random {
	struct philox_stream words;
};

static uint32_t below(struct random *r, uint32_t n)
{
	return philox_stream_next(&r->words) % n;
}

/* From 1 to most, small ones and 1 often. */
static uint32_t random_size(struct random *r, uint32_t most)
{
	switch (below(r, 6)) {
	case 0:
		return 1;
	case 1:
		return 1 + below(r, 4) % most;
	case 2:
		return 1 + below(r, 40) % most;
	default:
		return 1 + below(r, most);
	}
}

static struct resize_plan random_plan(struct random *r)
{
	struct resize_plan p = { .filter = 1 + below(r, 2), .flip = below(r, 2) };
	uint32_t kind = below(r, 8);

	p.in_w = random_size(r, kind == 0 ? 3000 : 420);
	p.in_h = random_size(r, kind == 1 ? 3000 : 300);
	if (kind < 4) { /* a crop to one size */
		p.out_w = p.out_h = kind == 3 ? 224 : 1 + below(r, 64);
		p.ww = p.out_w;
		p.wh = p.out_h;
		return p;
	}
	p.out_w = kind == 7 ? p.in_w : random_size(r, 300);
	p.out_h = kind == 7 ? p.in_h : random_size(r, 200);
	p.ww = 1 + below(r, p.out_w);
	p.wh = 1 + below(r, p.out_h);
	p.wx = below(r, p.out_w - p.ww + 1);
	p.wy = below(r, p.out_h - p.wh + 1);
	return p;
}

/* The part of the picture that a plan needs, in memory of its own. */
struct region {
	uint32_t x, y, w, h;
	size_t stride;
	uint8_t *data;
};

/* Pixels depend on their place in the picture alone, so regions of one picture agree. */
static uint8_t pixel(uint32_t x, uint32_t y, uint32_t c)
{
	uint32_t v = (x * 3 + c) * 2654435761u ^ (y + 77) * 2246822519u;

	v ^= v >> 15;
	v *= 2654435761u;
	/* A third of the picture is black and white: there bicubic overshoots. */
	return (uint8_t)((x / 16 + y / 16) % 3 ? v >> 24 : v >> 31 ? 255 : 0);
}

static struct region region_new(const struct resize_plan *p, uint32_t more, uint8_t poison)
{
	struct region g;
	size_t bytes;

	resize_span(p->in_w, p->out_w, p->wx, p->ww, p->filter, &g.x, &g.w);
	resize_span(p->in_h, p->out_h, p->wy, p->wh, p->filter, &g.y, &g.h);
	assert_true(g.w > 0 && g.x + g.w <= p->in_w);
	assert_true(g.h > 0 && g.y + g.h <= p->in_h);
	g.stride = (size_t)g.w * 3 + more;
	bytes = (g.h - 1) * g.stride + (size_t)g.w * 3;
	g.data = malloc(bytes + GUARD);
	assert_non_null(g.data);
	memset(g.data, poison, bytes + GUARD);
	for (uint32_t y = 0; y < g.h; y++)
		for (uint32_t x = 0; x < g.w; x++)
			for (uint32_t c = 0; c < 3; c++)
				g.data[y * g.stride + x * 3 + c] = pixel(g.x + x, g.y + y, c);
	return g;
}

/* Runs a plan; the returned window is packed, and the guards around dst were not touched. */
static uint8_t *window(struct resizer *r, const struct resize_plan *p, const struct region *g,
	size_t more, uint8_t guard)
{
	size_t row = (size_t)p->ww * 3, stride = row + more;
	size_t bytes = GUARD + (p->wh - 1) * stride + row + GUARD;
	uint8_t *memory = malloc(bytes), *out = malloc(row * p->wh);

	assert_non_null(memory);
	assert_non_null(out);
	memset(memory, guard, bytes);
	assert_int_equal(
		resizer_run(r, p, g->data, g->stride, g->x, g->y, memory + GUARD, stride), 0);
	for (uint32_t y = 0; y < p->wh; y++) {
		memcpy(out + y * row, memory + GUARD + y * stride, row);
		memset(memory + GUARD + y * stride, guard, row);
	}
	for (size_t i = 0; i < bytes; i++)
		if (memory[i] != guard)
			fail_msg("byte %zu of %zu outside the window was written", i, bytes);
	free(memory);
	return out;
}

static void check_plan(
	struct resizer *const r[RESIZE_LEVELS], const struct resize_plan *p, struct random *random)
{
	struct region clean = region_new(p, 0, 0);
	uint8_t *reference = window(r[RESIZE_C], p, &clean, 0, 0x00);
	size_t bytes = (size_t)p->ww * p->wh * 3;

	for (int level = 0; level < RESIZE_LEVELS; level++) {
		struct region poisoned = region_new(p, below(random, 80), 0xe5);
		uint8_t *out;

		if (r[level]) {
			out = window(r[level], p, &poisoned, below(random, 100), 0xa7);
			if (memcmp(out, reference, bytes) != 0)
				fail_msg("%s differs: %ux%u to %ux%u, window %u,%u %ux%u filter %u "
					 "flip %d",
					resize_level_name((enum resize_level)level), p->in_w,
					p->in_h, p->out_w, p->out_h, p->wx, p->wy, p->ww, p->wh,
					p->filter, p->flip);
			free(out);
		}
		free(poisoned.data);
	}
	free(reference);
	free(clean.data);
}

static void every_level(struct resizer *r[RESIZE_LEVELS])
{
	for (int level = 0; level < RESIZE_LEVELS; level++) {
		int rc = resizer_new(&r[level], (enum resize_level)level);

		if (rc < 0) {
			assert_int_equal(rc, -ENOTSUP);
			r[level] = NULL;
			print_message("%s is not on this CPU\n",
				resize_level_name((enum resize_level)level));
		}
	}
	assert_non_null(r[RESIZE_C]);
	assert_non_null(r[resize_best_level()]);
}

static void free_levels(struct resizer *r[RESIZE_LEVELS])
{
	for (int level = 0; level < RESIZE_LEVELS; level++)
		resizer_free(r[level]);
}

static bool long_run(void)
{
	const char *value = getenv("FEEDER_LONG");

	return value && strcmp(value, "1") == 0;
}

static void variants_equal_the_reference(void **state)
{
	struct resizer *r[RESIZE_LEVELS];
	struct random random;
	int plans = long_run() ? 60000 : 500;

	(void)state;
	every_level(r);
	philox_stream_init(&random.words, 1, 2, 3, 4, OPERATION_RESIZE);
	for (int i = 0; i < plans; i++) {
		struct resize_plan p = random_plan(&random);

		check_plan(r, &p, &random);
	}
	free_levels(r);
}

/* Sizes at which a variant changes its way of working. */
static void variants_equal_at_every_width(void **state)
{
	struct resizer *r[RESIZE_LEVELS];
	struct random random;

	(void)state;
	every_level(r);
	philox_stream_init(&random.words, 1, 2, 4, 4, OPERATION_RESIZE);
	for (uint32_t in = 1; in <= 400; in += long_run() ? 1 : 5) {
		struct resize_plan p = { .in_w = in,
			.in_h = in % 7 + 1,
			.out_w = 64,
			.out_h = 5,
			.ww = 64,
			.wh = 5,
			.filter = 1 + in % 2,
			.flip = in / 2 % 2 };

		check_plan(r, &p, &random);
	}
	for (uint32_t out = 1; out <= 100; out++) {
		struct resize_plan p = { .in_w = 90,
			.in_h = 12,
			.out_w = out,
			.out_h = 7,
			.ww = out,
			.wh = 7,
			.filter = 1 + out % 2,
			.flip = out / 2 % 2 };

		check_plan(r, &p, &random);
	}
	free_levels(r);
}

static void lopsided_pictures(void **state)
{
	static const struct resize_plan plans[] = {
		{ 65535, 1, 224, 224, 0, 0, 224, 224, FILTER_BILINEAR, false },
		{ 1, 65535, 224, 224, 0, 0, 224, 224, FILTER_BICUBIC, true },
		{ 1, 20000, 64, 1, 0, 0, 64, 1, FILTER_BILINEAR, false },
		{ 20000, 1, 1, 64, 0, 0, 1, 64, FILTER_BICUBIC, true },
		{ 1, 1, 224, 224, 0, 0, 224, 224, FILTER_BICUBIC, true },
		{ 2, 3, 9000, 3, 4321, 1, 50, 2, FILTER_BICUBIC, false },
		{ 3, 2, 3, 9000, 0, 8000, 3, 50, FILTER_BILINEAR, true },
		{ 224, 224, 224, 224, 0, 0, 224, 224, FILTER_BICUBIC, false },
		{ 224, 300, 224, 224, 0, 0, 224, 224, FILTER_BILINEAR, true },
		{ 300, 224, 224, 224, 0, 0, 224, 224, FILTER_BILINEAR, false },
	};
	struct resizer *r[RESIZE_LEVELS];
	struct random random;

	(void)state;
	every_level(r);
	philox_stream_init(&random.words, 1, 2, 5, 4, OPERATION_RESIZE);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		check_plan(r, &plans[i], &random);
	free_levels(r);
}

/* The vector form of the coefficients gives the same integers as Pillow's own order in C. */
static void coefficients_equal_in_every_variant(void **state)
{
	struct random random;
	int shapes = long_run() ? 100000 : 1000;

	(void)state;
	philox_stream_init(&random.words, 1, 2, 6, 4, OPERATION_RESIZE);
#if HAVE_X86_SIMD
	if (!resize_variant_avx2.supported())
		shapes = 0;
	for (int i = 0; i < shapes; i++) {
		struct resize_axis a = { 0 }, b = { 0 };
		struct axis_shape s = { .in = random_size(&random, 2000),
			.out = random_size(&random, 500),
			.filter = 1 + below(&random, 2) };

		s.count = 1 + below(&random, s.out);
		s.first = below(&random, s.out - s.count + 1);
		assert_int_equal(axis_prepare(&a, &s, axis_fill_c), 0);
		assert_int_equal(axis_prepare(&b, &s, axis_fill_avx2), 0);
		assert_int_equal(a.taps, b.taps);
		assert_int_equal(a.stride, b.stride);
		assert_memory_equal(a.start, b.start, a.stride * sizeof(*a.start));
		assert_memory_equal(a.length, b.length, a.stride * sizeof(*a.length));
		assert_memory_equal(a.k, b.k, (size_t)a.taps * a.stride * sizeof(*a.k));
		axis_deinit(&a);
		axis_deinit(&b);
	}
#endif
	(void)shapes;
}

/* What is kept from the last run must not leak into the next one that differs in one thing. */
static void a_resizer_is_reusable(void **state)
{
	struct resize_plan p = { 120, 90, 64, 64, 0, 0, 64, 64, FILTER_BILINEAR, false };
	struct resizer *r[RESIZE_LEVELS];
	struct random random;

	(void)state;
	every_level(r);
	philox_stream_init(&random.words, 1, 2, 7, 4, OPERATION_RESIZE);
	for (int i = 0; i < 120; i++) {
		check_plan(r, &p, &random);
		switch (below(&random, 6)) {
		case 0:
			p.flip = !p.flip;
			break;
		case 1:
			p.filter = 3 - p.filter;
			break;
		case 2:
			p.in_w = 60 + below(&random, 90);
			break;
		case 3:
			p.in_h = 60 + below(&random, 90);
			break;
		case 4:
			p.ww = 64 - (p.wx = below(&random, 60));
			break;
		}
	}
	free_levels(r);
}

static void refusals(void **state)
{
	struct resize_plan good = { 4, 4, 4, 4, 0, 0, 4, 4, FILTER_BILINEAR, false }, p;
	uint8_t src[4 * 4 * 3 + GUARD] = { 0 }, dst[4 * 4 * 3];
	struct resizer *r;

	(void)state;
	assert_int_equal(resizer_new(&r, RESIZE_LEVELS), 0);
#define REFUSED(change)                                                                \
	do {                                                                           \
		p = good;                                                              \
		change;                                                                \
		assert_int_equal(resizer_run(r, &p, src, 12, 0, 0, dst, 12), -EINVAL); \
	} while (0)
	REFUSED(p.in_w = 0);
	REFUSED(p.in_h = 0);
	REFUSED(p.out_w = 0);
	REFUSED(p.wh = 0);
	REFUSED(p.wx = 1);
	REFUSED(p.wh = 5);
	REFUSED(p.filter = 0);
	REFUSED(p.filter = 3);
	REFUSED(p.in_w = 65536);
	assert_int_equal(resizer_run(r, &good, src, 12, 0, 0, dst, 12), 0);
	resizer_free(r);
	resizer_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variants_equal_the_reference),
		cmocka_unit_test(variants_equal_at_every_width),
		cmocka_unit_test(lopsided_pictures),
		cmocka_unit_test(coefficients_equal_in_every_variant),
		cmocka_unit_test(a_resizer_is_reusable),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
