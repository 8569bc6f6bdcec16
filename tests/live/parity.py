# SPDX-License-Identifier: Apache-2.0
"""Delivered pixels against Pillow on the same libjpeg-turbo, to the last bit (torchvision's
PIL path)."""
import glob
import os
import sys

import feeder_live as live
from feeder_live import bench, photos

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print('no parity without NumPy and Pillow: %s' % missing)
    sys.exit(77)


def image_folder(root):
    """torchvision's ImageFolder order, from its documentation: classes sorted, os.walk sorted."""
    samples = []
    for label, name in enumerate(sorted(e.name for e in os.scandir(root) if e.is_dir())):
        for directory, _, files in sorted(os.walk(os.path.join(root, name), followlinks=True)):
            samples += [(os.path.join(directory, f), label) for f in sorted(files)]
    return samples


def load(directory, what):
    files = sorted(glob.glob(os.path.join(directory, 'step-*-%s.npy' % what)))
    return np.concatenate([np.load(f) for f in files])


class Parity(live.LiveTest):
    COUNT = 200
    BICUBIC = False

    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        photos(self.data, self.COUNT, seed=3)
        self.samples = image_folder(self.data)
        self.assertEqual(self.COUNT, len(self.samples))

    def dump(self, *options):
        out = self.path('dump')
        bench(self.data, '--batch', 64, '--dump', out, *options)
        return {what: load(out, what) for what in ('images', 'labels', 'ids', 'valid', 'boxes')}

    def test_training_crops(self):
        got = self.dump('--seed', 11)
        self.assertEqual(list(range(self.COUNT)), sorted(got['ids'].tolist()))
        flips = 0
        for image, label, index, box in zip(got['images'], got['labels'], got['ids'], got['boxes']):
            path, want_label = self.samples[index]
            x, y, w, h, flip = (int(v) for v in box)
            with Image.open(path) as source:
                want = source.convert('RGB').crop((x, y, x + w, y + h)).resize((224, 224),
                                                                               Image.BILINEAR)
            if flip:
                want = want.transpose(Image.FLIP_LEFT_RIGHT)
                flips += 1
            self.assertEqual(want_label, label)
            self.assertTrue(np.array_equal(np.asarray(want), image), path)
        self.assertTrue(self.COUNT // 4 < flips < 3 * self.COUNT // 4)

    def test_evaluation(self):
        got = self.dump('--eval')
        self.assertEqual(list(range(self.COUNT)), got['ids'].tolist())
        for image, index, box in zip(got['images'], got['ids'], got['boxes']):
            path = self.samples[index][0]
            with Image.open(path) as source:
                w, h = source.size
                self.assertEqual([0, 0, w, h, 0], box.tolist())
                size = (256, int(256 * h / w)) if w <= h else (int(256 * w / h), 256)
                want = source.convert('RGB').resize(size, Image.BILINEAR)
            left, top = int(round((size[0] - 224) / 2.0)), int(round((size[1] - 224) / 2.0))
            want = want.crop((left, top, left + 224, top + 224))
            self.assertTrue(np.array_equal(np.asarray(want), image), path)


if __name__ == '__main__':
    live.main()
