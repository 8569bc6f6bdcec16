#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format has nothing to change.

usage: format.py ROOT

Only version 14 is asked (Debian 12's): others break lines elsewhere. Exit 77 without it.
"""
import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"


def program():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if not path:
            continue
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        match = re.search(r"version (\d+)\.", text)
        if match and match.group(1) == VERSION:
            return path
    return None


def main(root):
    clang_format = program()
    if not clang_format:
        print(f"skipped: no clang-format {VERSION} here")
        return 77
    paths = [p for p in tree.files(root) if p.endswith((".c", ".h"))]
    if not paths:
        print("format: found no files, so it proved nothing")
        return 1
    done = subprocess.run([clang_format, "-n", "--Werror", "--style=file"] + paths, cwd=root,
                          capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", done.stderr, re.M)))
    print("\n".join(done.stderr.split("\n")[:60]))
    print(f"format: {len(paths)} files, {len(wrong)} not as clang-format writes them")
    if wrong:
        print("remedy: clang-format -i " + " ".join(wrong))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
