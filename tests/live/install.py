# SPDX-License-Identifier: Apache-2.0
"""What is installed works from where it is installed, and every program ends as it says it does."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import feeder_live as live
from feeder_live import BENCH, BUILD, FEEDERD, INDEX, SOURCE, STAT, Daemon, photos, run


class Installed(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        # what a packager does
        cls.top = tempfile.mkdtemp(prefix='feeder-live-install-')
        run('meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', cls.top,
            check=0)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def setUp(self):
        super().setUp()
        pkgconfig = os.path.dirname(self.one('feeder.pc'))
        self.libdir = os.path.dirname(pkgconfig)
        self.pkgconfig = {'PKG_CONFIG_PATH': pkgconfig, 'PKG_CONFIG_SYSROOT_DIR': self.top}
        self.prefix = os.path.dirname(os.path.dirname(self.one('bin/feederd')))
        # an installed program is found by nothing that points into the build
        for name in ('FEEDER_DAEMON', 'LD_LIBRARY_PATH'):
            os.environ.pop(name, None)
        self.data = self.path('data')
        photos(self.data, 150, mean_kb=8, size='100x80')

    def must(self, *args, **options):
        return run(*args, check=0, **options).stdout

    def one(self, name):
        found = glob.glob(self.top + '/**/' + name, recursive=True)
        self.assertEqual(1, len(found), '%s: %s' % (name, found))
        return found[0]

    def flags(self, *words):
        return self.must('pkg-config', *words, 'feeder', env=self.pkgconfig).split()

    def compile(self, name, *flags):
        program = self.path(name)
        sanitize = ['-fsanitize=address,undefined'] if live.sanitized() else []
        self.must('gcc', '-Wall', '-Werror', '-o', program, *sanitize,
                  os.path.join(SOURCE, 'clients/c/examples/%s.c' % name), *flags)
        return program

    def test_files(self):
        for name in ('feeder.h', 'version.h', 'status.h'):
            self.one('include/feeder/' + name)
        for name in ('feederd', 'feeder-bench', 'feeder-stat', 'feeder-index'):
            self.assertTrue(os.access(self.one('bin/' + name), os.X_OK))
        for name in ('system/feeder.service', 'user/feeder.service'):
            with open(self.one('lib/systemd/' + name)) as f:
                unit = f.read()
            prefix = self.prefix[len(self.top):]
            self.assertIn('ExecStart=%s/bin/feederd' % prefix, unit)
            self.assertNotIn('@bindir@', unit)
        with open(self.one('lib/sysusers.d/feeder.conf')) as f:
            self.assertIn('u feeder', f.read())
        # the settings that come as an example are in order, but for their roots
        with open(self.one('feeder.conf.example')) as f:
            text = f.read()
        with open(self.path('feeder.conf'), 'w') as f:
            f.write(re.sub('(?m)^# (?=[a-z_]+ = )(?!allow)', '', text) + '[root %s]\n' % self.dir)
        self.must(self.one('bin/feederd'), '--config', self.path('feeder.conf'), '--check-config')
        self.assertEqual([], [p for p in glob.glob(self.top + '/**', recursive=True)
                              if os.path.basename(p) in ('feeder-photos', 'live-client')])

    def test_pages(self):
        if not glob.glob(os.path.join(BUILD, 'man', '*.8')):
            self.skipTest('built without scdoc')
        for page in ('man8/feederd.8', 'man5/feeder.conf.5', 'man1/feeder-stat.1',
                     'man1/feeder-bench.1', 'man1/feeder-index.1', 'man3/feeder.3'):
            with open(self.one('man/' + page)) as f:
                text = f.read()
            self.assertIn('.TH', text)
            self.assertIn('NAME', text)

    def test_program(self):
        """gcc and pkg-config; libfeeder finds the feederd that was installed with it."""
        first = self.compile('first', *self.flags('--cflags', '--libs'))
        env = {'LD_LIBRARY_PATH': self.libdir, 'PATH': '/usr/bin:/bin'}
        out = self.must(first, self.data, env=env)
        digest = re.search('150 images, order digest ([0-9a-f]{16})', out).group(1)
        bench = self.must(self.one('bin/feeder-bench'), self.data, '--batch', 64, '--json', env=env)
        self.assertIn('"order_digest":"%s"' % digest, bench.replace(' ', ''))
        self.assertEqual(self.must('pkg-config', '--modversion', 'feeder', env=self.pkgconfig),
                         self.must(self.one('bin/feederd'), '--version').split()[1] + '\n')

    def test_private_daemon_is_the_installed_one(self):
        train = self.compile('train', *self.flags('--cflags', '--libs'))
        trainer = subprocess.Popen(
            [train, self.data, '100000', self.path('cursor')], stdout=subprocess.DEVNULL,
            env=dict(os.environ, LD_LIBRARY_PATH=self.libdir, PATH='/usr/bin:/bin'))
        try:
            self.soon(self.daemons, 'a private daemon')
            self.soon(lambda: os.path.exists(self.path('cursor')), 'a saved cursor')
            self.assertEqual([os.path.realpath(self.one('bin/feederd'))],
                             [os.readlink('/proc/%d/exe' % pid) for pid in self.daemons()])
        finally:
            trainer.kill()
            trainer.wait()

    def test_static(self):
        shared = [f for f in self.flags('--cflags', '--libs', '--static') if f != '-lfeeder']
        first = self.compile('first', *shared, self.one('libfeeder.a'), '-pthread')
        # it is not beside a library now: from PATH
        path = os.path.dirname(self.one('bin/feederd')) + ':/usr/bin:/bin'
        self.assertIn('150 images', self.must(first, self.data, env={'PATH': path}))
        done = run(first, self.data, env={'PATH': '/usr/bin:/bin'}, check=1)
        self.assertIn('no feederd', done.stderr)


class Statuses(live.LiveTest):
    """0 done, 1 a finding, 2 usage, 3 no daemon."""

    def ends(self, status, *args, words=(), **options):
        done = run(*args, check=status, **options)
        for word in words:
            self.assertIn(word, done.stdout + done.stderr)
        return done

    def test_every_program(self):
        for program in (FEEDERD, BENCH, STAT, INDEX):
            name = os.path.basename(program)
            version = self.ends(0, program, '--version').stdout
            self.assertRegex(version, r'^%s \d+\.\d+\.\d+\n$' % name)
            self.assertIn('--version', self.ends(0, program, '--help').stdout)
            self.ends(2, program, '--no-such-option', words=('no-such-option',))
        self.ends(2, FEEDERD, 'argument')
        self.ends(2, BENCH)
        self.ends(2, BENCH, self.dir, '--batch', '0')
        self.ends(2, BENCH, self.dir, '--order', 'random')
        self.ends(2, BENCH, self.dir, '--world', '2', '--rank', '2')
        self.ends(2, BENCH, self.dir, 'another')
        self.ends(2, STAT, 'no-such-command')
        self.ends(2, STAT, 'json', 'why')
        self.ends(2, STAT, 'why', '--interval', 'x')
        self.ends(2, INDEX)
        self.ends(2, INDEX, self.dir, 'another')

    def test_bench(self):
        data, bad = self.path('data'), self.path('bad')
        photos(data, 40, mean_kb=8, size='100x80')
        photos(bad, 40, mean_kb=8, size='100x80')
        for path in glob.glob(bad + '/*/*')[:2]:
            os.truncate(path, 300)
        common = ('--batch', 8, '--size', 32)
        self.ends(0, BENCH, data, *common)
        self.ends(0, BENCH, bad, *common, '--bad', 'mask')
        self.ends(0, BENCH, bad, *common)
        self.ends(1, BENCH, bad, *common, '--bad', 'fail', words=('.jpg',))
        for path in glob.glob(bad + '/*/*'):
            os.truncate(path, 300)
        self.ends(1, BENCH, bad, *common, words=('budget',))
        self.ends(1, BENCH, self.path('none'), words=(self.path('none'), 'No such file'))
        self.ends(3, BENCH, data, '--socket', self.path('none'), words=(self.path('none'),))
        # a private daemon that does not start is none, too
        self.ends(3, BENCH, data, env={'FEEDER_DAEMON': '/bin/false'}, words=('/bin/false',))
        self.ends(3, BENCH, data, env={'FEEDER_DAEMON': '/none'}, words=('/none',))
        self.ends(3, BENCH, data, '--set', 'no_such_key=1', words=('no_such_key',))

    def test_stat(self):
        commands = ('top', 'json', 'why', 'errors', 'metrics', 'digest', 'health')
        # without --socket it would find daemons that are no business of this test
        for command in commands:
            self.ends(3, STAT, command, '--socket', self.path('none'))
        png = self.path('data', 'a', '0.png')
        live.png(png, 9)
        with Daemon(self.dir, self.path('data')) as daemon:
            for command in commands:
                self.ends(0, STAT, command, '--socket', daemon.socket, '--interval', '0.05')
            self.ends(0, STAT, 'health', words=(daemon.socket,),
                      env={'FEEDER_SOCKET': daemon.socket})
            daemon.process.send_signal(signal.SIGSTOP)
            self.ends(1, STAT, 'health', '--socket', daemon.socket, words=('unwell', daemon.socket))
            daemon.process.send_signal(signal.SIGCONT)
            self.ends(0, STAT, 'health', '--socket', daemon.socket)

    def test_index(self):
        for i in range(3):
            live.png(self.path('data', 'a', '%d.png' % i), 9)
        self.ends(0, INDEX, self.path('data'), words=('samples      3', 'built'))
        self.ends(0, INDEX, self.path('data'), words=('samples      3', 'reused'))
        self.ends(1, INDEX, self.path('none'), words=('No such file',))
        os.mkdir(self.path('data', 'empty'))
        self.ends(1, INDEX, self.path('data'), words=('empty',))
        self.ends(0, INDEX, self.path('data'), '--allow-empty')

    def test_daemon(self):
        live.png(self.path('data', 'a', '0.png'), 9)
        with Daemon(self.dir, self.path('data')) as daemon:
            for number in (signal.SIGTERM, signal.SIGINT):
                daemon.process.send_signal(number)
                self.assertEqual(0, daemon.process.wait(live.WAIT), daemon.read_log())
                self.assertFalse(os.path.exists(daemon.socket))
                daemon.start()


if __name__ == '__main__':
    for tool in ('meson', 'gcc', 'pkg-config'):
        if not shutil.which(tool):
            print('%s is not here' % tool)
            sys.exit(77)
    live.main()
