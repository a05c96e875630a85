# SPDX-License-Identifier: MIT
"""Shares of the calibrated functions, at least 10^5 samples: evenly spaced within 0.1 % RMS of the
truth, at random distances within what theory allows, and the same in every run.

RMS as the paper defines it: the root of the sum of the squared differences of the shares. Of n
samples drawn independently a share p has the standard error sqrt(p (1 - p) / n), and the RMS the
root of the sum of their squares, 0.26 % of 10^5. Samples at distances that are drawn evenly from half
to one and a half of a period vary less: their number in a long stretch of time has a twelfth of that
variance (the square of the distances' standard deviation by their mean). So the bound is of the first
kind, and three times the standard error; evenly spaced ones must do better.
"""

import json
import math

from conftest import PROGRAMS, PYTHON, report, rows

FUNCTIONS = [f"f_{i:02d}" for i in range(10)]
PERIOD = 20_011  # a prime, and longer than the handler
SAMPLES = 100_000
RMS = 0.001
JITTERED = 40_009  # half of it is the shortest period that an asynchronous signal serves


def rms(found, truth):
    n, whole = sum(found.values()), sum(truth.values())
    return math.sqrt(sum((found.get(name, 0) / n - true / whole) ** 2
                         for name, true in truth.items()))


def by_function(recording, measure="samples"):
    found = dict.fromkeys(FUNCTIONS, 0)
    for row in rows(recording):
        for name in {frame["function"] for frame in row["frames"]} & found.keys():
            found[name] += row[measure]
    return found


def standard_error(truth, n):
    whole = sum(truth.values())
    return math.sqrt(sum(true / whole * (1 - true / whole) / n for true in truth.values()))


def test_accuracy__evenly_spaced(record, exactly):
    done, recording = record([PYTHON, PROGRAMS / "calibrated.py", "4"], "-e", "cycles:u",
                             "-c", PERIOD, "--seed", 1)
    truth = json.loads(done.stdout)  # by the thread's CPU clock: long calls cost more than their share
    found = by_function(recording)
    told = report(recording)
    exactly("found", found)
    exactly("rms", round(rms(found, truth), 6))
    assert sum(found.values()) >= SAMPLES
    assert rms(found, truth) <= RMS
    assert told["lost"]["total"] <= 0.001 * told["samples"], told["lost"]
    twice = {**found, "f_01": 2 * found["f_01"]}
    assert rms(twice, truth) > RMS, "a function counted twice would pass"


def test_accuracy__at_random_distances(record, exactly):
    done, recording = record([PYTHON, PROGRAMS / "calibrated.py", "6"], "-e", "cycles:u",
                             "-c", JITTERED, "--trigger", "perf-async", "--jitter=yes",
                             "--seed", 1)
    truth, told = json.loads(done.stdout), report(recording)
    assert told["events"][0]["jitter"] > 20_000 and told["lost"]["total"] == 0
    for measure in ("samples", "count"):
        found = by_function(recording, measure)
        exactly(measure, found)
        exactly(f"rms of {measure}", round(rms(found, truth), 6))
        allowed = 3 * standard_error(truth, told["samples"])
        assert rms(found, truth) <= allowed
        twice = {**found, "f_01": 2 * found["f_01"]}
        assert rms(twice, truth) > allowed, "a function counted twice would pass"
    assert told["samples"] >= SAMPLES
