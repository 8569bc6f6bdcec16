# SPDX-License-Identifier: Apache-2.0
"""A strict reader of OpenMetrics 1.0 text: what it does not accept, a collector may refuse.

Only what feeder-stat may write is accepted: counters, gauges and infos, without timestamps.
"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)")
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
HELP = re.compile(r'(?:[^"\\\n]|\\\\|\\"|\\n)*')
SUFFIX = {"counter": "_total", "gauge": "", "info": "_info"}
ORDER = ("TYPE", "UNIT", "HELP")


class Malformed(Exception):
    pass


def require(condition, line, what):
    if not condition:
        raise Malformed(f"{what}: {line!r}")


def labels_parse(line, text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        require(match, line, "malformed labels")
        require(match.group(1) not in labels, line, "a label twice")
        value = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), match.group(2))
        labels[match.group(1)] = value
        at = match.end()
        require(match.group(3) == "," and at < len(text) or at == len(text), line, "a comma")
    return labels


def parse(data):
    """bytes → {family: {"TYPE", "UNIT", "HELP", "samples": {labels: value}}}"""
    text = data.decode("utf-8")  # strict
    require("\r" not in text, "", "a carriage return")
    require(text.endswith("# EOF\n"), text[-20:], "does not end in # EOF")
    families, current, seen = {}, None, []
    for line in text[:-len("# EOF\n")].splitlines(keepends=False):
        require(line, line, "an empty line")
        if line.startswith("#"):
            match = META.fullmatch(line)
            require(match, line, "a comment that is no metadata")
            word, name, value = match.groups()
            if name != current:
                require(word == "TYPE", line, "metadata does not begin with TYPE")
                require(name not in families, line, "an interleaved or repeated family")
                current, seen = name, []
                families[name] = {"samples": {}}
            require(not families[name]["samples"], line, "metadata after samples")
            require(not seen or ORDER.index(word) > ORDER.index(seen[-1]), line,
                    "metadata twice or out of order")
            seen.append(word)
            families[name][word] = value
            if word == "TYPE":
                require(value in SUFFIX, line, "a type that is not expected")
                require(not name.endswith(("_total", "_info", "_created")), line,
                        "a family with a sample's suffix")
            if word == "UNIT":
                require(name.endswith("_" + value), line, "the unit is not the name's suffix")
            if word == "HELP":
                require(HELP.fullmatch(value), line, "an unescaped help text")
            continue
        match = SAMPLE.fullmatch(line)
        require(match, line, "a malformed sample")
        name, labels, value = match.groups()
        family = families.get(current)
        require(family, line, "a sample without a family")
        require(name == current + SUFFIX[family["TYPE"]], line, "a sample of another family")
        require(NUMBER.fullmatch(value), line, "a malformed number")
        key = tuple(sorted(labels_parse(line, labels or "").items()))
        require(key not in family["samples"], line, "a sample twice")
        if family["TYPE"] == "counter":
            require(float(value) >= 0, line, "a negative counter")
        if family["TYPE"] == "info":
            require(value == "1", line, "an info that is not 1")
        family["samples"][key] = float(value)
    return families
