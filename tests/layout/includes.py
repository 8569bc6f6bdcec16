#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layering: which room includes which, against allow.txt.

usage: includes.py ROOT

Under src/ every include of an own header carries its room ("reader/reader.h"), so a line alone
tells who uses whom; clients, tools and tests may name what lies beside them by its name alone.
Only direct includes count: what a header brings along is its own room's business.
"""
import os
import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(feeder/[^>]+)>)', re.M)
SOURCES = (".c", ".h", ".cu", ".cuh", ".inc")
PLACES = (("src/", None), ("clients/c/", "clients/c"), ("include/", "include"),
          ("protocol/", "protocol"), ("tools/", "tools"), ("tests/", "tests"))
GENERATED = ("build-config.h",)


def room_of(path):
    """The room of a file, by its path from the root; None where no room is."""
    for prefix, room in PLACES:
        if path.startswith(prefix):
            return room or path.split("/")[1]
    return None


def allow_read(path):
    allowed = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                room, _, rest = line.partition(":")
                allowed[room.strip()] = rest.split()
    return allowed


def resolve(known, path, included):
    """The file that an include means, by its path from the root, or None."""
    for folder in ("", "src/", "include/", "tools/", os.path.dirname(path) + "/"):
        candidate = os.path.normpath(folder + included)
        if candidate in known:
            return candidate
    if path.startswith("tests/"):  # a test's build file names the folders of what it shares
        beside = [p for p in known if p.startswith("tests/") and p.endswith("/" + included)]
        return beside[0] if beside else None
    return None


def judge(path, included, known, allowed):
    """What is wrong with this include, or None."""
    room = room_of(path)
    if included in GENERATED:
        if os.path.normpath(os.path.join(os.path.dirname(path), included)) in known:
            return f"means the {included} beside it and not the build's"
        return None
    if room not in allowed:
        return f"the room {room} is not in allow.txt"
    target = resolve(known, path, included)
    if target is None:
        return "names no file of the project"
    other = room_of(target)
    if "/" not in included and path.startswith("src/"):
        return f'does not carry its room: "{other}/{included}"'
    if other == room or other in allowed[room] or target in allowed[room] or "*" in allowed[room]:
        return None
    return f"{room} may not use {other} (allow.txt: {' '.join(allowed[room]) or 'nothing'})"


def main(root):
    allowed = allow_read(os.path.join(root, "tests/layout/allow.txt"))
    paths = tree.files(root)
    known = set(paths)
    findings, seen = [], 0
    for path in paths:
        if not path.endswith(SOURCES) or room_of(path) is None:
            continue
        seen += 1
        text = tree.text(root, path) or ""
        for match in INCLUDE.finditer(text):
            included = match.group(1) or match.group(2)
            wrong = judge(path, included, known, allowed)
            if wrong:
                line = text.count("\n", 0, match.start()) + 1
                findings.append(f'{path}:{line}: "{included}": {wrong}')
    return tree.verdict("includes", seen, findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
