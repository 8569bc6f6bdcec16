# SPDX-License-Identifier: Apache-2.0
"""Signals to the daemon: to end, twice, in the middle of an attach; to stop; to one thread."""
import errno
import os
import random
import signal
import time

import stage
from stage import live

KEYS = {'batch': 4, 'size': 32}


class Signals(stage.Stage):
    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        live.photos(self.data, 60, size='64x48', mean_kb=3)
        self.random = random.Random(11)

    def stuck(self, **wishes):
        """A daemon in which the reads of one file never come back, and which file that is."""
        name = sorted(os.listdir(os.path.join(self.data, 'class000')))[0]
        return live.Daemon(self.dir, self.data,
                           options=['--set', 'reader=pread', '--set', 'read_deadline=3600'],
                           env=stage.preload(stuck='class000/' + name, **wishes))

    def ended(self, daemon):
        """Its exit status; nothing of it may be left."""
        status = daemon.process.wait(live.WAIT)
        self.assertFalse(os.path.exists(daemon.socket), 'the socket is left')
        return status

    def test_d05_the_first_signal_publishes_what_is_in_flight(self):
        """Every batch that has a slot waits for one sample when the signal comes."""
        gate = self.path('gate')
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.stuck(gate=gate) as daemon:
                client = self.client(daemon)
                lane = client.do('open', self.data, order=3, slots=8, **KEYS)['lane']
                self.soon(lambda: stage.counters(daemon)['reads'] == (8 + 2) * 4 - 1, 'the rest')
                daemon.process.send_signal(number)
                self.soon(lambda: 'stopping: ' in daemon.read_log(), 'the signal')
                answer = client('next', lane, 0)
                self.assertEqual(-errno.EAGAIN, answer['r'], answer)
                with open(gate, 'w'):
                    pass
                self.assertEqual(0, self.ended(daemon), daemon.read_log())
                os.unlink(gate)
                self.assertIn('drained: exit', daemon.read_log())
                self.assertNotIn('second signal', daemon.read_log())
                answer = client('drain', lane, 0)
                self.assertEqual((8, -errno.EPIPE), (answer['steps'], answer['r']), answer)

    def test_d05_a_second_signal_ends_it_at_once(self):
        """A lane whose sample never comes is not waited for any more."""
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)):
            with self.stuck(patient=1) as daemon:
                self.client(daemon).do('open', self.data, order=3, **KEYS)
                self.soon(lambda: stage.counters(daemon)['reads_in_flight'] == 1, 'stuck')
                daemon.process.send_signal(first)
                self.soon(lambda: 'stopping: ' in daemon.read_log(), 'the first signal')
                daemon.process.send_signal(second)
                self.assertEqual(0, self.ended(daemon))
                self.assertIn('second signal: exit at once', daemon.read_log())

    def test_d05_a_second_signal_ends_it_while_threads_are_waited_for(self):
        """The lane is closed, so that nothing is left to drain; its read is still out."""
        with self.stuck(patient=1) as daemon:
            client = self.client(daemon)
            lane = client.do('open', self.data, order=3, **KEYS)['lane']
            self.soon(lambda: stage.counters(daemon)['reads_in_flight'] == 1, 'stuck')
            client.do('close', lane)
            self.soon(lambda: not stage.stat(daemon)['lanes'], 'the lane closed')
            daemon.process.send_signal(signal.SIGTERM)
            self.soon(lambda: 'drained: exit' in daemon.read_log(), 'the first signal')
            self.assertIsNone(daemon.process.poll())
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(0, self.ended(daemon))

    def test_d05_nothing_holds_up_the_exit_for_ever(self):
        """Without a second signal the stuck read is given up in its time."""
        with self.stuck() as daemon:
            self.client(daemon).do('open', self.data, order=3, **KEYS)
            self.soon(lambda: stage.counters(daemon)['reads_in_flight'] == 1, 'stuck')
            daemon.process.send_signal(signal.SIGTERM)
            if live.LONG:
                self.assertEqual(0, self.ended(daemon))
                self.assertIn('lanes were not drained in time', daemon.read_log())
            else:
                daemon.process.send_signal(signal.SIGINT)
                self.assertEqual(0, self.ended(daemon))

    def test_d05_twice_quickly_while_a_client_attaches(self):
        """At any moment of an attach: an orderly end, and a sentence for the client."""
        for _ in range(100 if live.LONG else 12):
            with live.Daemon(self.dir, self.data) as daemon, live.Client() as client:
                client.do('connect', socket=daemon.socket)
                client.send('open', self.data, batch=60, size=224)
                time.sleep(self.random.random() * 0.02)
                for _ in range(2):
                    daemon.process.send_signal(signal.SIGTERM)
                    time.sleep(self.random.random() * 0.003)
                self.assertEqual(0, self.ended(daemon), daemon.read_log())
                answer = client.answer()
                if answer['r'] == 0:
                    answer = client('drain', 0, 1000)
                self.assertIn(answer['r'], (-errno.EPIPE, -errno.ESHUTDOWN), answer)
                self.assertIn(daemon.socket, answer['text'])

    def test_d09_a_killed_thread_is_a_killed_daemon(self):
        """No half of a daemon goes on: who waits for it is told at once."""
        for name in ('feeder-work', 'feeder-plan'):
            with self.stuck() as daemon:
                client = self.client(daemon)
                lane = client.do('open', self.data, order=3, **KEYS)['lane']
                self.soon(lambda: stage.counters(daemon)['reads_in_flight'] == 1, 'stuck')
                client.send('next', lane)
                os.kill(next(iter(stage.threads(daemon.process.pid, name))), signal.SIGKILL)
                self.assertEqual(-signal.SIGKILL, daemon.process.wait(live.WAIT))
                answer = client.answer()
                self.assertEqual(-errno.EPIPE, answer['r'])
                self.assertIn(daemon.socket, answer['text'])

    def test_d11_a_stopped_daemon_is_named_and_goes_on_later(self):
        with live.Daemon(self.dir, self.data) as daemon:
            client = self.client(daemon)
            want = client.do('open', self.data, **KEYS)
            whole = client.do('drain', want['lane'], 0)
            lane = client.do('open', self.data, name='again', timeout=400, **KEYS)['lane']
            client.do('next', lane)
            client.do('release', lane, 1)
            daemon.process.send_signal(signal.SIGSTOP)
            steps = 1
            while True:
                answer = client('next', lane)
                if answer['r'] < 0:
                    break
                client.do('release', lane, answer['number'])
                steps += 1
            # what was in the ring was delivered; what was not is missed in words
            self.assertLess(steps, 60 // 4)
            self.assertEqual(-errno.ETIMEDOUT, answer['r'])
            for word in (self.data, 'batch %d ' % (steps + 1), daemon.socket, 'stopped or stuck'):
                self.assertIn(word, answer['text'])
            daemon.process.send_signal(signal.SIGCONT)
            rest = client.do('drain', lane, 0)
            self.assertEqual((whole['steps'] - steps, whole['order_digest']),
                             (rest['steps'], rest['order_digest']))


if __name__ == '__main__':
    live.main()
