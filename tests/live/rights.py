# SPDX-License-Identifier: Apache-2.0
"""Who may have what read, and what a client can break: only its own.

Needs root, and another user beside it: FEEDER_TEST_USER, by default nobody.
"""
import errno
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys

import feeder_live as live
from feeder_live import (FEEDERD, HOSTILE, LONG, STAT, Client, Daemon, bench, for_everyone,
                         photos, png, run)

ID_ASKED, ID, POSITION, STATUS, VALID, RED = range(6)
INSIDE, OUTSIDE = 40, 200  # greys: nothing of the second may ever be delivered
OUTSIDE_ROOT = 5           # enum feeder_status
GOOD = {'order': 3, 'bad': 2, 'size': 32, 'train': 0}  # sequential, mask


def account(name):
    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


class Rights(live.LiveTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)  # else every refusal below would be this directory's
        self.user = account(os.environ.get('FEEDER_TEST_USER', 'nobody'))
        self.third = account('daemon')
        self.root = self.path('root')
        self.secret = self.path('secret')
        for name in ('a', 'b'):
            for i in range(10):
                png(os.path.join(self.root, 'data', name, '%d.png' % i), INSIDE)
                png(os.path.join(self.secret, 'data', name, '%d.png' % i), OUTSIDE)
        self.data = os.path.join(self.root, 'data')

    def config(self, text):
        with open(self.path('feeder.conf'), 'w') as f:
            f.write(text)
        return ['--config', self.path('feeder.conf')]

    def connected(self, daemon, user=None):
        client = Client(user=user)
        client.do('connect', socket=daemon.socket)
        return client

    def assert_refused(self, answer, *words, code=errno.EACCES):
        self.assertEqual(-code, answer['r'], answer)
        for word in words:
            self.assertIn(word, answer['text'])

    def assert_inside(self, places):
        """Nothing but what lies in the root was delivered; the numbers of good and bad places."""
        for place in places:
            self.assertIn(place[RED], (INSIDE, 0) if not place[VALID] else (INSIDE,), place)
        return sum(p[VALID] for p in places), sum(not p[VALID] for p in places)


class Others(Rights):
    """Clients of another uid."""

    def test_refused_by_default(self):
        with Daemon(self.dir, self.root) as daemon:
            self.assertEqual(0o600, os.stat(daemon.socket).st_mode & 0o777)
            with Client(user=self.user) as client:
                self.assert_refused(client('connect', socket=daemon.socket), daemon.socket,
                                    'Permission denied')
                # and if somebody opened the socket to all, the daemon still says no
                os.chmod(daemon.socket, 0o666)
                self.assert_refused(client('connect', socket=daemon.socket),
                                    'no root of this daemon admits uid %d' % self.user[0])
            with self.connected(daemon) as client:
                client.do('open', self.data, batch=4, **GOOD)

    def test_allow(self):
        other = self.path('other')
        shutil.copytree(self.data, os.path.join(other, 'data'))
        options = self.config('[root %s]\nallow = %d\n[root %s]\n[root %s]\nallow = @%d\n' % (
            self.root, self.user[0], self.secret, other, self.third[1]))
        for directory, _, names in os.walk(self.data):
            for name in names:  # allow declares the files readable, whatever their modes are
                os.chmod(os.path.join(directory, name), 0o600)
        with Daemon(self.dir, options=options) as daemon:
            own = self.connected(daemon)
            for root in (self.root, self.secret, other):
                own.do('open', os.path.join(root, 'data'), batch=4, **GOOD)
            with self.connected(daemon, self.user) as client:
                client.do('open', self.data, batch=4, **GOOD)
                self.assertEqual((20, 0), self.assert_inside(client.epoch(0)))
                for root in (self.secret, other):
                    path = os.path.join(root, 'data')
                    # it is named to those who may have it only
                    answer = client('open', path, batch=4, **GOOD)
                    self.assert_refused(answer, path, 'uid %d' % self.user[0], self.root)
                    self.assertNotIn(root + ' ', answer['text'] + ' ')
                # one sees one's own lanes; root sees all
                self.assertEqual(1, len(self.lanes(daemon, self.user)))
                self.assertEqual(4, len(self.lanes(daemon)))
            # by group
            with self.connected(daemon, self.third) as client:
                client.do('open', os.path.join(other, 'data'), batch=4, **GOOD)
                self.assert_refused(client('open', self.data, batch=4, **GOOD), self.data)
            with Client(user=account('sys')) as client:
                self.assert_refused(client('connect', socket=daemon.socket), 'admits uid')
            own.end()

    def lanes(self, daemon, user=None):
        options = {'user': user[0], 'group': user[1], 'extra_groups': []} if user else {}
        program = for_everyone(os.path.abspath(STAT))
        options['env'] = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(program))
        out = subprocess.run([program, 'json', '--socket', daemon.socket],
                             stdout=subprocess.PIPE, check=True, **options).stdout
        return json.loads(out)['lanes']

    def test_reload_takes_the_right_away(self):
        options = self.config('[root %s]\nallow = %d\n' % (self.root, self.user[0]))
        with Daemon(self.dir, options=options) as daemon:
            self.connected(daemon, self.user).end()
            self.config('[root %s]\n' % self.root)
            daemon.process.send_signal(signal.SIGHUP)
            self.soon(lambda: os.stat(daemon.socket).st_mode & 0o777 == 0o600, 'the reload')
            with Client(user=self.user) as client:
                self.assert_refused(client('connect', socket=daemon.socket), 'Permission denied')


class Paths(Rights):
    """What lies beneath a root, and what only seems to."""

    def test_outside(self):
        beside = self.root + '-evil'  # the root's path is a prefix of its path
        shutil.copytree(self.secret, beside)
        os.symlink(os.path.join(self.secret, 'data'), os.path.join(self.root, 'out'))
        os.symlink('../secret/data', os.path.join(self.root, 'relative'))
        os.symlink('/proc/self/root' + self.secret, os.path.join(self.root, 'magic'))
        os.symlink('data', os.path.join(self.root, 'in'))
        with open(os.path.join(self.secret, 'list.tsv'), 'w') as f:
            f.write('data/a/0.png\t0\n')
        os.symlink(os.path.join(self.secret, 'list.tsv'), os.path.join(self.root, 'list.tsv'))
        with Daemon(self.dir, self.root) as daemon, self.connected(daemon) as client:
            for path in (self.secret, os.path.join(self.secret, 'data'), beside, self.dir, '/',
                         '/etc', '/proc', os.path.join(self.root, '..', 'secret', 'data'),
                         os.path.join(self.data, '..', '..', 'secret'),
                         os.path.join(self.root, 'out'), os.path.join(self.root, 'relative'),
                         os.path.join(self.root, 'magic'), os.path.join(self.root, 'out', 'a'),
                         os.path.join(self.secret, 'list.tsv'),
                         os.path.join(self.root, 'list.tsv')):
                self.assert_refused(client('open', path, batch=4, **GOOD), path + ' ', self.root)
            self.assert_refused(client('open', os.path.join(self.root, 'none'), batch=4, **GOOD),
                                'none', code=errno.ENOENT)
            # what comes back, or stays, is beneath
            for path in (self.data, os.path.join(self.root, '..', 'root', 'data'),
                         os.path.join(self.root, 'in'), os.path.join(self.secret, '../root/data')):
                lane = client.do('open', path, batch=4, **GOOD)['lane']
                self.assertEqual((20, 0), self.assert_inside(client.epoch(lane)))

    def test_neither_directory_nor_file(self):
        os.mkfifo(os.path.join(self.root, 'fifo'))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.join(self.root, 'socket'))
        os.mknod(os.path.join(self.root, 'device'), 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        with Daemon(self.dir, self.root) as daemon, self.connected(daemon) as client:
            for name, word in (('fifo', 'FIFO'), ('socket', 'socket'), ('device', 'device')):
                self.assert_refused(
                    client('open', os.path.join(self.root, name), batch=4, **GOOD), name, word,
                    code=errno.EINVAL)

    def test_links_in_a_dataset(self):
        """A link is judged by where it ends: outside it is a bad sample and never delivered."""
        other = self.path('other')
        png(os.path.join(other, 'x.png'), INSIDE)
        bad = ['out.png', 'relative.png', 'magic.png']
        os.symlink(os.path.join(self.secret, 'data/a/0.png'), os.path.join(self.data, 'a/out.png'))
        os.symlink('../../../secret/data/a/1.png', os.path.join(self.data, 'a/relative.png'))
        os.symlink('/proc/self/root%s/data/a/2.png' % self.secret,
                   os.path.join(self.data, 'a/magic.png'))
        os.symlink('../b/0.png', os.path.join(self.data, 'a/within.png'))
        os.symlink(os.path.join(other, 'x.png'), os.path.join(self.data, 'a/across.png'))
        with Daemon(self.dir, self.root, other) as daemon, self.connected(daemon) as client:
            got = client.do('open', self.data, batch=4, **GOOD)
            self.assertEqual(25, got['samples'])
            places = client.epoch(0)
            self.assertEqual((22, 3), self.assert_inside(places))
            cases = json.loads(run(STAT, 'errors', '--json', '--socket', daemon.socket,
                                   check=0).stdout)['bad']
            words = {os.path.basename(case['path']): case['status'] for case in cases}
            self.assertEqual(set(bad), set(words))
            for name in ('out.png', 'relative.png'):
                self.assertEqual('outside-root', words[name])
        # with the other root gone its link leads out too
        with Daemon(self.dir, self.root) as daemon, self.connected(daemon) as client:
            client.do('open', self.data, batch=4, **GOOD)
            places = client.epoch(0)
            self.assertEqual((21, 4), self.assert_inside(places))
            self.assertEqual(3, sum(p[STATUS] == OUTSIDE_ROOT for p in places))

    def test_a_class_that_is_a_link_out(self):
        """Not even the names in it are told."""
        os.symlink(os.path.join(self.secret, 'data', 'a'), os.path.join(self.data, 'c'))
        with Daemon(self.dir, self.root) as daemon, self.connected(daemon) as client:
            answer = client('open', self.data, batch=4, **GOOD)
            self.assert_refused(answer, os.path.join(self.data, 'c'), 'leads out', code=errno.EXDEV)

    def test_swapped(self):
        """What is put in the place of a directory while it is read is never followed out of it."""
        def away(path, then):
            os.rename(path, path + '.away')
            then(path)
        def link_out(path):
            os.symlink(os.path.join(self.secret, os.path.relpath(path, self.root)), path)
        classes = [os.path.join(self.data, name) for name in 'ab']
        files = [os.path.join(self.data, 'ab'[i % 2], '%03d.png' % i) for i in range(100)]
        # name, paths that go, what comes in their place, whether the daemon's descriptor goes along
        for name, paths, then, goes_along in (
                ('dataset by another', [self.data], lambda path: os.rename(
                    os.path.join(self.secret, 'data'), path), True),
                ('dataset by a link', [self.data], link_out, True),
                ('root by a link', [self.root], link_out, True),
                ('classes by links', classes, link_out, False),
                ('files by links', files, link_out, False)):
            with self.subTest(name):
                for top, grey in ((self.root, INSIDE), (self.secret, OUTSIDE)):
                    shutil.rmtree(top)
                    for i in range(100):  # more than is read ahead
                        path = os.path.join(top, 'data', 'ab'[i % 2], '%03d.png' % i)
                        png(path, grey, 100, 100)
                        os.utime(path, ns=(1, 1))  # sizes and times give nothing away
                self.swap_while_reading(lambda: [away(path, then) for path in paths], goes_along)
                if os.path.islink(self.root):
                    os.unlink(self.root)
                    os.rename(self.root + '.away', self.root)
                if not os.path.isdir(self.secret):
                    os.mkdir(self.secret)

    def epoch_or_stop(self, client, lane):
        """The places of an epoch, or of its beginning where too much of it is gone."""
        places = []
        while True:
            batch = client('next', lane)
            if batch['r'] == -errno.EBADMSG:
                self.assertIn('over the budget', batch['text'])
                return places
            self.assertEqual(0, batch['r'], batch)
            client.do('release', lane, batch['number'])
            places += batch['places']
            if batch['last']:
                return places

    def swap_while_reading(self, swap, goes_along):
        # a small read-ahead, so that most of the epoch is read after the swap
        with Daemon(self.dir, self.root, options=['--set', 'readahead=1M']) as daemon:
            with self.connected(daemon) as client:
                client.do('open', self.data, batch=2, slots=2, **GOOD)
                batch = client.do('next', 0)
                swap()
                client.do('release', 0, batch['number'])
                places = batch['places'] + self.epoch_or_stop(client, 0)
                good, _ = self.assert_inside(places)
                self.assertEqual(goes_along, good == 100)
                if goes_along:
                    return
                # what is opened now is judged by what it is now
                lane = client.do('open', self.data, batch=2, **GOOD)['lane']
                self.assertEqual(0, self.assert_inside(self.epoch_or_stop(client, lane))[0])


class Starts(Rights):
    """What a daemon refuses to start with, and what it starts over."""

    def refused(self, *options, words=()):
        done = run(FEEDERD, '--foreground', *options, check=1)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_roots(self):
        at = ('--socket', self.path('s.sock'))
        self.refused(*at, '--config', '/dev/null', words=('no root', '--root'))
        self.refused(*at, '--root', self.path('none'), words=(self.path('none'), 'No such file'))
        self.refused(*at, '--root', os.path.join(self.data, 'a', '0.png'),
                     words=('Not a directory',))
        self.assertFalse(os.path.exists(self.path('s.sock')))

    def test_settings(self):
        for text, words in (
                ('[daemon]\nworkers = 2\nwurkers = 3\n', (':3:', 'wurkers')),
                ('# a\n\n[daemons]\nworkers = 2\n', (':3:', 'daemons')),
                ('[limits]\nlanes = many\n', (':2:', 'lanes')),
                ('[root %s]\nallow = no-such-user\n' % self.root, (':2:', 'no-such-user')),
                ('[root %s]\nallowed = 3\n' % self.root, (':2:', 'allowed')),
                ('[daemon]\nworkers\n[root %s]\n' % self.root, (':2:',)),
                ('', ('no root',))):
            options = self.config(text)
            self.refused(*options, '--check-config', words=words)
            self.refused(*options, '--socket', self.path('s.sock'), words=words)
        self.assertFalse(os.path.exists(self.path('s.sock')))
        options = self.config('[daemon]\nworkers = 2\n[root %s]\nallow = %d, @%d\n' % (
            self.root, self.user[0], self.user[1]))
        done = run(FEEDERD, *options, '--check-config', check=0)
        self.assertIn('1 roots', done.stdout)
        self.refused('--set', 'wurkers=3', '--root', self.root, '--check-config',
                     words=('wurkers',))

    def test_one_instance(self):
        with Daemon(self.dir, self.root) as daemon:
            self.refused('--socket', daemon.socket, '--root', self.root,
                         words=(daemon.socket, 'another feederd serves'))
            bench(self.data, '--batch', 4, '--size', 32, '--socket', daemon.socket)
            # killed, it leaves socket and lock behind; the next one takes both over
            daemon.kill()
            self.assertTrue(os.path.exists(daemon.socket))
            daemon.start()
            bench(self.data, '--batch', 4, '--size', 32, '--socket', daemon.socket)
            # one that does not answer, but lives, is not pushed aside either
            daemon.process.send_signal(signal.SIGSTOP)
            self.refused('--socket', daemon.socket, '--root', self.root,
                         words=('another feederd',))
            daemon.process.send_signal(signal.SIGCONT)
            bench(self.data, '--batch', 4, '--size', 32, '--socket', daemon.socket)
            self.assertEqual(0, daemon.stop())
            self.assertFalse(os.path.exists(daemon.socket))

    def test_stale_socket_without_a_lock(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(self.path('feeder.sock'))
        with Daemon(self.dir, self.root) as daemon:
            bench(self.data, '--batch', 4, '--size', 32, '--socket', daemon.socket)

    def test_what_is_not_a_socket_stays(self):
        path = self.path('file.sock')
        with open(path, 'w') as f:
            f.write('mine')
        self.refused('--socket', path, '--root', self.root, words=(path, 'not a socket'))
        with open(path) as f:
            self.assertEqual('mine', f.read())
        os.unlink(path)
        os.symlink(self.path('elsewhere'), path)
        self.refused('--socket', path, '--root', self.root, words=(path, 'not a socket'))
        self.assertTrue(os.path.islink(path))

    def test_directory_of_others(self):
        os.mkdir(self.path('open'))
        os.chmod(self.path('open'), 0o777)
        self.refused('--socket', self.path('open', 's'), '--root', self.root,
                     words=(self.path('open'), 'sticky'))
        os.chmod(self.path('open'), 0o755)
        os.chown(self.path('open'), *self.user)
        self.refused('--socket', self.path('open', 's'), '--root', self.root,
                     words=(self.path('open'), 'uid %d' % self.user[0]))


class Hostile(Rights):
    """Noise hurts its sender: others' pixels, and the daemon, stay what they were."""
    PACKETS = 100000 if LONG else 6000
    SCRIBBLES = 5000000 if LONG else 400000
    SEEDS = range(5 if LONG else 3)

    def attack(self, daemon, what, count, seed):
        # root is kept out by seals alone; but noise of the good client's uid may spend its quota
        user = (0, 0) if what == 'words' and seed % 2 == 0 else self.user
        program = for_everyone(os.path.abspath(HOSTILE))
        return subprocess.Popen(
            [program, daemon.socket, self.photos, what, str(count), str(seed)],
            stdout=subprocess.PIPE, text=True, user=user[0], group=user[1], extra_groups=[],
            env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(program)))

    def run_beside(self, what, count):
        self.photos = os.path.join(self.root, 'photos')
        photos(self.photos, 64, mean_kb=10, size='120x90')
        options = self.config('[root %s]\nallow = %d\n[limits]\nring_bytes = 64M\n' % (
            self.root, self.user[0])) + ['--set', 'reader=pread']
        common = (self.photos, '--batch', 8, '--size', 48, '--epochs', 3, '--digest')
        results = []
        with Daemon(self.dir, options=options) as daemon:
            common += ('--socket', daemon.socket)
            quiet = bench(*common)
            descriptors = daemon.descriptors()
            for seed in self.SEEDS:
                hostile = self.attack(daemon, what, count, seed)
                runs = 0
                while hostile.poll() is None:
                    got = bench(*common)
                    runs += 1
                    for name in ('order_digest', 'pixel_digest', 'images', 'bad_samples'):
                        self.assertEqual(quiet[name], got[name])
                out = hostile.communicate()[0]
                self.assertEqual(0, hostile.returncode, out)
                self.assertGreater(runs, 0)
                results.append(json.loads(out))
                self.assertIsNone(daemon.process.poll(), daemon.read_log()[-4000:])
            self.soon(lambda: daemon.descriptors() <= descriptors,
                      'the %d descriptors of before' % descriptors)
            state = json.loads(run(STAT, 'json', '--socket', daemon.socket, check=0).stdout)
            self.assertEqual([], state['lanes'])
            self.assertEqual(0, daemon.stop(), daemon.read_log()[-4000:])
        return results

    def test_packets(self):
        for result in self.run_beside('packets', self.PACKETS):
            # the noise is understood well enough to be answered, often enough with yes
            self.assertGreater(result['sessions'], self.PACKETS // 200)
            self.assertGreater(result['refusals'], self.PACKETS // 100)
            self.assertGreater(result['answers'] - result['refusals'], self.PACKETS // 100)

    def test_packets_without_bytes(self):
        """To a receiver they look like the end of the stream, and yet may bring descriptors."""
        with Daemon(self.dir, self.root) as daemon:
            descriptors = daemon.descriptors()
            for _ in range(50):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                    s.connect(daemon.socket)
                    socket.send_fds(s, [b''], [0, 1, 2])
            # who comes later is answered later
            bench(self.data, '--batch', 4, '--size', 32, '--socket', daemon.socket)
            self.soon(lambda: daemon.descriptors() <= descriptors,
                      'the %d descriptors of before' % descriptors)

    def test_words(self):
        for result in self.run_beside('words', self.SCRIBBLES):
            self.assertEqual(0, result['let_through'])
            self.assertGreater(result['published'], 4)


if __name__ == '__main__':
    if os.geteuid() != 0:
        print('tests of rights need root, to be two users')
        sys.exit(77)
    live.main()
