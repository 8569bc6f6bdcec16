#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of hazards says what is true.

usage: hazards.py ROOT

Every row of the catalogue stands in tests/hazards/README.md once and in order; every test that it
names is defined in that file, run by it, and its file built by the meson.build beside it; and no
row says that it has no test while some test bears its name.
"""
import os
import re
import sys

import tree

TABLE = "tests/hazards/README.md"
COUNTS = (("A", 74), ("B", 40), ("C", 36), ("D", 65), ("E", 25))
ROW = re.compile(r"^\| ([A-E]\d\d) \| ([^|]+) \| ([^|]+) \|$", re.M)
NAMED = re.compile(r"`([^`:]+\.(?:c|py|sh))(?::(\w+))?`")
INSTEAD = re.compile(r"^(later: (tar sources|GPU hand-off|resume and elastic ranks|Python package)"
                     r"|cannot apply: \w|no test: \w)")
DEFINED = {".c": r"^static void {}\(void \*\*", ".py": r"^ *def {}\("}
BEARERS = re.compile(r"^(?:static void|    def(?: test_)?) ?((?:[a-e]\d\d_)+)\w+\(", re.M)


def is_built(root, path):
    """Whether the meson.build beside a file, or one above it, names it."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    folder = os.path.dirname(path)
    while folder:
        build = tree.text(root, os.path.join(folder, "meson.build")) or ""
        if f"'{stem}'" in build or f"{stem}{suffix}'" in build:
            return True
        folder = os.path.dirname(folder)
    return False


def test_judge(root, path, name):
    """What is wrong with a test that the table names, or None."""
    text = tree.text(root, path)
    if text is None:
        return f"there is no {path}"
    if not is_built(root, path):
        return f"no meson.build has {path}"
    if name is None:
        return None
    pattern = DEFINED[os.path.splitext(path)[1]].format(name)
    if not re.search(pattern, text, re.M):
        return f"{path} has no test {name}"
    if path.endswith(".c") and len(re.findall(rf"\b{name}\b", text)) < 2:
        return f"{path} does not run {name}"
    return None


def row_judge(root, proof):
    """Findings of one row's last column."""
    named = NAMED.findall(proof)
    if not named and not INSTEAD.match(proof):
        yield "names neither a test nor why there is none"
    for path, name in named:
        wrong = test_judge(root, "tests/" + path, name or None)
        if wrong:
            yield wrong


def bearers(root):
    """Rows that some test is named after, with that test's file."""
    found = {}
    for path in tree.files(root):
        if not path.startswith("tests/") or not path.endswith((".c", ".py")):
            continue
        for match in BEARERS.finditer(tree.text(root, path) or ""):
            for row in match.group(1).strip("_").upper().split("_"):
                found.setdefault(row, path)
    return found


def main(root):
    rows = ROW.findall(tree.text(root, TABLE) or "")
    wanted = [f"{letter}{n:02}" for letter, most in COUNTS for n in range(1, most + 1)]
    findings = []
    if [row for row, _, _ in rows] != wanted:
        missing = sorted(set(wanted) - {row for row, _, _ in rows})
        findings.append(f"{TABLE}: rows are missing, twice or out of order: {' '.join(missing)}")
    named = bearers(root)
    for row, _, proof in rows:
        findings += [f"{TABLE}: {row}: {what}" for what in row_judge(root, proof)]
        if row in named and not NAMED.search(proof):
            findings.append(f"{TABLE}: {row}: has a test now, in {named[row]}")
    for finding in findings:
        print(finding)
    print(f"hazards: {len(rows)} rows, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
