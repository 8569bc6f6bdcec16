#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the tests of decode hold against Pillow, and the daemon's built-in images.

    goldens.py goldens > goldens.h
    goldens.py self-test > ../../../src/decode/self-test-images.h

Both are committed. Made with Pillow 9.4 and cjpeg on libjpeg-turbo 2.1.5; only a change of what
is tested is a reason to make them again. Each case is a whole file and the pixels that
Image.open(file).convert("RGB") gives for it.
"""
import io
import struct
import subprocess
import sys
import zlib

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 11, 9


def picture(width=WIDTH, height=HEIGHT, channels=3):
    """A gradient in every channel, with a bright and a dark patch."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [(x * (9 - 2 * c) + y * (3 + 4 * c)) % 256 for c in range(channels)]
    p = np.stack(planes, axis=-1).astype(np.uint8)
    p[2:5, 3:8] = 250
    p[6:8, 6:10] = 5
    return p


def light_ycck():
    """Y, Cb, Cr, K as coded for a nearly white picture: inks are inverted in the file."""
    p = picture(channels=4)
    p[:, :, 0] //= 16
    p[:, :, 1:3] = 128
    p[:, :, 3] = 255 - p[:, :, 3] // 16
    return p


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=85, optimize=True, **options)
    return out.getvalue()


def segments(data):
    """(marker, start, end) of the segments up to and with SOS."""
    at, found = 2, []
    while True:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2:at + 4])[0]
        found.append((marker, at, at + 2 + length))
        at += 2 + length
        if marker == 0xDA:
            return found


def without(data, *markers):
    for marker, start, end in reversed(segments(data)):
        if marker in markers:
            data = data[:start] + data[end:]
    return data


def adobe(transform):
    body = b"Adobe" + struct.pack(">HHHB", 100, 0, 0, transform)
    return b"\xff\xee" + struct.pack(">H", len(body) + 2) + body


def jfif():
    return b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes([1, 1, 0, 0, 1, 0, 1, 0, 0])


def with_ids(data, ids):
    """The same coding under other component ids."""
    data = bytearray(data)
    for marker, start, _ in segments(bytes(data)):
        if marker in (0xC0, 0xC1, 0xC2):
            for i, value in enumerate(ids):
                data[start + 10 + 3 * i] = value
        if marker == 0xDA:
            for i, value in enumerate(ids):
                data[start + 5 + 2 * i] = value
    return bytes(data)


def with_sampling(data, factors):
    data = bytearray(data)
    for marker, start, _ in segments(bytes(data)):
        if marker == 0xC0:
            for i, value in enumerate(factors):
                data[start + 11 + 3 * i] = value
    return bytes(data)


def after_soi(data, extra):
    return data[:2] + extra + data[2:]


def jpeg_cases():
    ycc = jpeg(Image.fromarray(picture()), subsampling=0)
    plain = without(ycc, 0xE0, 0xEE)
    gray = without(jpeg(Image.fromarray(picture(channels=1)[:, :, 0])), 0xE0)
    inks = Image.fromarray(picture(channels=4), "CMYK")
    light = Image.fromarray(255 - light_ycck(), "CMYK")  # Pillow writes inks inverted
    four = without(jpeg(inks), 0xE0, 0xEE)
    four_light = without(jpeg(light), 0xE0, 0xEE)
    yield "a01_cmyk_as_pillow_writes_it", jpeg(inks)
    yield "a03_four_no_app14", four
    yield "a03_four_app14_transform_0", after_soi(four, adobe(0))
    yield "a03_four_app14_transform_2", after_soi(four, adobe(2))
    yield "a03_four_app14_transform_9", after_soi(four, adobe(9))
    yield "a03_three_app14_transform_1", after_soi(plain, adobe(1))
    yield "a04_light_ycck", after_soi(four_light, adobe(2))
    yield "a06_ids_4_2_3", with_ids(plain, (4, 2, 3))
    yield "a06_ids_YUV", with_ids(plain, b"YUV")
    yield "a06_ids_X_2_3", with_ids(plain, (ord("X"), 2, 3))
    yield "a06_gray_id_80", with_ids(gray, (80,))
    yield "a07_app14_transform_0_no_jfif", after_soi(plain, adobe(0))
    yield "a07_app14_transform_0_and_jfif", after_soi(plain, jfif() + adobe(0))
    yield "a08_ids_RGB", with_ids(plain, b"RGB")
    yield "jpeg_gray", jpeg(Image.fromarray(picture(channels=1)[:, :, 0]))
    yield "jpeg_420", jpeg(Image.fromarray(picture(21, 18)))
    yield "jpeg_422_progressive", jpeg(Image.fromarray(picture(21, 18)), subsampling=1,
                                       progressive=True)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2))


def pack_rows(samples, depth):
    """samples: height x width x channels, each below 2^depth; filter type 0 to 4 by row."""
    out, above = b"", None
    channels = samples.shape[2]
    step = max(1, channels * depth // 8)
    for number, row in enumerate(samples.reshape(samples.shape[0], -1)):
        if depth == 16:
            raw = row.astype(">u2").tobytes()
        elif depth == 8:
            raw = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), "0%db" % depth) for v in row)
            bits += "0" * (-len(bits) % 8)
            raw = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        out += filtered(number % 5, raw, above or bytes(len(raw)), step)
        above = raw
    return out


def filtered(kind, raw, above, step):
    line = bytes([kind])
    for i, value in enumerate(raw):
        a = raw[i - step] if i >= step else 0
        b = above[i]
        c = above[i - step] if i >= step else 0
        p = a + b - c
        nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        line += bytes([(value - (0, a, b, (a + b) // 2, nearest)[kind]) & 255])
    return line


def png(samples, depth, colour, extra=b"", interlaced=False):
    height, width = samples.shape[:2]
    body = b""
    if interlaced:
        for x, y, dx, dy in ADAM7:
            part = samples[y::dy, x::dx]
            if part.size:
                body += pack_rows(part, depth)
    else:
        body = pack_rows(samples, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra +
            chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b""))


def png_cases():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    colours = bytes((i * 37 + c * 91) % 256 for i in range(16) for c in range(3))
    palette = chunk(b"PLTE", colours)
    for interlaced in (False, True):
        tail = "_interlaced" if interlaced else ""
        for depth in (1, 2, 4, 8, 16):
            levels = (x * 5 + y * 3) * (1 if depth < 16 else 11) % (1 << depth)
            gray = levels[:, :, None]
            yield "png_gray_%d%s" % (depth, tail), png(gray, depth, 0, interlaced=interlaced)
            if depth <= 4:
                few = chunk(b"PLTE", colours[:3 << depth])
                yield "png_palette_%d%s" % (depth, tail), png(gray, depth, 3, few, interlaced)
            else:
                scale = 1 if depth == 8 else 257
                shift = 0 if depth == 8 else 77
                colour = picture().astype(np.int64) * scale
                colour = (colour + shift * (x + y)[:, :, None]) % (1 << depth)
                alpha = np.concatenate([colour, colour[:, ::-1, :1]], axis=2)
                yield "png_rgb_%d%s" % (depth, tail), png(colour, depth, 2,
                                                          interlaced=interlaced)
                yield "png_rgba_%d%s" % (depth, tail), png(alpha, depth, 6,
                                                           interlaced=interlaced)
                yield "png_gray_alpha_%d%s" % (depth, tail), png(alpha[:, :, 2:], depth, 4,
                                                                 interlaced=interlaced)
    gray = ((x * 5 + y * 3) % 256)[:, :, None]
    yield "png_palette_8", png(gray % 16, 8, 3, palette)
    yield "png_palette_8_transparent", png(gray % 16, 8, 3,
                                           palette + chunk(b"tRNS", bytes(range(0, 160, 10))))
    yield "png_gray_8_transparent", png(gray, 8, 0, chunk(b"tRNS", b"\0\x08"))
    yield "png_rgb_8_transparent", png(picture().astype(np.int64), 8, 2,
                                       chunk(b"tRNS", b"\0\xfa\0\xfa\0\xfa"))
    yield "png_gamma_and_broken_profile", png(
        picture().astype(np.int64), 8, 2,
        chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"iCCP", b"x\0\0broken"))


def array(name, data):
    print("static const uint8_t %s[] = {" % name)
    for i in range(0, len(data), 25):
        print("".join("%d," % b for b in data[i:i + 25]))
    print("};")


def write_goldens():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Files and the RGB pixels Pillow %s gives for them. Made by goldens.py. */"
          % Image.__version__)
    print("#ifndef TESTS_GOLDENS_H\n#define TESTS_GOLDENS_H\n")
    print("#include <stddef.h>\n#include <stdint.h>\n\n/* clang-format off */")
    print("struct golden {\n\tconst char *name;\n\tconst uint8_t *file;\n\tsize_t size;")
    print("\tconst uint8_t *rgb;\n\tuint32_t width;\n\tuint32_t height;\n};\n")
    rows = []
    for cases in (jpeg_cases(), png_cases()):
        for name, data in cases:
            image = Image.open(io.BytesIO(data)).convert("RGB")
            array(name + "_file", data)
            array(name + "_rgb", image.tobytes())
            rows.append('\t{ "%s", %s_file, sizeof(%s_file), %s_rgb, %d, %d },'
                        % (name, name, name, name, *image.size))
    print("static const struct golden goldens[] = {")
    print("\n".join(rows))
    print("};\n\n#endif")


def write_self_test():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Built-in images of the start-up self-test. Made by tests/unit/decode/goldens.py. */")
    print("#ifndef DECODE_SELF_TEST_IMAGES_H\n#define DECODE_SELF_TEST_IMAGES_H\n")
    print("#include <stddef.h>\n#include <stdint.h>\n\n/* clang-format off */")
    width, height = 53, 37
    ppm = b"P6 %d %d 255\n" % (width, height) + picture(width, height).tobytes()
    rows = []
    for name, options in (
            ("gray", ["-grayscale"]), ("444", ["-sample", "1x1"]),
            ("422", ["-sample", "2x1"]), ("440", ["-sample", "1x2"]),
            ("420", ["-sample", "2x2"]), ("411", ["-sample", "4x1"]),
            ("420_progressive", ["-sample", "2x2", "-progressive"]),
            ("420_restart", ["-sample", "2x2", "-restart", "1"])):
        data = subprocess.run(["cjpeg", "-quality", "50", "-optimize"] + options, input=ppm,
                              stdout=subprocess.PIPE, check=True).stdout
        # Readers may look BYTES_TAIL bytes past the end.
        array("image_" + name, data + bytes(64))
        rows.append('\t{ "%s", image_%s, sizeof(image_%s) - 64, %d, %d },'
                    % (name, name, name, width, height))
    print("\nstruct self_test_image {\n\tconst char *name;\n\tconst uint8_t *bytes;")
    print("\tsize_t size;\n\tuint32_t width;\n\tuint32_t height;\n};\n")
    print("static const struct self_test_image self_test_images[] = {")
    print("\n".join(rows))
    print("};\n\n#endif")


if __name__ == "__main__":
    {"goldens": write_goldens, "self-test": write_self_test}[sys.argv[1]]()
