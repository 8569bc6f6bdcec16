/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the resize: the coefficients of one axis, and what an instruction set has to provide.
 * Private to src/transform/resize*.c and coefficients*.c.
 */
#ifndef TRANSFORM_RESIZE_VARIANTS_H
#define TRANSFORM_RESIZE_VARIANTS_H

#include "build-config.h"
#include "transform/transform.h"

#define RESIZE_PRECISION 22 /* Pillow's PRECISION_BITS */

/* Memory that only grows, aligned to 64 bytes; its contents do not outlive a growth. */
struct scratch {
	void *data;
	size_t size;
};

/* Returns the memory, at least `size` bytes, or NULL. */
void *scratch_reserve(struct scratch *s, size_t size);
void scratch_release(struct scratch *s);

struct axis_shape {
	uint32_t in;     /* source pixels of the whole axis */
	uint32_t out;    /* output pixels of the whole axis */
	uint32_t first;  /* first output of the window */
	uint32_t count;  /* outputs in the window */
	uint32_t filter; /* enum transform_filter */
};

/* Pillow's per-axis numbers, all double. */
struct axis_geometry {
	double scale;
	double support;
	double inverse; /* 1 / filter scale */
};

/*
 * The coefficients of a window of one axis. Output x sums length[x] source pixels from start[x]
 * on, tap t with k[t * stride + x]; k is 0 for length[x] <= t < taps. Entries from count up to
 * stride (at least 8 of them) repeat the last start, with length 0 and k 0.
 */
struct resize_axis {
	struct axis_shape shape;
	uint64_t generation; /* changes with every computation; 0: never computed */
	uint32_t taps;       /* the longest length */
	uint32_t stride;     /* a multiple of 8 */
	int32_t *start;
	int32_t *length;
	int32_t *k;
	double *weights; /* 4 per tap, for the computation */
	struct scratch memory;
};

typedef void axis_fill(struct resize_axis *axis, const struct axis_geometry *g);

axis_fill axis_fill_c;
axis_fill axis_fill_avx2;

struct axis_geometry axis_geometry(const struct axis_shape *shape);
/* Computes the axis unless it already holds this shape. -ENOMEM. */
int axis_prepare(struct resize_axis *axis, const struct axis_shape *shape, axis_fill *fill);
void axis_deinit(struct resize_axis *axis);

struct resize_job {
	const struct resize_axis *x;
	const struct resize_axis *y;
	bool flip;
	bool clip; /* sums may leave 0..255: bicubic */
	const uint8_t *src;
	size_t src_stride;
	uint32_t src_x, src_y; /* of src's first pixel */
	uint8_t *dst;
	size_t dst_stride;
};

/*
 * Four dwords of the horizontal pass take two taps each from one load of 16 source bytes: `pick`
 * gathers byte pairs as words, which two multiplications weigh with the upper bits and the lower
 * 11 of their coefficients.
 */
struct tap_segment {
	uint8_t pick[16];
	int16_t high[8];
	int16_t low[8];
};

/*
 * Where the CPU has byte dot products (VNNI) and all taps of a group are within one load of 16
 * bytes, at most four of them: `pick` gathers four taps' bytes into a dword, and the coefficients
 * are digit[0] + 256·digit[1] + 65536·digit[2] with signed bytes.
 */
struct tap_digits {
	uint8_t pick[16];
	int8_t digit[3][16];
};

/*
 * The horizontal pass as a list of groups, in the order of the output row (so a flip costs
 * nothing). A group is `step` output bytes: 4 of two neighbouring pixels, or, where their taps are
 * more than 16 bytes apart, the 3 of one pixel.
 */
struct tap_table {
	uint64_t generation; /* of the axis it was made from */
	bool flip;
	uint32_t src_x;
	uint32_t groups;
	uint32_t step;
	uint32_t segments; /* per group */
	bool shared;       /* both segments of a group read the same 16 bytes */
	uint32_t *offset;  /* in the source row: one per group if shared, else per segment */
	struct tap_segment *segment;
	struct tap_digits *digits; /* one per group, in place of segments; else NULL */
	struct scratch memory;
	struct scratch columns;
};

/*
 * -ENOMEM. Does nothing if the table already fits the job. digits: make it of them where it can be.
 */
int tap_table_prepare(struct tap_table *t, const struct resize_job *job, bool digits);

/*
 * What a multiply-add of words takes per row of the vertical pass: k = high·256 + low, on words
 * (v - 128)·256 and v - 128, so that one instruction gives (v - 128)·k exactly.
 */
struct row_taps {
	uint32_t *pair; /* y->taps per output row: high | low << 16 */
	int32_t *bias;  /* rounding + 128 · the sum of k */
	uint64_t generation;
	struct scratch memory;
};

#define BAND 8 /* source rows that the horizontal pass takes together */

/* BAND rows of source bytes and of ring values; strides in bytes and values. */
struct band {
	const uint8_t *src;
	size_t src_stride;
	int32_t *out;
	size_t out_stride;
};

/* The inner loops of a SIMD variant; resize-bands.c calls them. */
struct band_kernels {
	size_t block; /* values that the vertical pass takes at once */
	bool digits;  /* `horizontal` takes tables of digits too */
	void (*horizontal)(const struct tap_table *t, const struct band *b, bool clip);
	void (*vertical)(const int32_t *const *row, const uint32_t *pair, int taps, int32_t bias,
		size_t width, uint8_t *out);
};

int run_bands(struct resizer *r, const struct resize_job *job, const struct band_kernels *kernels);

struct resizer {
	const struct resize_variant *variant;
	struct resize_axis x;
	struct resize_axis y;
	struct tap_table table;
	struct row_taps rows;
	struct scratch ring; /* rows between the two passes */
	struct scratch last; /* the source rows of a last band that is not full */
};

struct resize_variant {
	const char *name;
	bool (*supported)(void);
	axis_fill *fill;
	const struct band_kernels *kernels; /* of run_bands */
	/* -ENOMEM */
	int (*run)(struct resizer *r, const struct resize_job *job, const struct band_kernels *k);
};

extern const struct resize_variant resize_variant_c;
#if HAVE_X86_SIMD
extern const struct resize_variant resize_variant_avx2;
extern const struct resize_variant resize_variant_avx512;
extern const struct resize_variant resize_variant_vnni;
#endif

#endif
