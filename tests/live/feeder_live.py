# SPDX-License-Identifier: Apache-2.0
"""What live tests share: real photos, a real daemon in a directory of its own, feeder-bench's JSON.

Programs come from FEEDER_BUILD (the build directory). Counts are small; FEEDER_LONG=1 makes them
the full ones. Every daemon that a test starts must be gone when the test ends.
"""
import atexit
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

BUILD = os.environ.get('FEEDER_BUILD', 'build')
LONG = os.environ.get('FEEDER_LONG') == '1'
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))

FEEDERD = os.path.join(BUILD, 'src/daemon/feederd')
BENCH = os.path.join(BUILD, 'tools/bench/feeder-bench')
STAT = os.path.join(BUILD, 'tools/stat/feeder-stat')
INDEX = os.path.join(BUILD, 'tools/feeder-index')
PHOTOS = os.path.join(BUILD, 'tools/dev/feeder-photos')
CLIENT = os.path.join(BUILD, 'tests/live/live-client')
HOSTILE = os.path.join(BUILD, 'tests/live/live-hostile')
# Under a sanitizer everything is several times slower; waits are generous, never asserted on.
WAIT = 120


def run(*args, env=None, timeout=600, check=None):
    """Runs a program; its result with text output. check: the exit status that must come."""
    merged = dict(os.environ, **(env or {}))
    done = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=merged, timeout=timeout, errors='surrogateescape')
    if check is not None and done.returncode != check:
        raise AssertionError('%s: status %d, not %d\n%s%s' % (
            ' '.join(map(str, args)), done.returncode, check, done.stdout, done.stderr))
    return done


def photos(directory, count, seed=1, **options):
    """Makes photo-like JPEGs; options are those of feeder-photos (damage=50, mean_kb=20, …)."""
    args = [PHOTOS, directory, '--count', count, '--seed', seed]
    for name, value in options.items():
        args += ['--' + name.replace('_', '-'), value]
    run(*args, check=0)


def png(path, value, width=48, height=48):
    """Writes a PNG of one grey, of a size that does not depend on the grey."""
    def chunk(name, data):
        return (struct.pack('>I', len(data)) + name + data
                + struct.pack('>I', zlib.crc32(name + data)))
    rows = (b'\0' + bytes([value]) * (3 * width)) * height
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n'
                + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
                + chunk(b'IDAT', zlib.compress(rows, 0)) + chunk(b'IEND', b''))


def npy(path):
    """A one-dimensional .npy file of int64 or uint8 as a list, without NumPy."""
    with open(path, 'rb') as f:
        magic = f.read(8)
        assert magic[:7] == b'\x93NUMPY\x01', path
        header = f.read(struct.unpack('<H', f.read(2))[0]).decode()
        data = f.read()
    size, letter = (8, 'q') if "'<i8'" in header else (1, 'B')
    return list(struct.unpack('<%d%s' % (len(data) // size, letter), data))


def sanitized():
    """Whether the build has AddressSanitizer, whose own memory hides the daemon's."""
    try:
        with open(os.path.join(BUILD, 'meson-info/intro-buildoptions.json')) as f:
            options = {option['name']: option['value'] for option in json.load(f)}
    except OSError:
        return False
    return 'address' in options.get('b_sanitize', 'none')


def bench(dataset, *options, env=None, check=0):
    """feeder-bench --json as a dict."""
    done = run(BENCH, dataset, *options, '--json', env=env, check=check)
    return json.loads(done.stdout) if check == 0 else done


class Daemon:
    """A feederd of the test's own."""

    def __init__(self, directory, *roots, options=(), env=None):
        self.socket = os.path.join(directory, 'feeder.sock')
        self.log = os.path.join(directory, 'feederd.log')
        self.options = list(options)
        for root in roots:
            self.options += ['--root', str(root)]
        self.env = dict(os.environ, CACHE_DIRECTORY=os.path.join(directory, 'cache'), **(env or {}))
        self.process = None
        self.start()

    def start(self):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                [FEEDERD, '--foreground', '--socket', self.socket] + self.options,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError('feederd ended with %d: %s' % (
                    self.process.returncode, self.read_log()))
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                try:
                    s.connect(self.socket)
                    return
                except OSError:
                    time.sleep(0.02)
        raise AssertionError('feederd does not answer: ' + self.read_log())

    def read_log(self):
        with open(self.log, errors='replace') as f:
            return f.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError('feederd did not end on SIGTERM: ' + self.read_log())

    def memory(self):
        """Private and shared resident bytes, without the rings' shared memory: (anonymous, all)."""
        values = {}
        with open('/proc/%d/status' % self.process.pid) as f:
            for line in f:
                if line.startswith('Rss') or line.startswith('VmRSS'):
                    name, value = line.split()[:2]
                    values[name[:-1]] = int(value) * 1024
        return values['RssAnon'], values['VmRSS']

    def descriptors(self):
        return len(os.listdir('/proc/%d/fd' % self.process.pid))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.stop()
        # what a sanitizer said would go unnoticed with the directory
        log = self.read_log()
        if not error[0] and ('runtime error:' in log or 'Sanitizer:' in log):
            raise AssertionError(log[-20000:])


def for_everyone(program):
    """A copy of the program, with libfeeder, where every user may run it: the build need not be."""
    directory = tempfile.mkdtemp(prefix='feeder-live-program-')
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o755)
    shutil.copy(os.path.join(BUILD, 'clients/c/libfeeder.so.0'), directory)
    return shutil.copy(program, directory)


class Client:
    """A live-client (client.c): calling it is a command and gives its answer as a dict."""

    def __init__(self, env=None, user=None, cpus=None):
        options = {'user': user[0], 'group': user[1], 'extra_groups': []} if user else {}
        program = os.path.abspath(CLIENT)
        if user:
            program = for_everyone(program)
            env = dict(env or {}, LD_LIBRARY_PATH=os.path.dirname(program))
        if cpus:
            options['preexec_fn'] = lambda: os.sched_setaffinity(0, cpus)
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, **(env or {})), **options)

    def send(self, *words, **keys):
        """A command whose answer is asked for later."""
        words = [str(w) for w in words] + ['%s=%s' % key for key in keys.items()]
        self.process.stdin.write(' '.join(words) + '\n')
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError('live-client ended with %r' % self.process.wait(WAIT))
        return json.loads(line)

    def __call__(self, *words, **keys):
        self.send(*words, **keys)
        return self.answer()

    def do(self, *words, **keys):
        """A command that must succeed."""
        answer = self(*words, **keys)
        if answer['r'] < 0:
            raise AssertionError('%s: %s' % (' '.join(map(str, words)), answer))
        return answer

    def epoch(self, lane):
        """Drains to the end of the epoch: the places of all batches."""
        places = []
        while True:
            batch = self.do('next', lane)
            self.do('release', lane, batch['number'])
            places += batch['places']
            if batch['last']:
                return places

    def end(self):
        """Ends it as its last line would; its exit status."""
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(WAIT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None and error[0]:
            self.process.kill()
        if not self.process.stdin.closed:
            self.end()


class LiveTest(unittest.TestCase):
    """A directory of its own, removed at the end; private daemons live in it too."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='feeder-live-')
        self.runtime = os.path.join(self.dir, 'run')
        os.mkdir(self.runtime, 0o700)
        self.saved = {name: os.environ.get(name) for name in (
            'XDG_RUNTIME_DIR', 'XDG_CACHE_HOME', 'FEEDER_SOCKET', 'FEEDER_JOB', 'FEEDER_DAEMON')}
        os.environ['XDG_RUNTIME_DIR'] = self.runtime
        os.environ['XDG_CACHE_HOME'] = os.path.join(self.dir, 'cache')
        os.environ['FEEDER_DAEMON'] = os.path.abspath(FEEDERD)
        os.environ.pop('FEEDER_SOCKET', None)
        os.environ.pop('FEEDER_JOB', None)

    def tearDown(self):
        for name, value in self.saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.assertEqual([], self.daemons_left(), 'a private daemon outlives its job')
        shutil.rmtree(self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def daemons(self):
        """Daemons whose command line names this test's directory: {pid: command line}."""
        found = {}
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open('/proc/%s/cmdline' % pid, 'rb') as f:
                    line = f.read().replace(b'\0', b' ').decode(errors='replace')
            except OSError:
                continue
            if 'feederd' in line and self.dir in line:
                found[int(pid)] = line
        return found

    def daemons_left(self):
        """The same, after a grace of some seconds."""
        deadline = time.monotonic() + 20
        while True:
            left = list(self.daemons().values())
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)

    def soon(self, condition, what):
        """Waits until condition() is true."""
        deadline = time.monotonic() + WAIT
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError('it never came: ' + what)
            time.sleep(0.02)


def main():
    for program in (FEEDERD, BENCH, PHOTOS, CLIENT, HOSTILE):
        if not os.path.exists(program):
            print('%s is not built' % program)
            sys.exit(77)
    unittest.main(verbosity=2)
