# SPDX-License-Identifier: Apache-2.0
"""Files of which 1 in 50 is damaged: the run goes on, every one is named, no other sample
changes."""
import glob
import os
import sys

import feeder_live as live
from feeder_live import LONG, STAT, Daemon, bench, photos, run

try:
    import numpy as np
except ImportError as missing:
    print('no comparison of pixels without NumPy: %s' % missing)
    sys.exit(77)

import json


def load(directory, what):
    files = sorted(glob.glob(os.path.join(directory, 'step-*-%s.npy' % what)))
    return np.concatenate([np.load(f) for f in files])


class Damaged(live.LiveTest):
    COUNT = 10000 if LONG else 2000
    ONE_IN = 50

    def setUp(self):
        super().setUp()
        self.good, self.bad = self.path('good'), self.path('bad')
        self.list = self.path('damaged.tsv')
        photos(self.good, self.COUNT, seed=5, size='160x120', mean_kb=12)
        photos(self.bad, self.COUNT, seed=5, size='160x120', mean_kb=12, damage=self.ONE_IN,
               damage_list=self.list)
        self.names = []
        for name in sorted(os.listdir(self.bad)):
            self.names += ['%s/%s' % (name, f)
                           for f in sorted(os.listdir(os.path.join(self.bad, name)))]
        self.damage = {}
        with open(self.list) as f:
            for line in f:
                path, kind, expected = line.rstrip('\n').split('\t')
                self.damage[os.path.relpath(path, self.bad) if path.startswith('/') else path] = (
                    kind, expected)
        self.assertEqual(self.COUNT // self.ONE_IN, len(self.damage))

    def dump(self, data, name, *options):
        out = self.path(name)
        r = bench(data, '--batch', 64, '--size', 40, '--dump', out, *options)
        return r, {what: load(out, what) for what in ('images', 'labels', 'ids', 'valid', 'boxes')}

    def test_mask_and_substitute(self):
        _, clean = self.dump(self.good, 'clean')
        with Daemon(self.dir, self.bad) as daemon:
            for policy in ('mask', 'substitute'):
                holder = LaneHolder(self, daemon, policy)
                r, got = self.dump(self.bad, policy, '--bad', policy, '--socket', daemon.socket)
                self.compare(clean, got, policy, r)
                holder.check()

    def compare(self, clean, got, policy, result):
        self.assertEqual(len(clean['ids']), len(got['ids']))
        certain = {n for n, (_, expected) in self.damage.items() if expected not in ('maybe', 'ok')}
        bad_places = 0
        for i, asked in enumerate(clean['ids']):
            name = self.names[asked]
            same = (got['ids'][i] == asked and got['valid'][i] == 1)
            if name not in self.damage:
                self.assertTrue(same, name)
            if same:
                self.assertEqual(clean['labels'][i], got['labels'][i])
                if name not in self.damage:
                    self.assertTrue(np.array_equal(clean['boxes'][i], got['boxes'][i]), name)
                    self.assertTrue(np.array_equal(clean['images'][i], got['images'][i]), name)
                self.assertNotIn(name, certain)
                continue
            bad_places += 1
            if policy == 'mask':
                self.assertEqual((0, -100), (got['valid'][i], got['labels'][i]))
                self.assertFalse(got['images'][i].any())
            else:
                self.assertEqual(1, got['valid'][i])
                self.assertNotIn(self.names[got['ids'][i]], certain)
        self.assertEqual(bad_places, result['bad_samples'])

    def test_fail_names_the_first(self):
        order = bench(self.good, '--batch', 64, '--size', 40, '--dump', self.path('order'))
        ids = load(self.path('order'), 'ids')
        done = bench(self.bad, '--batch', 64, '--size', 40, '--bad', 'fail', check=1)
        certain = [self.names[i] for i in ids
                   if self.damage.get(self.names[i], ('', 'maybe'))[1] not in ('maybe', 'ok')]
        first = [n for n in (self.names[i] for i in ids) if n in self.damage]
        self.assertEqual(self.COUNT, order['images'])
        named = [n for n in first[:first.index(certain[0]) + 1] if n in done.stderr]
        self.assertEqual(1, len(named), done.stderr)


class LaneHolder:
    """Looks at `feeder-stat errors` while a lane that saw the whole epoch is still open."""

    def __init__(self, test, daemon, policy):
        self.test, self.daemon, self.policy = test, daemon, policy

    def check(self):
        """Drains an epoch again by a client that stays, and compares what the daemon names."""
        import subprocess
        # one step more than the epoch: when it is stopped, every file was met
        steps = -(-self.test.COUNT // 64) + 1
        bench_process = subprocess.Popen(
            [live.BENCH, self.test.bad, '--batch', '64', '--size', '40', '--bad', self.policy,
             '--socket', self.daemon.socket, '--epochs', '1000'], stdout=subprocess.DEVNULL)
        try:
            errors = self.wait(steps)
        finally:
            bench_process.kill()
            bench_process.wait()
        words = {case['path']: case['status'] for case in errors}
        for name, (kind, expected) in self.test.damage.items():
            if expected == 'ok': # odd, but decoded as what it is
                self.test.assertNotIn(name, words, kind)
            elif expected != 'maybe':
                self.test.assertEqual(expected, words.get(name), '%s (%s)' % (name, kind))
        for name in words:
            self.test.assertIn(name, self.test.damage)

    def wait(self, steps):
        import time
        deadline = time.monotonic() + live.WAIT
        while time.monotonic() < deadline:
            state = json.loads(run(STAT, 'json', '--socket', self.daemon.socket, check=0).stdout)
            lanes = state.get('lanes', [])
            if lanes and lanes[0]['counters']['batches'] >= steps:
                return json.loads(run(STAT, 'errors', '--json', '--socket', self.daemon.socket,
                                      check=0).stdout)['bad']
            time.sleep(0.2)
        raise AssertionError('the epoch did not end')


if __name__ == '__main__':
    live.main()
