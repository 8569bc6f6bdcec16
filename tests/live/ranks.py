# SPDX-License-Identifier: Apache-2.0
"""Ranks that belong together: one epoch between them, one daemon for them, and no disagreement."""
import errno
import glob
import os
import subprocess

import feeder_live as live
from feeder_live import BENCH, LONG, Client, Daemon, bench, npy, photos

ID_ASKED, ID, POSITION, STATUS, VALID, RED = range(6)


class Ranks(live.LiveTest):
    COUNT = 2002 if LONG else 202

    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        photos(self.data, self.COUNT, mean_kb=6, size='80x60')
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.__exit__(None)
        super().tearDown()

    def client(self, **options):
        self.clients.append(Client(**options))
        return self.clients[-1]

    def connected(self, daemon, job='j'):
        client = self.client()
        client.do('connect', socket=daemon.socket, job=job)
        return client

    def dumped(self, directory):
        ids = []
        for path in sorted(glob.glob(os.path.join(directory, 'step-*-ids.npy'))):
            valid = npy(path.replace('-ids', '-valid'))
            ids += [i for i, v in zip(npy(path), valid) if v]
        return ids


class Halves(Ranks):
    def test_two_at_once_are_the_epoch(self):
        with Daemon(self.dir, self.data) as daemon:
            common = ('--size', '32', '--seed', '3', '--socket', daemon.socket, '--dump')
            bench(self.data, '--batch', 16, *common, self.path('whole'))
            # the same job for both, as a launcher gives it
            both = [subprocess.Popen(
                [BENCH, self.data, '--batch', '8', '--world', '2', '--rank', str(rank), *common,
                 self.path('rank%d' % rank)], stdout=subprocess.DEVNULL,
                env=dict(os.environ, FEEDER_JOB='two')) for rank in (0, 1)]
            for process in both:
                self.assertEqual(0, process.wait(live.WAIT))
        whole = self.dumped(self.path('whole'))
        halves = [self.dumped(self.path('rank%d' % rank)) for rank in (0, 1)]
        self.assertEqual(list(range(self.COUNT)), sorted(whole))
        self.assertEqual(set(), set(halves[0]) & set(halves[1]))
        self.assertEqual(list(range(self.COUNT)), sorted(halves[0] + halves[1]))
        for rank in (0, 1):
            self.assertEqual(whole[rank::2], halves[rank])

    def test_parts_tile_the_batch(self):
        """Replicas of a group read [gB/G, (g+1)B/G) of each batch, also of the last, short one."""
        keys = {'batch': 10, 'size': 32, 'name': 'tiles', 'world': 2, 'rank': 1}
        with Daemon(self.dir, self.data) as daemon:
            whole = self.connected(daemon, 'whole')
            lane = whole.do('open', self.data, **keys)['lane']
            parts = [self.connected(daemon, 'parts') for _ in range(3)]
            for i, client in enumerate(parts):
                got = client.do('open', self.data, part=i, parts=3, **keys)
                self.assertEqual((i + 1) * 10 // 3 - i * 10 // 3, got['capacity'])
            again = self.connected(daemon, 'parts')('open', self.data, part=1, parts=2, **keys)
            self.assertEqual(-errno.EEXIST, again['r'])
            self.assertIn('parts', again['text'])
            again = self.connected(daemon, 'parts')('open', self.data, part=1, parts=3, **keys)
            self.assertEqual(-errno.EBUSY, again['r'])
            last = False
            while not last:
                batch = whole.do('next', lane)
                whole.do('release', lane, batch['number'])
                tiles = []
                for client in parts:
                    tile = client.do('next', 0)
                    client.do('release', 0, tile['number'])
                    self.assertEqual(batch['step'], tile['step'])
                    tiles += tile['places']
                self.assertEqual([p[:POSITION + 1] for p in batch['places']],
                                 [p[:POSITION + 1] for p in tiles])
                last = batch['last']


class SharedDaemon(Ranks):
    """Without a service: programs of one job share a private daemon that goes with them."""

    def open_rank(self, client, rank, job):
        got = client.do('connect')
        self.assertEqual((1, job), (got['private'], got['job']))
        client.do('open', self.data, batch=8, size=32, world=2, rank=rank)
        return got['socket']

    def test_one_daemon_for_a_job(self):
        a, b = (self.client(env={'FEEDER_JOB': 'one'}) for _ in range(2))
        sockets = {self.open_rank(a, 0, 'one'), self.open_rank(b, 1, 'one')}
        self.assertEqual(1, len(sockets))
        self.assertEqual(1, len(self.daemons()), self.daemons())
        ids = [[place[ID] for place in client.epoch(0)] for client in (a, b)]
        self.assertEqual(list(range(self.COUNT)), sorted(ids[0] + ids[1]))

        other = self.client(env={'FEEDER_JOB': 'two'})
        sockets.add(self.open_rank(other, 0, 'two'))
        self.assertEqual((2, 2), (len(sockets), len(self.daemons())))
        other.do('disconnect')
        self.soon(lambda: len(self.daemons()) == 1, "the other job's daemon ends")

        # it lives as long as one of them does, and no longer
        pids = set(self.daemons())
        a.do('disconnect')
        a.do('connect')
        a.do('disconnect')
        b.do('drain', 0, 20)
        self.assertEqual(pids, set(self.daemons()))
        b.process.kill()
        b.process.wait()
        self.assertEqual([], self.daemons_left())
        self.assertEqual([], os.listdir(os.path.join(self.runtime, 'feeder')))

    def test_other_cpus_other_daemon(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest('one CPU has one mask')
        masks = (set(cpus[:1]), set(cpus[:1]), set(cpus[1:2]))
        sockets = []
        for rank, mask in ((0, masks[0]), (1, masks[1]), (0, masks[2])):
            client = self.client(env={'FEEDER_JOB': 'masks'}, cpus=mask)
            sockets.append(self.open_rank(client, rank, 'masks'))
        self.assertEqual(sockets[0], sockets[1])
        self.assertNotEqual(sockets[0], sockets[2])
        daemons = self.daemons()
        self.assertEqual(2, len(daemons))
        self.assertEqual(sorted(map(sorted, (masks[0], masks[2]))),
                         sorted(sorted(os.sched_getaffinity(pid)) for pid in daemons))

    def test_many_that_start_at_once(self):
        for _ in range(20 if LONG else 3):
            clients = [self.client(env={'FEEDER_JOB': 'crowd'}) for _ in range(8)]
            for client in clients:
                client.send('connect')
            sockets = {client.answer()['socket'] for client in clients}
            self.assertEqual(1, len(sockets))
            self.assertEqual(1, len(self.daemons()), self.daemons())
            for client in clients:
                self.assertEqual(0, client.end())
            self.clients.clear()

    def test_a_daemon_that_leaves_is_replaced(self):
        """Connecting at any moment of the last half second of a daemon ends at a living one."""
        for i in range(40 if LONG else 6):
            client = self.client(env={'FEEDER_JOB': 'late'})
            client.do('connect')
            client.do('open', self.data, batch=8, size=32)
            client.do('next', 0)
            client.do('disconnect')
            live.time.sleep(0.5 + 0.01 * (i % 10))
            client.do('connect')
            client.do('open', self.data, batch=8, size=32)
            client.do('next', 0)
            client.end()


class Agreement(Ranks):
    KEYS = {'batch': 8, 'size': 32, 'seed': 5, 'world': 2}

    def later(self, daemon, steps):
        """The cursor of another job after so many steps, -(-COUNT // 16) of which are the epoch."""
        with Client() as client:
            client.do('connect', socket=daemon.socket, job='later')
            client.do('open', self.data, rank=0, **self.KEYS)
            self.assertEqual(steps, client.do('drain', 0, steps)['steps'])
            return client.do('cursor', 0)['cursor']

    def test_ranks_must_agree(self):
        with Daemon(self.dir, self.data) as daemon:
            first, second = self.connected(daemon), self.connected(daemon)
            first.do('open', self.data, rank=0, **self.KEYS)
            for key, value, words in (
                    ('seed', 6, ('seed 5', 'this one 6')),
                    ('batch', 4, ('batch size 8', 'this one 4')),
                    ('world', 3, ('world size 2', 'this one 3')),
                    ('order', 2, ('order torch', 'this one feistel')),
                    ('tail', 3, ('tail pad', 'this one mask')),
                    ('accumulate', 2, ('accumulate 1', 'this one 2')),
                    ('cursor', self.later(daemon, 3), ('position 0', 'this one 48')),
                    ('cursor', self.later(daemon, -(-self.COUNT // 16)),
                     ('epoch 0', 'this one 1'))):
                got = second('open', self.data, rank=1, **dict(self.KEYS, **{key: value}))
                self.assertEqual(-errno.EEXIST, got['r'], got)
                for word in words + ('rank 1', 'rank 0'):
                    self.assertIn(word, got['text'])
            # what was refused has left nothing behind: the same rank, agreeing, gets its half
            second.do('open', self.data, rank=1, **self.KEYS)
            ids = [[p[ID] for p in client.epoch(0)] for client in (first, second)]
            self.assertEqual(list(range(self.COUNT)), sorted(ids[0] + ids[1]))
            # another job may do as it likes
            self.connected(daemon, 'k').do('open', self.data, rank=1, **dict(self.KEYS, seed=6))

    def test_ranks_of_different_files(self):
        other = self.path('other')
        photos(other, 60, seed=2, mean_kb=6, size='80x60')
        with Daemon(self.dir, self.data, other) as daemon:
            first, second = self.connected(daemon), self.connected(daemon)
            first.do('open', self.data, rank=0, name='x', **self.KEYS)
            got = second('open', other, rank=1, name='x', **self.KEYS)
            self.assertEqual(-errno.EEXIST, got['r'])
            self.assertIn('fingerprint', got['text'])

    def test_second_attach_and_takeover(self):
        with Daemon(self.dir, self.data) as daemon:
            older, newer = self.connected(daemon), self.connected(daemon)
            older.do('open', self.data, rank=0, **self.KEYS)
            batch = older.do('next', 0)
            got = newer('open', self.data, rank=0, **self.KEYS)
            self.assertEqual(-errno.EBUSY, got['r'])
            for word in ('rank 0', 'attached already', 'live-client',
                         'pid %d' % older.process.pid, 'takeover=1'):
                self.assertIn(word, got['text'])
            self.assertEqual(0, older('release', 0, batch['number'])['r'])  # it was not disturbed

            # the older one is in feeder_next, or soon there again, when the newer one wins
            older.send('drain', 0, 10 ** 9)
            newer.do('open', self.data, rank=0, takeover=1, **self.KEYS)
            lost = older.answer()
            self.assertEqual(-errno.ESTALE, lost['r'])
            self.assertIn('taken over', lost['text'])
            self.assertIn('pid %d' % newer.process.pid, lost['text'])
            self.assertEqual(-errno.ESTALE, older('next', 0)['r'])
            self.assertEqual(batch['places'], newer.do('next', 0)['places'])

            # its name is not free for the older one; it is at once when the newer closes it
            older.do('close', 0)
            self.assertEqual(-errno.EBUSY, older('open', self.data, rank=0, **self.KEYS)['r'])
            newer.do('close', 0)
            older.do('open', self.data, rank=0, **self.KEYS)
            self.assertEqual(batch['places'], older.do('next', 0)['places'])

    def test_dead_client_frees_its_rank(self):
        with Daemon(self.dir, self.data) as daemon:
            for _ in range(50 if LONG else 5):
                first, second = self.connected(daemon), self.connected(daemon)
                first.do('open', self.data, rank=0, **self.KEYS)
                first.process.kill()
                first.process.wait()
                self.soon(lambda: second('open', self.data, rank=0, **self.KEYS)['r'] == 0,
                          'the rank of a killed client is free')
                second.end()


if __name__ == '__main__':
    live.main()
