#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone, without warnings.

usage: headers.py ROOT c COMPILER...    as C11
       headers.py ROOT c++              as C++11, by the first C++ compiler found, else exit 77
"""
import os
import shutil
import subprocess
import sys
import tempfile

import tree

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def compiles(command, folder, suffix, body):
    """The compiler's complaints about a file with this text, or an empty string."""
    path = os.path.join(folder, "alone" + suffix)
    with open(path, "w", encoding="utf-8") as file:
        file.write(body)
    done = subprocess.run(command + [path], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def cxx_find(folder):
    for name in ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path and not compiles([path, "-fsyntax-only"], folder, ".cc", "#include <stdint.h>\n"):
            return [path]
    return None


def main(root, language, compiler):
    with tempfile.TemporaryDirectory() as folder:
        if language == "c++":
            compiler = cxx_find(folder)
            if not compiler:
                print("skipped: no C++ compiler here")
                return 77
        suffix, standard = (".cc", "-std=c++11") if language == "c++" else (".c", "-std=c11")
        command = compiler + [standard] + FLAGS + ["-I", os.path.join(root, "include")]
        headers = [p for p in tree.files(root) if p.startswith("include/") and p.endswith(".h")]
        findings = []
        for header in headers:
            name = header[len("include/"):]
            body = f"#include <{name}>\n#include <{name}>\nint feeder_alone;\n"
            complaint = compiles(command, folder, suffix, body)
            if complaint:
                findings.append(f"{header}: {complaint}")
    return tree.verdict(f"headers as {language}", len(headers), findings)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]))
