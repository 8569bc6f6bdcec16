# SPDX-License-Identifier: Apache-2.0
"""Memory and descriptors of the daemon: as much after a day as after a minute.

Anonymous resident memory (RssAnon) is what the daemon allocates; rings are shared memory and are
counted apart. Growth that matters adds up: a byte for each sample, batch, epoch or lane. What does
not is the high-water mark of buffers that depend on which crops of which photos met in which
worker, and it is bounded by SLACK, far below what a leak of one small thing a sample would make.
"""
import errno
import os
import shutil
import tempfile
import time

import feeder_live as live
from feeder_live import LONG, Client, Daemon, photos, sanitized

MIB = 1 << 20
SLACK = (8 if sanitized() else 2) * MIB
# Lanes and sessions of one kind repeat themselves exactly: what varies is the allocator's.
SLACK_REPEATED = SLACK if sanitized() else MIB * 3 // 4
# AddressSanitizer keeps freed memory for a while, which is meant to hide nothing here.
ENV = {'ASAN_OPTIONS': 'quarantine_size_mb=1:thread_local_quarantine_size_kb=16:'
       + os.environ.get('ASAN_OPTIONS', '')} if sanitized() else {}


def proportional(pid):
    """PSS in bytes: shared memory is divided among those who map it."""
    with open('/proc/%d/smaps_rollup' % pid) as f:
        for line in f:
            if line.startswith('Pss:'):
                return int(line.split()[1]) * 1024
    raise AssertionError('no Pss')


class Memory(live.LiveTest):
    COUNT = 4000 if LONG else 240

    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.mkdtemp(prefix='feeder-live-memory-')
        # small and large ones, so that buffers of all sizes come and go
        photos(os.path.join(cls.data, 'small'), cls.COUNT, mean_kb=8, size='120x90')
        photos(os.path.join(cls.data, 'large'), cls.COUNT // 10, mean_kb=60, size='600x450')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data)

    def connected(self, daemon):
        client = Client()
        client.do('connect', socket=daemon.socket)
        return client

    def daemon(self, *options):
        return Daemon(self.dir, self.data, options=['--workers', '2'] + list(options), env=ENV)

    @staticmethod
    def growth(daemon, work):
        """Bytes by which repeating work grows the daemon: a leak does so each time, while a
        worker or an allocator's arena that is used for the first time does it once."""
        grown = []
        for _ in range(3):
            before = daemon.memory()[0]
            work()
            grown.append(daemon.memory()[0] - before)
        return min(grown)

    def descriptors(self, daemon):
        """Their number when the rings are full and no file is being read."""
        looks = []
        while len(looks) < 5 or len(set(looks[-5:])) > 1:
            looks.append(daemon.descriptors())
            time.sleep(0.02)
        return looks[-1]

    def test_flat_over_epochs(self):
        warm, epochs = 3, 20
        with self.daemon('--set', 'readahead=8M') as daemon, self.connected(daemon) as client:
            client.do('open', self.data, batch=32, size=64)
            seen = []
            for _ in range(epochs):
                client.do('drain', 0, 0)
                seen.append(daemon.memory()[0])
            descriptors = self.descriptors(daemon)
            client.do('drain', 0, 0)
            self.assertEqual(descriptors, self.descriptors(daemon))
            self.assertLess(max(seen[warm:]) - max(seen[:warm]), SLACK, seen)
            # the read-ahead's budget, two workers' buffers and what the program itself needs
            self.assertLess(max(seen), (8 + 2 * 4 + 16) * MIB * (8 if sanitized() else 1), seen)

    def test_target(self):
        """Batch 256, 224 pixels, uint8: daemon and client together within 150 MB above the ring."""
        with self.daemon() as daemon, self.connected(daemon) as client:
            got = client.do('open', self.data, batch=256)
            client.do('drain', 0, 6)
            above = (proportional(daemon.process.pid) + proportional(client.process.pid)
                     - got['ring_bytes'])
            self.assertLess(above, 150e6 * (4 if sanitized() else 1))
            self.assertGreater(above, 0)

    def test_lanes_come_and_go(self):
        lanes = 1000 if LONG else 200
        keys = {'batch': 4, 'size': 32}
        with self.daemon() as daemon, self.connected(daemon) as client:
            client.do('cycle', 100, self.data, **keys)
            descriptors = self.descriptors(daemon)

            def cycle():
                client.do('cycle', lanes, self.data, **keys)
                # closed lanes are freed in the background
                self.soon(lambda: daemon.descriptors() <= descriptors,
                          'descriptors of closed lanes')
            self.assertLess(self.growth(daemon, cycle), SLACK_REPEATED)

    def test_sessions_come_and_go(self):
        with self.daemon() as daemon:
            def connect(times):
                with Client() as client:
                    for _ in range(times):
                        client.do('connect', socket=daemon.socket)
                        client.do('open', self.data, batch=4, size=32)
                        client.do('disconnect')
            connect(30)
            descriptors = self.descriptors(daemon)

            def sessions():
                connect(500 if LONG else 100)
                self.soon(lambda: daemon.descriptors() <= descriptors, 'descriptors of sessions')
            self.assertLess(self.growth(daemon, sessions), SLACK_REPEATED)

    def test_who_never_releases(self):
        """A lane whose batches stay held stops at its slots, and costs nothing while it does."""
        with self.daemon() as daemon, self.connected(daemon) as holder:
            slots = holder.do('open', self.data, batch=8, size=64)['slots']
            for _ in range(slots):
                holder.do('next', 0)
            with self.connected(daemon) as other:
                other.do('open', self.data, batch=8, size=64)
                other.do('drain', 0, 100)  # the read-ahead of both is as large as it gets
                before, descriptors = daemon.memory(), self.descriptors(daemon)
                for _ in range(20 if LONG else 5):
                    other.do('drain', 0, 100)
                    self.assertEqual(-errno.EDEADLK, holder('next', 0, 0)['r'])
                self.assertLess(daemon.memory()[0] - before[0], SLACK)
                self.assertLess(daemon.memory()[1] - before[1], 2 * SLACK)
                self.assertEqual(descriptors, self.descriptors(daemon))


if __name__ == '__main__':
    live.main()
