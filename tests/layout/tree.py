# SPDX-License-Identifier: Apache-2.0
"""The files that belong to the project: what lies in the checkout and is not ignored by git."""
import os


def _is_ours(root, folder, name):
    """Not git's, not Python's, not a build folder whatever its name."""
    if name in (".git", "__pycache__") or folder == "" and name.startswith((".venv", "build")):
        return False
    return not os.path.isdir(os.path.join(root, folder, name, "meson-private"))


def files(root):
    """Paths relative to root, sorted."""
    found = []
    for folder, names, leaves in os.walk(root):
        relative = os.path.relpath(folder, root)
        relative = "" if relative == "." else relative
        names[:] = [n for n in names if _is_ours(root, relative, n)]
        for leaf in leaves:
            if leaf.endswith(".pyc") or leaf == "compile_commands.json":
                continue
            found.append(os.path.join(relative, leaf))
    return sorted(found)


def text(root, path):
    """Its text, or None where it is not text."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return None


def verdict(test, seen, findings):
    """Prints what was found; the test's exit status."""
    for finding in findings:
        print(finding)
    print(f"{test}: {seen} files, {len(findings)} findings")
    if not seen:
        print(f"{test}: found no files, so it proved nothing")
    return 1 if findings or not seen else 0
