# SPDX-License-Identifier: Apache-2.0
"""libfeeder's symbols: library, symbol map and header name the same functions.

symbols.py LIBRARY MAP HEADER

Also its soname, and that it needs nothing but the C library.
"""
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library, map_path, header_path = sys.argv[1:]
    exported = set()
    for line in run('nm', '-D', '--defined-only', library).splitlines():
        kind, name = line.split()[1:]
        if kind != 'A':
            exported.add(name.replace('@@', '@'))
    with open(map_path, encoding='utf-8') as f:
        text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    mapped = set()
    for node, body in re.findall(r'(FEEDER_[\d.]+) \{(.*?)\}', text, flags=re.S):
        public = body.split('local:')[0]
        if '*' in public:
            sys.exit(f'{node} exports a wildcard')
        mapped |= {f'{name}@{node}' for name in re.findall(r'\b(feeder_\w+);', public)}
    with open(header_path, encoding='utf-8') as f:
        declared = set(re.findall(r'^FEEDER_API[^;(]*?\b(feeder_\w+)\(', f.read(), flags=re.M))
    dynamic = run('readelf', '-d', library)
    needed = set(re.findall(r'NEEDED.*\[(.+?)\]', dynamic))
    problems = [f'exported and not in the map: {x}' for x in exported - mapped]
    problems += [f'in the map and not exported: {x}' for x in mapped - exported]
    problems += [f'in the header and not in the map: {x}'
                 for x in declared - {x.split('@')[0] for x in mapped}]
    problems += [f'in the map and not in the header: {x}' for x in mapped
                 if x.split('@')[0] not in declared]
    allowed = r'(libc|libdl|libpthread|ld-linux.*|lib[aut]san|libubsan|libm|libgcc_s)\.so'
    problems += [f'needs {x}' for x in needed if not re.match(allowed, x)]
    if 'SONAME' not in dynamic or '[libfeeder.so.0]' not in dynamic:
        problems.append('the soname is not libfeeder.so.0')
    if len(declared) < 20:
        problems.append(f'only {len(declared)} functions were found in the header')
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


main()
