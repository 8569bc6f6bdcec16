# SPDX-License-Identifier: Apache-2.0
"""What a daemon says, counts and refuses, seen from its programs."""
import os
import re

import stage
from stage import live

BATCH = 8


class Refused(stage.Stage):
    """A set of which not one file can be decoded: no run may call that a success."""

    FILES = 60

    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        os.makedirs(os.path.join(self.data, 'x'))
        for i in range(self.FILES):
            with open(os.path.join(self.data, 'x', '%03d.jpg' % i), 'wb') as f:
                f.write(b'GIF89a\1\0\1\0' if i % 2 else b'')

    def test_a05_a67_the_run_fails_and_every_file_is_named(self):
        with live.Daemon(self.dir, self.data) as daemon:
            for policy in ('substitute', 'mask', 'fail'):
                done = live.bench(self.data, '--batch', BATCH, '--order', 'sequential', '--bad',
                                  policy, '--socket', daemon.socket, check=1)
                self.assertIn('x/000.jpg (sample 0)', done.stderr)
                self.assertEqual(policy != 'fail', 'budget of 16' in done.stderr, done.stderr)
            self.counted(daemon)

    def counted(self, daemon):
        client = self.client(daemon)
        client.do('open', self.data, batch=BATCH, size=32, bad=2, order=3)
        answer = client('drain', 0, 0)
        self.assertEqual(2, answer['steps'])
        self.assertIn('x/000.jpg (sample 0)', answer['text'])
        lane = stage.stat(daemon)['lanes'][0]
        self.assertEqual(('failed', 3 * BATCH),
                         (lane['state'], lane['counters']['bad_samples']))
        bad = stage.stat(daemon, 'errors')['bad']
        self.assertEqual(
            [('x/%03d.jpg' % i, i, 'other-format' if i % 2 else 'empty')
             for i in range(3 * BATCH)],
            [(case['path'], case['sample'], case['status']) for case in bad])
        text = live.run(live.STAT, 'errors', '--socket', daemon.socket, check=0).stdout
        self.assertIn('24 of 24 places asked for a bad sample; files: 12 empty, 12 other-format',
                      text)
        self.assertIn('sample 1 x/001.jpg: other-format', text)
        health = live.run(live.STAT, 'health', '--socket', daemon.socket, check=1)
        self.assertIn('failed', health.stdout)

    def test_a05_a_private_daemon_fails_the_run_too(self):
        done = live.bench(self.data, '--batch', BATCH, check=1)
        self.assertIn('budget', done.stderr)


class Known(stage.Stage):
    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        live.photos(self.data, 400, size='64x48', mean_kb=3)

    def test_a39_the_jpeg_library_is_named(self):
        got = live.bench(self.data, '--batch', BATCH, '--steps', 1, '--size', 32)
        self.assertRegex(got['codec'], r'^libjpeg(-turbo)? \d+\.\d+')
        with live.Daemon(self.dir, self.data) as daemon:
            self.assertEqual(got['codec'], stage.stat(daemon)['codec'])
            metrics = live.run(live.STAT, 'metrics', '--socket', daemon.socket, check=0).stdout
            self.assertIn('codec="%s"' % got['codec'], metrics)

    def settled(self, daemon):
        """Reads so far, when the lane's read-ahead has come to rest with every slot full."""
        def full():
            state = stage.stat(daemon)
            lane = state['lanes'][0]['counters'] if state['lanes'] else {'ready': 0, 'slots': 1}
            return lane['ready'] == lane['slots'] and not state['counters']['reads_in_flight']

        last = -1
        while True:
            self.soon(full, 'a full ring')
            now = stage.counters(daemon)['reads']
            if now == last:
                return now
            last = now

    def test_c25_what_is_skipped_is_not_read(self):
        """At a cursor, near or far, a lane reads its ring and its read-ahead and no more."""
        steps, keys = 400 // BATCH, {'batch': BATCH, 'size': 32}
        with live.Daemon(self.dir, self.data) as daemon:
            client = self.client(daemon)
            lane = client.do('open', self.data, **keys)
            cursors = {}
            for n in range(1, steps):
                client.do('drain', lane['lane'], 1)
                cursors[n] = client.do('cursor', lane['lane'])['cursor']
            client.do('close', lane['lane'])
            self.soon(lambda: not stage.stat(daemon)['lanes'], 'the lane closed')
            taken = {}
            for n in (1, steps // 2, steps - 20):
                before = stage.counters(daemon)['reads']
                lane = client.do('open', self.data, cursor=cursors[n], **keys)
                opened = self.settled(daemon) - before
                batch = client.do('next', lane['lane'])
                self.assertEqual(n, batch['places'][0][2] // BATCH)
                client.do('release', lane['lane'], batch['number'])
                taken[n] = (opened, self.settled(daemon) - before)
                client.do('close', lane['lane'])
            # what the slots hold, as much again and two batches; one more for the one consumed
            ahead = (2 * lane['slots'] + 2) * BATCH
            self.assertEqual([(ahead, ahead + BATCH)] * 3, list(taken.values()), taken)

    def test_c25_a_run_from_a_late_step_reads_as_little(self):
        with live.Daemon(self.dir, self.data) as daemon:
            for n in (1, 400 // BATCH - 20):
                before = stage.counters(daemon)['reads']
                got = live.bench(self.data, '--batch', BATCH, '--size', 32, '--from', n,
                                 '--steps', 1, '--socket', daemon.socket)
                self.assertEqual((1, 0), (got['steps'], got['bad_samples']))
                # at most twice a ring of 4 and its read-ahead: before the seek and after it
                self.assertLessEqual(stage.counters(daemon)['reads'] - before,
                                     (2 * (2 * 4 + 2) + 1) * BATCH)

    def test_d01_d02_a_ring_beyond_all_memory_is_refused_in_a_sentence(self):
        """By the quota, and where that allows it by what is available: no signal, no trace."""
        big = ('--batch', 65536, '--size', 2048)
        for options, words in (((), ('ring_bytes', 'needs', 'limit')),
                               (('--set', 'limits.ring_bytes=64T'), ('needs', 'are available'))):
            with live.Daemon(self.dir, self.data, options=options) as daemon:
                descriptors = daemon.descriptors()
                done = live.bench(self.data, *big, '--socket', daemon.socket, check=1)
                for word in words:
                    self.assertIn(word, done.stderr)
                self.assertIsNone(daemon.process.poll())
                live.bench(self.data, '--batch', BATCH, '--size', 32, '--steps', 3,
                           '--socket', daemon.socket)
                self.soon(lambda: not stage.counters(daemon)['ring_bytes'], 'its bytes back')
                self.soon(lambda: daemon.descriptors() <= descriptors, 'its descriptors back')
                self.assertEqual(0, daemon.stop(), daemon.read_log())
        done = live.bench(self.data, *big, check=1)
        self.assertIn('needs', done.stderr)

    def test_d43_workers_are_as_many_as_asked_for(self):
        """Literally, more than there are CPUs too; by default the CPUs, less one a rank."""
        def workers(daemon):
            return len(stage.threads(daemon.process.pid, 'feeder-work'))

        for asked in (1, 3, 37):
            with live.Daemon(self.dir, self.data, options=['--workers', str(asked)]) as daemon:
                client = self.client(daemon)
                client.do('open', self.data, batch=BATCH, size=32)
                client.do('drain', 0, 30)
                self.assertEqual((asked, asked),
                                 (workers(daemon), stage.counters(daemon)['workers']))
                self.assertEqual(asked > stage.counters(daemon)['cpus'],
                                 'they wait for each other' in daemon.read_log())
        with live.Daemon(self.dir, self.data) as daemon:
            got = stage.counters(daemon)
            self.assertEqual(got['cpus'], workers(daemon))
            self.assertEqual(got['cpus'], got['workers'])
            self.client(daemon).do('open', self.data, batch=BATCH, size=32)
            self.assertEqual(max(1, got['cpus'] - 1), stage.counters(daemon)['workers'])

    def test_d55_the_log_has_the_limits_of_the_process(self):
        def limit(pid, name):
            with open('/proc/%d/limits' % pid) as f:
                return re.search(r'^%s +(\S+)' % name, f.read(), re.M).group(1)

        with live.Daemon(self.dir, self.data) as daemon:
            pid = daemon.process.pid
            self.assertIn('limits: open files %s, locked memory %s\n' % (
                limit(pid, 'Max open files'), limit(pid, 'Max locked memory')),
                daemon.read_log())


if __name__ == '__main__':
    live.main()
