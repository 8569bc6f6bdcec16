#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs read: JSON and OpenMetrics of a sample with odd names.

usage: outputs.py PRINTER    (stat-print, which prints the sample by an argument)
"""
import json
import subprocess
import sys

import openmetrics

ODD = 'train:/data/"q\\uo\nte\u00ff\u00ed\u00a0\u0080\x1b[2J\u00e4:0'


def printed(printer, what):
    return subprocess.run([printer, what], stdout=subprocess.PIPE, check=True).stdout


def objects(data):
    return [json.loads(line) for line in data.decode("utf-8").splitlines()]


def json_check(data):
    first, second = objects(data)
    assert first["schema"] == second["schema"] == "feeder-stat/1"
    assert first["socket"] == "/run/feeder/feeder.sock" and first["pid"] == 4242
    assert first["private"] is False and second["private"] is True
    assert second["reader_note"] == "io_uring is not permitted here"
    assert first["counters"]["workers"] == 2
    lanes = first["lanes"]
    assert [lane["lane"] for lane in lanes] == [7, 8]
    assert lanes[1]["name"] == ODD, ascii(lanes[1]["name"])
    assert lanes[0]["order"] == "torch" and lanes[0]["tail"] == "pad"
    assert lanes[0]["bad"] == "substitute" and lanes[0]["state"] == "running"
    counters = lanes[0]["counters"]
    assert counters["order_digest"] == "fedcba9876543210"
    assert counters["pixel_digest"] == "000000000000001f"
    assert counters["batches"] == 110 and counters["bad_samples"] == 3
    assert set(counters) == set(first["units"]["lane"])
    assert set(first["counters"]) == set(first["units"]["daemon"])
    assert first["units"]["daemon"]["uptime"] == "ns"
    assert [case["sample"] for case in first["bad"]] == [12, 13, 14]
    assert first["bad"][0]["path"] == 'a/b\u00ff"\\.jpg'
    assert first["bad"][0]["status"] == "truncated" and first["bad"][0]["times"] == 2
    assert second["bad"] == []


def errors_check(data):
    first = objects(data)[0]
    assert first["schema"] == "feeder-stat-errors/1"
    assert first["bad"][2]["name"] == "train:/data/x:0"
    assert first["bad"][2]["reason"] == "0 bytes"


def why_check(data):
    first = objects(data)[0]
    assert first["schema"] == "feeder-stat-why/1"
    assert first["lanes"][0]["limit"] == "read" and first["lanes"][0]["waited"] == 0.25
    assert first["lanes"][0]["sentence"].startswith("reading is the limit")
    assert first["lanes"][1]["name"] == ODD


def metrics_check(data):
    families = openmetrics.parse(data)
    cpu = families["feeder_worker_cpu_seconds"]
    assert cpu["TYPE"] == "counter" and cpu["UNIT"] == "seconds"
    assert cpu["samples"][(("socket", "/run/feeder/feeder.sock"),)] == 23.0
    assert len(cpu["samples"]) == 2
    decode = families["feeder_lane_decode_cpu_seconds"]["samples"]
    assert set(decode.values()) == {1.234567891} and len(decode) == 3
    assert families["feeder_readahead_peak_bytes"]["UNIT"] == "bytes"
    assert families["feeder_read_bytes"]["TYPE"] == "counter"
    assert "UNIT" not in families["feeder_lane_batches"]
    assert families["feeder_lane_ready"]["TYPE"] == "gauge"
    assert not [name for name in families if "digest" in name]
    labels = [dict(key) for key in families["feeder_lane_batches"]["samples"]]
    assert {"socket", "job", "lane", "rank", "id"} == set(labels[0])
    assert labels[1]["lane"] == ('train:/data/"q\\uo\\x0ate\\xff\\xed\\xa0\\x80\\x1b[2J\u00e4:0')
    assert labels[1]["rank"] == "1" and labels[1]["job"] == "slurm-17.0"
    assert len(families["feeder_build"]["samples"]) == 2


def strict_check():
    """The reader refuses what it is there to refuse."""
    good = b"# TYPE a counter\n# HELP a x\na_total{b=\"c\"} 1\n# EOF\n"
    assert openmetrics.parse(good)
    for bad in (
            good[:-1], good.replace(b"# EOF\n", b""), good.replace(b"_total", b""),
            good.replace(b"\n# HELP", b"\n\n# HELP"), good.replace(b"\"c\"", b"\"c\"\""),
            good.replace(b"# HELP a x\n", b"# HELP a x\n# UNIT a s\n"),
            good.replace(b"a_total", b"# TYPE d gauge\na_total"),
            good.replace(b"# EOF", b"a_total{b=\"c\"} 2\n# EOF"), good.replace(b" 1\n", b" -1\n"),
            good.replace(b" 1\n", b" 1,0\n"), good.replace(b"\n", b"\r\n"),
            b"# TYPE a_total counter\n# EOF\n", b"# TYPE a gauge\n# UNIT a bytes\n# EOF\n"):
        try:
            openmetrics.parse(bad)
        except openmetrics.Malformed:
            continue
        raise AssertionError(f"accepted {bad!r}")


def main(printer):
    strict_check()
    json_check(printed(printer, "json"))
    errors_check(printed(printer, "errors"))
    why_check(printed(printer, "why"))
    metrics_check(printed(printer, "metrics"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
