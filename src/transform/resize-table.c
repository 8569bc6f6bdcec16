/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the SIMD variants read besides pixels in the horizontal pass. Built anew for nearly every
 * crop, so it is itself done with SIMD.
 */
#include "transform/resize-variants.h"

#include <errno.h>
#include <immintrin.h>

/*
 * Per output pixel, in output order, with 8 entries before and after: where its taps begin (bytes
 * in the source row), how many they are, and their coefficients as dwords: per segment the words of
 * two taps (high, low), or the four taps' bytes of one digit each.
 */
struct columns {
	int32_t *byte;
	int32_t *length;
	int32_t *high; /* + segment * stride */
	int32_t *low;
	int32_t *digit; /* + place of the digit * stride */
	size_t stride;
	uint32_t planes; /* of coefficients, from `high` or `digit` on */
};

/* Dwords of a group: the channels they hold, as offsets of the words' bytes. */
#define NONE      ((char)0x80)
#define LANE(c)   (c), NONE, (c) + 3, NONE
#define LANE_NONE NONE, NONE, NONE, NONE
#define LANE4(c)  (c), (c) + 3, (c) + 6, (c) + 9

/* The first and last byte of a pair of taps that a group needs, and its dwords' arrangement. */
struct window {
	int32_t first;
	int32_t last;
};

static inline __m128i reversed(__m128i v)
{
	return _mm_shuffle_epi32(v, _MM_SHUFFLE(0, 1, 2, 3));
}

static inline void put(int32_t *array, int64_t at, __m128i v)
{
	_mm_storeu_si128((__m128i *)(array + at), v);
}

/* Four pixels of the axis into the columns; `at` is where they belong in output order. */
static void fill_places(
	const struct columns *c, const struct resize_job *job, uint32_t x, int64_t at)
{
	__m128i start = _mm_loadu_si128((const __m128i *)(job->x->start + x));
	__m128i length = _mm_loadu_si128((const __m128i *)(job->x->length + x));

	start = _mm_sub_epi32(start, _mm_set1_epi32((int)job->src_x));
	start = _mm_add_epi32(start, _mm_add_epi32(start, start));
	put(c->byte, at, job->flip ? reversed(start) : start);
	put(c->length, at, job->flip ? reversed(length) : length);
}

static inline __m128i taps_of(const struct resize_axis *a, uint32_t tap, uint32_t x)
{
	if (tap >= a->taps)
		return _mm_setzero_si128();
	return _mm_loadu_si128((const __m128i *)(a->k + (size_t)tap * a->stride + x));
}

static void fill_words(
	const struct columns *c, const struct resize_job *job, uint32_t x, int64_t at)
{
	const __m128i lower = _mm_set1_epi32(2047);

	for (uint32_t s = 0; s < c->planes / 2; s++) {
		__m128i even = taps_of(job->x, 2 * s, x), odd = taps_of(job->x, 2 * s + 1, x);
		__m128i high = _mm_blend_epi16(_mm_srai_epi32(even, 11),
			_mm_slli_epi32(_mm_srai_epi32(odd, 11), 16), 0xaa);
		__m128i low = _mm_or_si128(
			_mm_and_si128(even, lower), _mm_slli_epi32(_mm_and_si128(odd, lower), 16));

		put(c->high + s * c->stride, at, job->flip ? reversed(high) : high);
		put(c->low + s * c->stride, at, job->flip ? reversed(low) : low);
	}
}

static void fill_digits(
	const struct columns *c, const struct resize_job *job, uint32_t x, int64_t at)
{
	__m128i all[3] = { _mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128() };

	for (int tap = 3; tap >= 0; tap--) {
		__m128i k = taps_of(job->x, (uint32_t)tap, x);

		for (int place = 0; place < 3; place++) {
			__m128i digit = _mm_srai_epi32(_mm_slli_epi32(k, 24), 24);

			all[place] = _mm_or_si128(_mm_slli_epi32(all[place], 8),
				_mm_and_si128(digit, _mm_set1_epi32(255)));
			k = _mm_srai_epi32(_mm_sub_epi32(k, digit), 8);
		}
	}
	for (int place = 0; place < 3; place++)
		put(c->digit + (size_t)place * c->stride, at,
			job->flip ? reversed(all[place]) : all[place]);
}

/* Entries behind the last pixel: nothing to sum. */
static void end_columns(const struct columns *c, uint32_t count)
{
	int32_t *plane = c->digit ? c->digit : c->high;

	for (uint32_t i = count; i < count + 8; i++) {
		c->byte[i] = c->byte[count - 1];
		c->length[i] = 0;
		for (uint32_t p = 0; p < c->planes; p++)
			plane[p * c->stride + i] = 0;
	}
}

static int make_columns(
	struct tap_table *t, const struct resize_job *job, bool digits, struct columns *ret)
{
	uint32_t count = job->x->shape.count;
	struct columns c = {
		.stride = (size_t)job->x->stride + 16,
		.planes = digits ? 3 : 2 * t->segments,
	};
	int32_t *memory =
		scratch_reserve(&t->columns, (2 + (size_t)c.planes) * c.stride * sizeof(int32_t));

	if (!memory)
		return -ENOMEM;
	c.byte = memory + 8;
	c.length = c.byte + c.stride;
	if (digits)
		c.digit = c.length + c.stride;
	else
		c.high = c.length + c.stride;
	if (!digits)
		c.low = c.high + t->segments * c.stride;
	for (uint32_t x = 0; x < count; x += 4) {
		int64_t at = job->flip ? (int64_t)count - 4 - x : x;

		fill_places(&c, job, x, at);
		if (digits)
			fill_digits(&c, job, x, at);
		else
			fill_words(&c, job, x, at);
	}
	end_columns(&c, count);
	*ret = c;
	return 0;
}

static inline int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static inline int32_t greatest(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

/*
 * The bytes that taps [tap, end) of pixel x need in a group that takes its channels from `low` to
 * `high` and those of the next pixel up to `next` (-1: none of them).
 */
static inline struct window group_window(const struct columns *c, uint32_t x, int32_t tap,
	int32_t end, int32_t low, int32_t high, int32_t next)
{
	struct window w = { .first = INT32_MAX, .last = -1 };
	int32_t n = least(c->length[x], end);

	if (n > tap) {
		w.first = c->byte[x] + 3 * tap + low;
		w.last = c->byte[x] + 3 * (n - 1) + high;
	}
	n = next < 0 ? 0 : least(c->length[x + 1], end);
	if (n > tap) {
		w.first = least(w.first, c->byte[x + 1] + 3 * tap);
		w.last = greatest(w.last, c->byte[x + 1] + 3 * (n - 1) + next);
	}
	return w;
}

static inline __m128i pair_of(const int32_t *p)
{
	return _mm_loadl_epi64((const __m128i *)p);
}

/* Writes a segment; `spread` arranges the two pixels' dwords, `lanes` the channels. */
#define WRITE_SEGMENT(to, c, s, x, relative, lanes, spread)                              \
	do {                                                                             \
		size_t at_ = (s) * (c)->stride + (x);                                    \
		_mm_store_si128((__m128i *)(to)->pick,                                   \
			_mm_add_epi8((lanes), _mm_shuffle_epi32((relative), (spread)))); \
		_mm_store_si128((__m128i *)(to)->high,                                   \
			_mm_shuffle_epi32(pair_of((c)->high + at_), (spread)));          \
		_mm_store_si128((__m128i *)(to)->low,                                    \
			_mm_shuffle_epi32(pair_of((c)->low + at_), (spread)));           \
	} while (0)

/* The two pixels' first bytes relative to the load, in bytes 0 and 2 of a dword each. */
static inline __m128i relative_bytes(int32_t a, int32_t b)
{
	const __m128i both = _mm_setr_epi8(
		0, NONE, 0, NONE, 4, NONE, 4, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE);

	return _mm_shuffle_epi8(_mm_insert_epi32(_mm_cvtsi32_si128(a), b, 1), both);
}

/* Group g's position in its row of pixels: phase 0 to 2 of four bytes, or 3 for a whole pixel. */
static inline void write_segment(struct tap_segment *to, const struct columns *c, uint32_t s,
	uint32_t x, uint32_t phase, int32_t offset)
{
	int32_t tap = 6 * (int32_t)s;
	__m128i r = relative_bytes(c->byte[x] + tap - offset, c->byte[x + 1] + tap - offset);

	switch (phase) {
	case 0:
		WRITE_SEGMENT(to, c, s, x, r, _mm_setr_epi8(LANE(0), LANE(1), LANE(2), LANE(0)),
			_MM_SHUFFLE(1, 0, 0, 0));
		break;
	case 1:
		WRITE_SEGMENT(to, c, s, x, r, _mm_setr_epi8(LANE(1), LANE(2), LANE(0), LANE(1)),
			_MM_SHUFFLE(1, 1, 0, 0));
		break;
	case 2:
		WRITE_SEGMENT(to, c, s, x, r, _mm_setr_epi8(LANE(2), LANE(0), LANE(1), LANE(2)),
			_MM_SHUFFLE(1, 1, 1, 0));
		break;
	default:
		WRITE_SEGMENT(to, c, s, x, r, _mm_setr_epi8(LANE(0), LANE(1), LANE(2), LANE_NONE),
			_MM_SHUFFLE(2, 0, 0, 0));
		break;
	}
}

#define WRITE_DIGITS(to, c, x, relative, lanes, spread)                                           \
	do {                                                                                      \
		_mm_store_si128((__m128i *)(to)->pick,                                            \
			_mm_add_epi8((lanes), _mm_shuffle_epi32((relative), (spread))));          \
		for (size_t p_ = 0; p_ < 3; p_++)                                                 \
			_mm_store_si128((__m128i *)(to)->digit[p_],                               \
				_mm_shuffle_epi32(                                                \
					pair_of((c)->digit + p_ * (c)->stride + (x)), (spread))); \
	} while (0)

static inline void write_digits(
	struct tap_digits *to, const struct columns *c, uint32_t x, uint32_t phase, int32_t offset)
{
	const __m128i fourfold = _mm_setr_epi8(
		0, 0, 0, 0, 4, 4, 4, 4, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE);
	__m128i r = _mm_cvtsi32_si128(c->byte[x] - offset);

	r = _mm_shuffle_epi8(_mm_insert_epi32(r, c->byte[x + 1] - offset, 1), fourfold);
	switch (phase) {
	case 0:
		WRITE_DIGITS(to, c, x, r, _mm_setr_epi8(LANE4(0), LANE4(1), LANE4(2), LANE4(0)),
			_MM_SHUFFLE(1, 0, 0, 0));
		break;
	case 1:
		WRITE_DIGITS(to, c, x, r, _mm_setr_epi8(LANE4(1), LANE4(2), LANE4(0), LANE4(1)),
			_MM_SHUFFLE(1, 1, 0, 0));
		break;
	default:
		WRITE_DIGITS(to, c, x, r, _mm_setr_epi8(LANE4(2), LANE4(0), LANE4(1), LANE4(2)),
			_MM_SHUFFLE(1, 1, 1, 0));
		break;
	}
}

/* All taps of a group from one load; false if some group's are too far apart. */
static bool write_shared(struct tap_table *t, const struct columns *c)
{
	struct tap_segment *to = t->segment;
	uint32_t segments = t->digits ? 0 : t->segments;

	for (uint32_t g = 0, x = 0, phase = 0; g < t->groups; g++) {
		struct window w =
			group_window(c, x, 0, INT32_MAX, (int32_t)phase, 2, (int32_t)phase);

		if (w.last - w.first > 15)
			return false;
		t->offset[g] = (uint32_t)w.first;
		for (uint32_t s = 0; s < segments; s++)
			write_segment(to++, c, s, x, phase, w.first);
		if (t->digits)
			write_digits(&t->digits[g], c, x, phase, w.first);
		x++;
		if (++phase == 3) {
			phase = 0;
			x++;
		}
	}
	return true;
}

/* A load for each segment; false if, with four bytes a group, two pixels are too far apart. */
static bool write_separate(struct tap_table *t, const struct columns *c)
{
	struct tap_segment *to = t->segment;
	uint32_t *offset = t->offset;
	bool whole = t->step == 3;

	for (uint32_t g = 0, x = 0, phase = whole ? 3 : 0; g < t->groups; g++) {
		int32_t low = whole ? 0 : (int32_t)phase, next = whole ? -1 : (int32_t)phase;

		for (uint32_t s = 0; s < t->segments; s++) {
			int32_t tap = 2 * (int32_t)s;
			struct window w = group_window(c, x, tap, tap + 2, low, 2, next);

			if (w.last < 0) /* all coefficients 0: any bytes will do */
				w.first = w.last = s ? (int32_t)offset[-1] : c->byte[x];
			if (w.last - w.first > 15)
				return false;
			*offset++ = (uint32_t)w.first;
			write_segment(to++, c, s, x, phase, w.first);
		}
		x++;
		if (!whole && ++phase == 3) {
			phase = 0;
			x++;
		}
	}
	return true;
}

static int table_reserve(struct tap_table *t, uint32_t count, bool digits)
{
	size_t entries, bytes;
	char *memory;

	t->groups = t->step == 3 ? count : (3 * count + 3) / 4;
	entries = (size_t)t->groups * t->segments;
	bytes = digits ? t->groups * sizeof(struct tap_digits)
		       : entries * sizeof(struct tap_segment);
	memory = scratch_reserve(&t->memory, bytes + entries * sizeof(uint32_t));
	if (!memory)
		return -ENOMEM;
	t->segment = digits ? NULL : (struct tap_segment *)memory;
	t->digits = digits ? (struct tap_digits *)memory : NULL;
	t->offset = (uint32_t *)(memory + bytes);
	return 0;
}

/* 1: with these tables it cannot be done; -ENOMEM. */
static int make_table(struct tap_table *t, const struct resize_job *job, bool digits)
{
	uint32_t count = job->x->shape.count;
	struct columns c;
	int rc = make_columns(t, job, digits, &c);

	t->step = 4;
	t->shared = t->segments <= 2;
	if (rc == 0)
		rc = table_reserve(t, count, digits);
	if (rc < 0)
		return rc;
	if (t->shared && write_shared(t, &c))
		return 0;
	if (digits)
		return 1;
	t->shared = false;
	if (write_separate(t, &c))
		return 0;
	t->step = 3;
	rc = table_reserve(t, count, false);
	if (rc < 0)
		return rc;
	return write_separate(t, &c) ? 0 : 1;
}

int tap_table_prepare(struct tap_table *t, const struct resize_job *job, bool digits)
{
	int rc = 1;

	if (t->generation == job->x->generation && t->flip == job->flip && t->src_x == job->src_x)
		return 0;
	t->generation = 0;
	t->segments = (job->x->taps + 1) / 2;
	if (digits && job->x->taps <= 4)
		rc = make_table(t, job, true);
	if (rc > 0)
		rc = make_table(t, job, false);
	if (rc < 0)
		return rc;
	t->generation = job->x->generation;
	t->flip = job->flip;
	t->src_x = job->src_x;
	return 0;
}
