# SPDX-License-Identifier: Apache-2.0
"""What these live tests share beside tests/live: the statistics, and daemons that go wrong."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'live'))
import feeder_live as live  # noqa: E402 (found by the line above)

PRELOAD = os.path.join(live.BUILD, 'tests/hazards/service/libservice-preload.so')


def preload(**wishes):
    """An environment in which preload.c does what it is asked for (jump=, stuck=, …)."""
    env = {'FEEDER_TEST_' + name.upper(): str(value) for name, value in wishes.items()}
    env['LD_PRELOAD'] = os.path.abspath(PRELOAD)
    # a sanitizer wants to be the first library of all
    env['ASAN_OPTIONS'] = 'verify_asan_link_order=0:' + os.environ.get('ASAN_OPTIONS', '')
    return env


def stat(daemon, what='json'):
    """feeder-stat's JSON of one daemon."""
    options = () if what == 'json' else ('--json',)
    return json.loads(live.run(live.STAT, what, *options, '--socket', daemon.socket,
                               check=0).stdout)


def counters(daemon):
    return stat(daemon)['counters']


def threads(pid, prefix=''):
    """{number: name} of a process's threads."""
    found = {}
    for tid in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/comm' % (pid, tid)) as f:
                name = f.read().strip()
        except OSError:
            continue
        if name.startswith(prefix):
            found[int(tid)] = name
    return found


class Stage(live.LiveTest):
    """A live test with clients that end with it."""

    def client(self, daemon, **keys):
        client = self.enter(live.Client())
        client.do('connect', socket=daemon.socket, **keys)
        return client

    def enter(self, context):
        """A context that is left when the test ends, with its error if it had one."""
        self.addCleanup(self.leave, context)
        return context.__enter__()

    @staticmethod
    def leave(context):
        process = context.process
        if isinstance(context, live.Client) and process.poll() is not None:
            process.stdin.close()
            process.stdout.close()
            return
        context.__exit__(None, None, None)
