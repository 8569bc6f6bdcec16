#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every variant of the resize against Pillow, byte for byte: crops (RandomResizedCrop) and windows
(Resize + CenterCrop), both filters, flips, tiny and lopsided sizes.

usage: pillow-parity.py PROGRAM      (the executable pillow-parity)
"""
import os
import random
import struct
import subprocess
import sys

try:
    from PIL import Image
except ImportError:
    print('skipped: python3 has no Pillow, which is the oracle of this test')
    sys.exit(77)

BILINEAR, BICUBIC = 1, 2
PILLOW = {BILINEAR: Image.BILINEAR, BICUBIC: Image.BICUBIC}


def pixels(rng, w, h):
    """Noise, stripes or hard edges: what clipping and rounding are sensitive to."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(w * h * 3)
    if kind == 1:
        row = b'\0\0\0\xff\xff\xff' * (w // 2 + 2)
        return b''.join(row[3 * (y % 2):3 * (y % 2 + w)] for y in range(h))
    return rng.randbytes(w * h * 3).translate(bytes(128) + b'\xff' * 128)


def span(n, out, first, count, bicubic):
    """Source pixels that a window needs, with two to spare where there are any."""
    scale = n / out
    support = (2 if bicubic else 1) * max(scale, 1)
    low = max(0, int((first + .5) * scale - support) - 2)
    high = min(n, int((first + count - .5) * scale + support) + 3)
    return low, high - low


def size(rng):
    return rng.choice((1, 2, 3, rng.randint(1, 40), rng.randint(1, 150), rng.randint(100, 300)))


def cases(rng, n):
    for i in range(n):
        filt = BILINEAR if i % 2 else BICUBIC
        flip = rng.randrange(2)
        w, h = size(rng), size(rng)
        if i % 3 == 0:  # Resize + CenterCrop: a window of the whole image's resize
            short = rng.choice((8, 32, 64, 256))
            if i % 21 == 0:
                w, h, short = 500, 375, 256
            while max(w, h) > 40 * min(w, h):
                w, h = size(rng), size(rng)
            ow = short if w <= h else int(short * w / h)
            oh = int(short * h / w) if w <= h else short
            c = max(1, round(short * .875))
            x, y, ww, wh = round((ow - c) / 2), round((oh - c) / 2), c, c
        elif i % 3 == 1:  # RandomResizedCrop: the box is the image
            ow = oh = ww = wh = rng.choice((1, 7, 32, 96, 224))
            if i % 21 == 1:
                w, h, ow, oh, ww, wh = rng.randint(150, 500), rng.randint(150, 375), *[224] * 4
            x = y = 0
        else:
            ow, oh = size(rng), size(rng)
            if i % 30 == 2:
                ow, oh = w, h
            ww, wh = rng.randint(1, ow), rng.randint(1, oh)
            x, y = rng.randint(0, ow - ww), rng.randint(0, oh - wh)
        yield w, h, ow, oh, x, y, ww, wh, filt, flip


def expected(data, case):
    w, h, ow, oh, x, y, ww, wh, filt, flip = case
    image = Image.frombytes('RGB', (w, h), data).resize((ow, oh), PILLOW[filt])
    image = image.crop((x, y, x + ww, y + wh))
    return (image.transpose(Image.FLIP_LEFT_RIGHT) if flip else image).tobytes()


def main():
    program = sys.argv[1]
    rng = random.Random(20)
    n = 6000 if os.environ.get('FEEDER_LONG') == '1' else 330
    levels = int(subprocess.run([program, 'levels'], capture_output=True, check=True).stdout)
    asked, sent = [], []
    for case in cases(rng, n):
        w, h, ow, oh, x, y, ww, wh, filt, flip = case
        data = pixels(rng, w, h)
        sx, sw = span(w, ow, x, ww, filt == BICUBIC)
        sy, sh = span(h, oh, y, wh, filt == BICUBIC)
        region = b''.join(data[3 * (r * w + sx):3 * (r * w + sx + sw)] for r in range(sy, sy + sh))
        sent.append(struct.pack('<16I', *case, sx, sy, sw, sh, 0, 0) + region)
        asked.append((case, expected(data, case)))
    got = subprocess.run([program], input=b''.join(sent), capture_output=True, check=True).stdout
    at = wrong = 0
    for case, want in asked:
        for level in range(levels):
            have = got[at:at + len(want)]
            at += len(want)
            if have != want:
                wrong += 1
                most = max((abs(a - b) for a, b in zip(have, want)), default=None)
                print(f'level {level} {case}: differs, most {most}')
    if at != len(got):
        print(f'{len(got)} bytes came back, {at} were expected')
        return 1
    print(f'{len(asked)} cases at {levels} levels, {wrong} differ from Pillow')
    return 1 if wrong else 0


sys.exit(main())
