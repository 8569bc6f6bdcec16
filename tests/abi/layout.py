# SPDX-License-Identifier: Apache-2.0
"""The ABI as compiled (abi-dump) against the one that was promised (layout.txt).

layout.py DUMP-PROGRAM LAYOUT.TXT HEADER...

A promised line that is missing or different is a break. A new line is an addition: it is appended
to layout.txt in the commit that makes it, so that later changes of it are seen too
(abi-dump > tests/abi/layout.txt). And the headers are parsed here once more, as a binding in
another language would write them down: ctypes must come to the same offsets as the compiler.
"""
import ctypes
import re
import subprocess
import sys

SCALARS = {
    'uint8_t': ctypes.c_uint8, 'uint16_t': ctypes.c_uint16, 'uint32_t': ctypes.c_uint32,
    'uint64_t': ctypes.c_uint64, 'int32_t': ctypes.c_int32, 'int64_t': ctypes.c_int64,
    'char': ctypes.c_char, 'float': ctypes.c_float,
}
MEMBER = re.compile(r'^(?:struct )?(\w+) (.+)$')


def strip(text):
    return re.sub(r'/\*.*?\*/', '', text, flags=re.S)


class Headers:
    def __init__(self, paths, dump):
        self.structs = {}
        self.numbers = {}
        for line in dump:
            words = line.split()
            if words[0] == 'daemon-counter':
                self.numbers['STATS_DAEMON_COUNT'] = int(words[1]) + 1
            elif words[0] == 'lane-counter':
                self.numbers['STATS_LANE_COUNT'] = int(words[1]) + 1
        for path in paths:
            with open(path, encoding='utf-8') as f:
                self.parse(strip(f.read()))

    def evaluate(self, expression):
        names = {'sizeof': lambda s: 0} | self.numbers
        return int(eval(expression, {'__builtins__': {}}, names))  # headers of this tree only

    def parse(self, text):
        for name, value in re.findall(r'^#define (\w+)\s+(0x[0-9a-f]+|\d+)u?\s*$', text,
                                      flags=re.M):
            self.numbers[name] = int(value, 0)
        for name, body in re.findall(r'^struct (\w+) \{\n(.*?)^\};', text, flags=re.M | re.S):
            if name not in ('control_packet', 'ring_map', 'stats_counter'):
                self.structs[name] = self.build(name, body)

    def build(self, name, body):
        fields = []
        union = re.search(r'union \{(.*?)\} (\w+);', body, flags=re.S)
        if union:
            inner = type(name + '_union', (ctypes.Union,), {'_fields_': self.members(union[1])})
            body = body[:union.start()]
        fields = self.members(body)
        if union:
            fields.append((union[2], inner))
        return type(name, (ctypes.LittleEndianStructure,), {'_fields_': fields})

    def members(self, body):
        fields = []
        for statement in body.split(';'):
            statement = ' '.join(statement.split())
            if not statement:
                continue
            kind, names = MEMBER.match(statement).groups()
            base = SCALARS.get(kind) or self.structs[kind]
            for declared in names.split(','):
                array = re.match(r'\s*(\w+)(?:\[(.+)\])?$', declared)
                size = array[2] and self.evaluate(array[2])
                fields.append((array[1], base * size if size else base))
        return fields


def check_promise(dump, promised):
    have, want = set(dump), set(promised)
    broken = [line for line in promised if line not in have]
    added = [line for line in dump if line not in want]
    for line in broken:
        print(f'BROKEN: promised "{line}", which is gone or different', file=sys.stderr)
    for line in added:
        print(f'new: "{line}": append it to layout.txt', file=sys.stderr)
    return not broken and not added


def check_python(dump, headers):
    good = True
    seen = set()
    for line in dump:
        words = line.split()
        struct = headers.structs.get(words[0])
        if struct is None:
            continue
        seen.add(words[0])
        if words[1] == '.':
            found = (ctypes.sizeof(struct),)
        else:
            found = (getattr(struct, words[1]).offset, getattr(struct, words[1]).size)
        if found != tuple(map(int, words[2:])):
            print(f'the compiler says "{line}", ctypes {found}', file=sys.stderr)
            good = False
    for name in headers.structs.keys() - seen:
        print(f'struct {name} is in a header and not in the dump', file=sys.stderr)
        good = False
    return good


def main():
    dump = subprocess.run([sys.argv[1]], check=True, capture_output=True,
                          text=True).stdout.splitlines()
    with open(sys.argv[2], encoding='utf-8') as f:
        promised = f.read().splitlines()
    headers = Headers(sys.argv[3:], dump)
    if len(headers.structs) < 20:
        sys.exit(f'only {len(headers.structs)} structs were found in the headers')
    good = check_promise(dump, promised)
    good = check_python(dump, headers) and good
    sys.exit(not good)


main()
