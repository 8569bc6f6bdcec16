# SPDX-License-Identifier: Apache-2.0
"""The same samples, the same pixels: whatever the workers, the reader, restarts and ranks."""
import os

import feeder_live as live
from feeder_live import LONG, SOURCE, Daemon, bench, photos, run


class Digests(live.LiveTest):
    COUNT = 600 if LONG else 150

    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        photos(self.data, self.COUNT, mean_kb=30, size='250x190')

    def test_any_workers_and_reader(self):
        seen = set()
        for workers in (1, 2, 5):
            for reader in ('uring', 'pread'):
                r = bench(self.data, '--batch', 16, '--size', 64, '--epochs', 2, '--digest',
                          '--workers', workers, '--set', 'reader=' + reader)
                self.assertEqual(workers, r['workers'])
                self.assertEqual({'uring': 'io_uring', 'pread': 'pread'}[reader], r['reader'])
                seen.add((r['order_digest'], r['pixel_digest'], r['images']))
        self.assertEqual(1, len(seen), seen)

    def test_restart_at_a_cursor(self):
        """Steps before a cut, a daemon killed there, and the steps after it add up to the whole."""
        steps = -(-self.COUNT // 16)
        common = ('--batch', 16, '--size', 48, '--digest')
        with Daemon(self.dir, self.data) as daemon:
            common += ('--socket', daemon.socket)
            whole = bench(self.data, *common)
            self.assertEqual(steps, whole['steps'])
            for cut in (1, steps // 2, steps - 1):
                first = bench(self.data, *common, '--steps', cut)
                daemon.kill()
                daemon.start()
                rest = bench(self.data, *common, '--from', cut, '--steps', steps - cut)
                for name in ('order_digest', 'pixel_digest'):
                    total = (int(first[name], 16) + int(rest[name], 16)) % 2**64
                    self.assertEqual(whole[name], '%016x' % total)

    def test_order_is_torchs(self):
        """order=torch against DistributedSampler (or its documented algorithm) and the formula."""
        script = os.path.join(SOURCE, 'tools/dev/torch_digest.py')
        for world, rank, batch, tail, accumulate, seed, epochs in (
                (1, 0, 16, 'pad', 1, 0, 2), (3, 2, 7, 'pad', 1, 5, 2), (2, 0, 10, 'drop', 3, 9, 1),
                (4, 1, 8, 'mask', 5, 1, 1)):
            r = bench(self.data, '--size', 32, '--batch', batch, '--world', world, '--rank', rank,
                      '--tail', tail, '--accumulate', accumulate, '--seed', seed,
                      '--epochs', epochs)
            want = run('/usr/bin/env', 'python3', script, '--n', self.COUNT, '--world', world,
                       '--rank', rank, '--batch', batch, '--tail', tail, '--accumulate', accumulate,
                       '--seed', seed, '--epochs', epochs, check=0).stdout.strip()
            self.assertEqual(want, r['order_digest'])

    def test_ranks_add_up(self):
        whole = bench(self.data, '--size', 32, '--batch', 12, '--tail', 'mask', '--digest')
        for world in (2, 3):
            parts = [bench(self.data, '--size', 32, '--batch', 12 // world, '--world', world,
                           '--rank', r, '--tail', 'mask', '--digest') for r in range(world)]
            for name in ('order_digest', 'pixel_digest'):
                total = sum(int(p[name], 16) for p in parts) % 2**64
                self.assertEqual(whole[name], '%016x' % total)

    def test_epochs_and_seeds_differ(self):
        a = bench(self.data, '--size', 32, '--digest', '--seed', 1)
        b = bench(self.data, '--size', 32, '--digest', '--seed', 2)
        c = bench(self.data, '--size', 32, '--digest', '--seed', 1)
        self.assertEqual(a['pixel_digest'], c['pixel_digest'])
        self.assertNotEqual(a['pixel_digest'], b['pixel_digest'])


if __name__ == '__main__':
    live.main()
