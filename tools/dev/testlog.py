#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What became of the tests in a meson testlog.json.

usage: testlog.py TESTLOG COUNTS

Prints the failed tests with the last lines of what they said, and the skipped ones with their
reason; writes "passed failed skipped" into COUNTS. Exit status 1 where there is no log.
"""
import json
import sys

PASSED = ("OK", "EXPECTEDFAIL")
SKIPPED = ("SKIP",)
LAST_LINES = 30


def said(test):
    lines = (test.get("stdout") or "").splitlines() + (test.get("stderr") or "").splitlines()
    return [line for line in lines if line.strip()]


def reason(test):
    """A skipped test's own words: the line with 'skip' in it, else the last one."""
    lines = said(test)
    named = [line for line in lines if "skip" in line.lower()]
    return (named or lines or ["no reason given"])[-1].strip()


def main(testlog, counts):
    try:
        with open(testlog, encoding="utf-8", errors="replace") as file:
            tests = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return 1
    passed = failed = skipped = 0
    for test in tests:
        if test["result"] in PASSED:
            passed += 1
        elif test["result"] in SKIPPED:
            skipped += 1
            print(f"  skipped {test['name']}: {reason(test)}")
        else:
            failed += 1
            print(f"  FAILED {test['name']} ({test['result']}, {test.get('duration', 0):.1f} s)")
            for line in said(test)[-LAST_LINES:]:
                print(f"    {line}")
    with open(counts, "w", encoding="utf-8") as file:
        print(passed, failed, skipped, file=file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
