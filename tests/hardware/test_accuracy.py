# SPDX-License-Identifier: MIT
"""Shares of the calibrated functions, at least 10^5 samples: within 0.1 % RMS of the truth, and the
same in every run.

RMS as the paper defines it: the root of the sum of the squared differences of the shares. Drawn at
random, that many samples would allow 0.26 %; evenly spaced ones must do better.
"""

import json
import math

from conftest import PROGRAMS, PYTHON, report, stacks

FUNCTIONS = [f"f_{i:02d}" for i in range(10)]
PERIOD = 20_011  # a prime, and longer than the handler
SAMPLES = 100_000
RMS = 0.001


def rms(found, truth):
    n, whole = sum(found.values()), sum(truth.values())
    return math.sqrt(sum((found.get(name, 0) / n - true / whole) ** 2
                         for name, true in truth.items()))


def by_function(recording):
    found = dict.fromkeys(FUNCTIONS, 0)
    for frames, samples in stacks(recording):
        for name in {frame["function"] for frame in frames} & found.keys():
            found[name] += samples
    return found


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
