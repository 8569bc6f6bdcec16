#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No wait hangs on the wall clock, which is set and jumps (hazard D54).

usage: clocks.py ROOT

The wall clock is read in the files below and nowhere else, calls that wait until a time of that
clock are not made at all, and a timed wait on a condition needs a monotonic one in its room.
"""
import os
import re
import sys

import tree

ROOMS = ("src/", "clients/", "tools/", "protocol/", "include/")
# Who may read it, and what for.
READERS = {
    "src/base/log.c": "stamps of lines",
    "src/source/scan.c": "compared with times of files",
    "src/source/place.c": "compared with times of files",
}
READ = re.compile(r"\bCLOCK_REALTIME\w*|\bgettimeofday\s*\(|\btime\s*\(\s*(?:NULL|0|&\w+)\s*\)"
                  r"|\bftime\s*\(|\btimespec_get\s*\(")
WAIT = re.compile(r"\bFUTEX_CLOCK_REALTIME|\bsem_timedwait\s*\(|\bpthread_mutex_timedlock\s*\("
                  r"|\bpthread_rwlock_timed\w+\s*\(|\bmq_timed\w+\s*\(|\bcnd_timedwait\s*\("
                  r"|\bmtx_timedlock\s*\(|\bTFD_TIMER_CANCEL_ON_SET|\bclock_settime\s*\(")
TIMED = re.compile(r"\bpthread_cond_timedwait\s*\(")
MONOTONIC = re.compile(r"\bpthread_condattr_setclock\s*\([^,]+,\s*CLOCK_MONOTONIC\s*\)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def code(root, path):
    """Its text with comments blanked, lines kept."""
    text = tree.text(root, path) or ""
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def judge(path, text):
    for kind, pattern in (("reads the wall clock", READ), ("waits by the wall clock", WAIT)):
        if kind.startswith("reads") and path in READERS:
            continue
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {kind}: {match.group()}"


def main(root):
    findings, timed, monotonic, seen = [], {}, set(), 0
    for path in tree.files(root):
        if not path.startswith(ROOMS) or not path.endswith((".c", ".h", ".cu", ".cuh")):
            continue
        seen += 1
        text, room = code(root, path), os.path.dirname(path)
        findings += judge(path, text)
        if TIMED.search(text):
            timed.setdefault(room, path)
        if MONOTONIC.search(text):
            monotonic.add(room)
    findings += [f"{path}: a timed wait, and no condition of {room} is on CLOCK_MONOTONIC"
                 for room, path in timed.items() if room not in monotonic]
    findings += [f"{path}: named here ({why}) and does not read the wall clock"
                 for path, why in READERS.items() if not READ.search(code(root, path))]
    if not timed:
        findings.append("no timed wait was found: this test no longer sees any")
    return tree.verdict("clocks", seen, findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
