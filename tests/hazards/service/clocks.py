# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump: the wall clock in both programs, and a client whose uptime is another."""
import datetime
import errno
import re
import shutil
import subprocess
import time

import stage
from stage import live


class Clocks(stage.Stage):
    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        live.photos(self.data, 120, size='64x48', mean_kb=3)
        self.options = (self.data, '--batch', 8, '--size', 32, '--digest', '--epochs', 2)

    def digests(self, *options, env=None):
        got = live.bench(*self.options, *options, env=env)
        return got['images'], got['bad_samples'], got['order_digest'], got['pixel_digest']

    def test_d54_an_hour_ahead_and_an_hour_behind(self):
        """No wait, no time-out, no deadline and no drain hangs on the time of day."""
        want = self.digests()
        gate = self.path('gate')
        env = stage.preload(jump=1)
        stuck = stage.preload(jump=1, stuck='class000/000000', gate=gate)
        with live.Daemon(self.dir, self.data, options=['--set', 'reader=pread'],
                         env=stuck) as daemon:
            client = self.enter(live.Client(env=env))
            client.do('connect', socket=daemon.socket)
            client.do('open', self.data, batch=8, size=32, order=3)
            # a wait is neither over at once nor never, and no read is past its deadline
            start = time.monotonic()
            self.assertEqual(-errno.EAGAIN, client('next', 0, 300)['r'])
            self.assertGreaterEqual(time.monotonic() - start, 0.3)
            with open(gate, 'w'):
                pass
            self.assertEqual(120, client.do('drain', 0, 0)['images'])
            self.assertEqual(want, self.digests('--socket', daemon.socket, env=env))
            self.assertEqual(0, stage.counters(daemon)['read_timeouts'])
            self.assertEqual(0, daemon.stop())
            self.assertIn('drained: exit', daemon.read_log())
            stamps = [datetime.datetime.strptime(s, '%Y-%m-%d %H:%M:%S') for s in re.findall(
                r'^(\S+ \d\d:\d\d:\d\d)\.\d\d\d feederd', daemon.read_log(), re.M)]
            self.assertGreater(max(stamps) - min(stamps), datetime.timedelta(hours=1),
                               'the clock did not jump')

    def test_d54_a_client_with_another_uptime(self):
        """A container may have a monotonic clock of its own: no time crosses the border."""
        enter = [shutil.which('unshare') or 'unshare', '--time', '--fork', '--monotonic']
        offsets = ('%d' % -(time.monotonic() // 2), '1000000')
        if shutil.which('unshare') is None or subprocess.run(
                enter + [offsets[0], 'true'], stderr=subprocess.DEVNULL).returncode:
            self.skipTest('no time namespace may be made here')
        want = self.digests()
        with live.Daemon(self.dir, self.data) as daemon:
            for offset in offsets:
                done = live.run(*enter, offset, live.BENCH, *self.options, '--json', '--socket',
                                daemon.socket, check=0)
                self.assertIn('"pixel_digest": "%s"' % want[3], done.stdout)


if __name__ == '__main__':
    live.main()
