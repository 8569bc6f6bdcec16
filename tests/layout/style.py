#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house style, as far as a machine can tell.

usage: style.py ROOT

Licence lines, widths, lengths, names, typedefs, atomic accesses outside their rooms, blanks at
line ends, agreement of .clang-format and .editorconfig, and that no file names the machine or the
package host it was written on. Tables of known answers (golden*, *.inc) may be long and wide.
"""
import os
import re
import sys

import tree

LICENCE = "SPDX-License-Identifier: Apache-2.0"
C_FILES = (".c", ".h", ".cu", ".cuh", ".inc")
CODE = C_FILES + (".py", ".sh", ".map")
MOST_COLUMNS = 100
MOST_LINES = 600
BAD_STEMS = ("util", "utils", "common", "misc", "helper", "helpers")
# Function types are the only typedefs; they have a parenthesis in their first line.
TYPEDEF = re.compile(r"^\s*typedef\b[^(]*$")
# Fields may be declared atomic anywhere; how they are accessed is said once, in those rooms.
ATOMIC = re.compile(r"\b(__atomic_|__sync_|atomic_(load|store|fetch|exchange|compare))")
ATOMIC_ROOMS = ("protocol/", "src/base/", "tests/")
# Written in pieces, so that this file does not find itself.
FOREIGN = re.compile("|".join((r"(?<![\w.])/" + "work/", r"\." + "library", r"\.\./" + "shared",
                               r"py" + r"pi\.org", r"debian" + r"\.org",
                               r"python" + r"hosted")))


def is_code(path, text):
    return (path.endswith(CODE) or os.path.basename(path) == "meson.build"
            or text.startswith("#!"))


def is_table(path):
    return path.endswith(".inc") or os.path.basename(path).startswith("golden")


def lines_judge(path, text):
    """Findings that belong to one line: (line number, sentence)."""
    in_c = path.endswith(C_FILES)
    wide = is_table(path) or path.endswith("meson.build")
    for number, line in enumerate(text.split("\n"), 1):
        width = len(line.expandtabs(8))
        if width > MOST_COLUMNS and not wide:
            yield number, f"{width} columns"
        if line != line.rstrip():
            yield number, "blanks at the end"
        if in_c and TYPEDEF.match(line):
            yield number, "a typedef that is no function type"
        if in_c and not path.startswith(ATOMIC_ROOMS) and ATOMIC.search(line):
            yield number, "an atomic access outside protocol/ and src/base/"


def code_judge(path, text):
    if LICENCE not in "\n".join(text.split("\n")[:3]):
        yield 1, f"no line {LICENCE}"
    count = text.count("\n")
    if count > MOST_LINES and not is_table(path):
        yield count, f"{count} lines; {MOST_LINES} are the most"
    if text and not text.endswith("\n"):
        yield count + 1, "no newline at the end"
    stem, suffix = os.path.splitext(os.path.basename(path))
    if suffix in C_FILES and stem in BAD_STEMS:
        yield 1, "a name that says nothing about what is in it"
    yield from lines_judge(path, text)


def foreign_judge(text):
    for number, line in enumerate(text.split("\n"), 1):
        match = FOREIGN.search(line)
        if match:
            yield number, f"names {match.group(0)}, which users do not have"


def value(text, pattern, name):
    match = re.search(pattern, text, re.M)
    return int(match.group(1)) if match else f"no {name}"


def formats_judge(root):
    """The two format files say the same."""
    clang = tree.text(root, ".clang-format") or ""
    editor = tree.text(root, ".editorconfig") or ""
    for ours, theirs in (("TabWidth", "tab_width"), ("IndentWidth", "tab_width"),
                         ("ColumnLimit", "max_line_length")):
        a = value(clang, rf"^{ours}:\s*(\d+)", ours)
        b = value(editor, rf"^{theirs}\s*=\s*(\d+)", theirs)
        if a != b:
            yield f".clang-format: {ours} {a}, but .editorconfig: {theirs} {b}"


def main(root):
    findings, seen = list(formats_judge(root)), 0
    for path in tree.files(root):
        text = tree.text(root, path)
        if text is None:
            continue
        wrong = list(foreign_judge(text))
        if is_code(path, text):
            seen += 1
            wrong += code_judge(path, text)
        findings += [f"{path}:{number}: {what}" for number, what in sorted(wrong)]
    return tree.verdict("style", seen, findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
