#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden headers: crop parameters, sizes and stored values, computed by an independent writing-down
of torchvision's Python code over Philox words, with NumPy's float32 for what torch computes in
tensors. Run it again only if the contract changes:
golden.py geometry > golden-geometry.h; golden.py values > golden-values.h
"""
import math
import sys

import numpy as np

f32 = np.float32
MASK = 0xffffffff


def philox(counter, key):
    """Philox4x32-10 of Salmon et al., SC 2011."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


class Torch:
    """torch's generator, with the words of a Philox stream for random()."""

    def __init__(self, seed, ident, epoch, operation):
        self.words = self.stream((seed & MASK, seed >> 32), ident, epoch, operation << 16)

    @staticmethod
    def stream(key, ident, epoch, base):
        block = 0
        while True:
            yield from philox((ident & MASK, ident >> 32, epoch, base + block), key)
            block += 1

    def uniform(self, low, high):
        x = f32(next(self.words) & 0xffffff) * f32(2.0**-24)
        return float(f32(x * (f32(high) - f32(low))) + f32(low))

    def randint(self, low, high):
        return low + next(self.words) % (high - low)


def get_params(torch, width, height, scale, ratio):
    """torchvision.transforms.RandomResizedCrop.get_params, line by line."""
    area = height * width
    # Through double and rounded once: the correctly rounded float32.
    log_ratio = [f32(math.log(float(f32(r)))) for r in ratio]
    for _ in range(10):
        target_area = area * torch.uniform(scale[0], scale[1])
        aspect_ratio = float(f32(math.exp(torch.uniform(log_ratio[0], log_ratio[1]))))
        w = int(round(math.sqrt(target_area * aspect_ratio)))
        h = int(round(math.sqrt(target_area / aspect_ratio)))
        if 0 < w <= width and 0 < h <= height:
            i = torch.randint(0, height - h + 1)
            j = torch.randint(0, width - w + 1)
            return i, j, h, w, 0
    in_ratio = float(width) / float(height)
    if in_ratio < min(ratio):
        w = width
        h = int(round(w / min(ratio)))
    elif in_ratio > max(ratio):
        h = height
        w = int(round(h * max(ratio)))
    else:
        w = width
        h = height
    w, h = max(w, 1), max(h, 1)  # torchvision goes on with 0 pixels and fails
    return (height - h) // 2, (width - w) // 2, h, w, 1


def crops():
    sizes = [(500, 375), (375, 500), (640, 480), (333, 77), (31, 500), (8, 9), (1, 1), (1, 65500),
             (65500, 3), (1000, 100), (7, 1), (4000, 3000), (2, 5), (224, 224)]
    shapes = [((.08, 1), (3 / 4, 4 / 3)), ((.9, 1), (3 / 4, 4 / 3)), ((.35, 1), (.8, 1.25)),
              ((1, 1), (1, 1)), ((.08, 1), (.1, .3)), ((.5, 2), (2, 2.9))]
    fallbacks = 0
    for n in range(3000):
        w, h = sizes[n % len(sizes)]
        s = n // len(sizes) % len(shapes)
        scale, ratio = shapes[s]
        seed, ident, epoch = (0, 1, 2**32 + 7, 2**64 - 1)[n % 4], n * 977, n % 5
        torch = Torch(seed, ident, epoch, 1)
        i, j, ch, cw, fell = get_params(torch, w, h, scale, ratio)
        fallbacks += fell
        flip = f32(Torch(seed, ident, epoch, 4).uniform(0, 1)) < f32(.5)
        yield f'\t{{ {seed}u, {ident}, {epoch}, {w}, {h}, {s}, {{ {j}, {i}, {cw}, {ch} }}, {int(flip)} }},'
    shapes = ', '.join(f'{{ {{ {a[0]}f, {a[1]}f }}, {{ {float(b[0])!r}f, {float(b[1])!r}f }} }}'
                       for a, b in ((tuple(map(float, a)), b) for a, b in shapes))
    yield f'/* {fallbacks} of them are fallbacks. */'
    yield f'#define GOLDEN_SHAPES {{ {shapes} }}'


def resized(w, h, size):
    """torchvision.transforms.functional._compute_resized_output_size for one number."""
    short, long = (w, h) if w <= h else (h, w)
    new_short, new_long = size, int(size * long / short)
    return (new_short, new_long) if w <= h else (new_long, new_short)


def offset(length, crop):
    """center_crop: the padding's left side, negative, or the crop's first pixel."""
    if crop > length:
        return -((crop - length) // 2)
    return int(round((length - crop) / 2.0))


def sizes():
    rng = np.random.default_rng(5)
    for n in range(600):
        w, h = (int(v) for v in rng.integers(1, (20, 600, 65536)[n % 3], 2))
        size = int(rng.integers(1, 600))
        a, b = resized(w, h, size)
        yield f'\t{{ {w}, {h}, {size}, {a}, {b}, {offset(w, size)}, {offset(h, size)} }},'


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def bfloat16(v):
    bits = int(np.asarray(v, f32).view(np.uint32))
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def values():
    for normalize in (0, 1):
        for c in range(3):
            for byte in range(256):
                v = f32(byte) / f32(255)
                if normalize:
                    v = (v - f32(MEAN[c])) / f32(STD[c])
                bits = int(v.view(np.uint32))
                half = int(v.astype(np.float16).view(np.uint16))
                yield f'\t{{ {bits:#010x}, {half:#06x}, {bfloat16(v):#06x} }},'


GEOMETRY = """
struct golden_crop {
	uint64_t seed, id;
	uint32_t epoch, width, height, shape;
	struct crop_box box;
	int flip;
};

struct golden_size {
	uint32_t width, height, size, resized_w, resized_h;
	int32_t x, y;
};
"""

VALUES = """
struct golden_value {
	uint32_t f32;
	uint16_t f16, bf16;
};
"""


def table(declaration, rows):
    print(f'\nstatic const struct {declaration} = {{')
    print('\n'.join(rows))
    print('};')


def main():
    print('/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by golden.py. */\n'
          '/* clang-format off */')
    if sys.argv[1] == 'geometry':
        *rows, fallbacks, shapes = crops()
        print(GEOMETRY)
        print(f'{fallbacks}\n{shapes}')
        table('golden_crop golden_crops[]', rows)
        table('golden_size golden_sizes[]', sizes())
    else:
        print(VALUES)
        print('/* [normalize][channel][byte] */')
        table('golden_value golden_values[2 * 3 * 256]', values())


main()
