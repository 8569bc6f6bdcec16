#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md keeps up with the tree.

usage: readme.py ROOT

Its program in C is clients/c/examples/first.c to the letter, its version is the project's, and the
files and headings that it links to are there.
"""
import os
import re
import sys

import tree

PROGRAM = re.compile(r"^```c\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
PATH = re.compile(r"`((?:src|protocol|include|clients|tools|man|tests)(?:/[\w.-]+)*)`")


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def judge(root, text):
    if PROGRAM.findall(text) != [tree.text(root, "clients/c/examples/first.c")]:
        yield "its program is not clients/c/examples/first.c"
    version = re.search(r"version: '([\d.]+)'", tree.text(root, "meson.build")).group(1)
    for word in set(re.findall(r"\b\d+\.\d+\.0\b", text)) - {version}:
        yield f"speaks of version {word}; this is {version}"
    anchors = {anchor(h) for h in HEADING.findall(text)}
    for path, part in LINK.findall(text):
        if path and not os.path.exists(os.path.join(root, path)):
            yield f"links to {path}, which is not there"
        if not path and part not in anchors:
            yield f"links to #{part}, which is no heading"
    for path in PATH.findall(text):
        if not os.path.exists(os.path.join(root, path)):
            yield f"names {path}, which is not there"


def main(root):
    text = tree.text(root, "README.md")
    findings = list(judge(root, text)) if text else ["there is none"]
    for finding in findings:
        print(f"README.md: {finding}")
    print(f"readme: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
