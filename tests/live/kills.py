# SPDX-License-Identifier: Apache-2.0
"""kill -9 of either side, at random points: nothing is left behind that stands in anyone's way."""
import errno
import os
import random
import signal
import subprocess
import time

import feeder_live as live
from feeder_live import BENCH, LONG, Daemon, bench, photos


def shared_memory():
    return sorted(os.listdir('/dev/shm')) if os.path.isdir('/dev/shm') else []


class Kills(live.LiveTest):
    CLIENT_KILLS = 200 if LONG else 40
    DAEMON_KILLS = 40 if LONG else 8

    def setUp(self):
        super().setUp()
        self.data = self.path('data')
        photos(self.data, 120, mean_kb=10, size='120x90')
        self.random = random.Random(7)

    def client(self, socket, *options):
        return subprocess.Popen(
            [BENCH, self.data, '--batch', '8', '--size', '32', '--epochs', '100000',
             '--socket', socket] + [str(o) for o in options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_clients(self):
        before = shared_memory()
        with Daemon(self.dir, self.data) as daemon:
            want = bench(self.data, '--batch', 8, '--size', 32, '--digest',
                         '--socket', daemon.socket)
            descriptors = daemon.descriptors()
            for _ in range(self.CLIENT_KILLS):
                client = self.client(daemon.socket)
                time.sleep(self.random.random() * 0.15)
                client.kill()
                client.wait()
            # the rank's name is free at once, and the pixels are those of before
            got = bench(self.data, '--batch', 8, '--size', 32, '--digest',
                         '--socket', daemon.socket)
            self.assertEqual((want['order_digest'], want['pixel_digest']),
                             (got['order_digest'], got['pixel_digest']))
            deadline = time.monotonic() + live.WAIT
            while daemon.descriptors() > descriptors and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertLessEqual(daemon.descriptors(), descriptors, daemon.read_log()[-2000:])
            self.assertEqual(0, daemon.stop(), daemon.read_log()[-2000:])
        self.assertEqual(before, shared_memory())

    def test_daemon(self):
        with Daemon(self.dir, self.data) as daemon:
            for _ in range(self.DAEMON_KILLS):
                client = self.client(daemon.socket)
                time.sleep(self.random.random() * 0.3)
                daemon.kill()
                # the client ends by itself, with an error and not by a signal
                self.assertIn(client.wait(live.WAIT), (1, 3))
                daemon.start()
                bench(self.data, '--batch', 8, '--size', 32, '--steps', 3,
                      '--socket', daemon.socket)
            left = [n for n in os.listdir(self.dir) if n not in (
                'feeder.sock', 'feederd.log', 'cache', 'data', 'run')]
            self.assertEqual([], [n for n in left if not n.endswith('.lock')])

    def test_what_a_stopped_daemon_published_is_delivered(self):
        with Daemon(self.dir, self.data) as daemon, live.Client() as client:
            client.do('connect', socket=daemon.socket)
            client.do('open', self.data, batch=8, size=32, slots=4)
            client.do('release', 0, client.do('next', 0)['number'])
            self.assertEqual(0, daemon.stop())
            # the slots that were being filled, to the last, and then the reason
            answer = client('drain', 0, 100)
            self.assertGreaterEqual(answer['steps'], 3, answer)
            self.assertEqual(-errno.EPIPE, answer['r'], answer)
            self.assertIn('published its last batch', answer['text'])

    def test_clients_that_leave_at_once(self):
        """Many deaths that the daemon finds in one look at its sockets."""
        with Daemon(self.dir, self.data) as daemon:
            for _ in range(self.DAEMON_KILLS):
                clients = [self.client(daemon.socket, '--world', 4, '--rank', r) for r in range(4)]
                time.sleep(0.1 + self.random.random() * 0.3)
                daemon.process.send_signal(signal.SIGSTOP)
                for client in clients:
                    client.kill()
                    client.wait()
                daemon.process.send_signal(signal.SIGCONT)
                bench(self.data, '--batch', 8, '--size', 32, '--steps', 3,
                      '--socket', daemon.socket)
            self.assertEqual(0, daemon.stop(), daemon.read_log()[-2000:])

    def test_private_daemon_goes_with_its_client(self):
        for _ in range(self.CLIENT_KILLS // 5):
            client = subprocess.Popen(
                [BENCH, self.data, '--batch', '8', '--size', '32', '--epochs', '100000'],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.random() * 0.3)
            client.kill()
            client.wait()
        self.assertEqual([], self.daemons_left())
        bench(self.data, '--batch', 8, '--size', 32, '--steps', 3)


class Together(live.LiveTest):
    """Two jobs, two ranks and an evaluation lane at once on one daemon: none refused, none
    starved."""

    def test_five_lanes(self):
        data = self.path('data')
        photos(data, 200, mean_kb=20, size='200x150')
        with Daemon(self.dir, data) as daemon:
            def start(job, *options):
                return subprocess.Popen(
                    [BENCH, data, '--batch', '10', '--size', '64', '--socket', daemon.socket,
                     '--json'] + [str(o) for o in options], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env=dict(os.environ, FEEDER_JOB=job), text=True)

            # a fast drainer without end, beside it four lanes that must get through
            drainer = start('one', '--epochs', 100000)
            others = [start('two', '--world', 2, '--rank', 0),
                      start('two', '--world', 2, '--rank', 1), start('one', '--eval'),
                      start('three', '--order', 'feistel')]
            for process in others:
                out, err = process.communicate(timeout=live.WAIT)
                self.assertEqual(0, process.returncode, out + err)
            self.assertIsNone(drainer.poll())
            drainer.kill()
            drainer.communicate()


if __name__ == '__main__':
    live.main()
