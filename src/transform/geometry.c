/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which box, flipped or not: torchvision's parameter arithmetic.
 *
 * What torch computes in a float32 tensor is computed in float here (uniform_, log, exp), and what
 * Python computes after .item() in double (areas, square roots, rounding half to even). The words
 * of a Philox stream stand where torch's random() does, in the order in which torchvision draws.
 */
#include "transform/transform.h"

#include <math.h>

/* What torch.empty(1).uniform_(from, to) gives in float32 for one word of the generator. */
static float uniform(struct philox_stream *s, float from, float to)
{
	float x = (float)(philox_stream_next(s) & 0xffffffu) * 0x1p-24f;

	return x * (to - from) + from;
}

/* torch.randint(0, n, (1,)) for n < 2^32. */
static uint32_t random_below(struct philox_stream *s, uint32_t n)
{
	return philox_stream_next(s) % n;
}

/*
 * The double that a user most likely wrote where a float32 arrived: that of the simplest fraction
 * which rounds to the same float (4/3, 0.8), found by its continued fraction. torchvision compares
 * and divides with the double.
 */
static double widened(float value)
{
	double rest = value, p0 = 0, q0 = 1, p1 = 1, q1 = 0;

	for (int i = 0; i < 12; i++) {
		double whole = floor(rest);
		double p = whole * p1 + p0, q = whole * q1 + q0;

		if (q > 4096)
			break;
		if ((float)(p / q) == value)
			return p / q;
		p0 = p1;
		q0 = q1;
		p1 = p;
		q1 = q;
		rest = 1 / (rest - whole);
	}
	return value;
}

/* The central box that is taken after ten refused tries. */
static struct crop_box central_box(uint32_t width, uint32_t height, const float ratio[2])
{
	double least = widened(fminf(ratio[0], ratio[1]));
	double most = widened(fmaxf(ratio[0], ratio[1]));
	double shape = (double)width / height;
	struct crop_box box = { .w = width, .h = height };

	if (shape < least)
		box.h = (uint32_t)fmin(fmax(rint(width / least), 1), height);
	else if (shape > most)
		box.w = (uint32_t)fmin(fmax(rint(height * most), 1), width);
	box.x = (width - box.w) / 2;
	box.y = (height - box.h) / 2;
	return box;
}

struct crop_box random_resized_crop(struct philox_stream *s, uint32_t width, uint32_t height,
	const float scale[2], const float ratio[2])
{
	double area = (double)width * height;
	float log_ratio[2] = { logf(ratio[0]), logf(ratio[1]) };

	for (int i = 0; i < 10; i++) {
		double target = area * (double)uniform(s, scale[0], scale[1]);
		double aspect = (double)expf(uniform(s, log_ratio[0], log_ratio[1]));
		double w = rint(sqrt(target * aspect));
		double h = rint(sqrt(target / aspect));

		if (w > 0 && w <= width && h > 0 && h <= height) {
			struct crop_box box = { .w = (uint32_t)w, .h = (uint32_t)h };

			box.y = random_below(s, height - box.h + 1);
			box.x = random_below(s, width - box.w + 1);
			return box;
		}
	}
	return central_box(width, height, ratio);
}

bool random_flip(struct philox_stream *s, float p)
{
	return uniform(s, 0, 1) < p;
}

void resize_size(
	uint32_t width, uint32_t height, uint32_t size, uint32_t *ret_width, uint32_t *ret_height)
{
	uint32_t small = width <= height ? width : height;
	uint32_t large = width <= height ? height : width;
	uint32_t grown = (uint32_t)((double)((uint64_t)size * large) / small);

	*ret_width = width <= height ? size : grown;
	*ret_height = width <= height ? grown : size;
}

static int32_t crop_offset(uint32_t length, uint32_t crop)
{
	if (length < crop)
		return -(int32_t)((crop - length) / 2);
	return (int32_t)rint((length - crop) / 2.0);
}

void center_crop(uint32_t width, uint32_t height, uint32_t crop_w, uint32_t crop_h, int32_t *ret_x,
	int32_t *ret_y)
{
	*ret_x = crop_offset(width, crop_w);
	*ret_y = crop_offset(height, crop_h);
}
