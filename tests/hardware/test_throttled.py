# SPDX-License-Identifier: MIT
"""A counter that overflows more often than the kernel takes: it is stopped until the next tick and
counts nothing meanwhile. What that hid is a loss with its own reason, at the true number."""

import json
from pathlib import Path

import pytest

from conftest import PYTHON, ROOT, report

SYSCTL = Path("/proc/sys/kernel")
RATE, LOW = 1_000_000, 10_000  # overflows a second
PERIOD = 20_011
KEY = "kernel_throttled"
LOOPS = 1_500_000
START_CYCLES = 150_000_000  # at most, of an interpreter's start and end


def set_rate(rate):
    """The kernel takes a rate only while it watches the time that samples take."""
    (SYSCTL / "perf_cpu_time_max_percent").write_text("25")
    (SYSCTL / "perf_event_max_sample_rate").write_text(str(rate))
    (SYSCTL / "perf_cpu_time_max_percent").write_text("0")


@pytest.fixture
def low():
    set_rate(LOW)
    yield
    set_rate(RATE)


def own_count(done):
    """What the program itself counted of its loop, with a counter that does not sample."""
    return json.loads(done.stdout)["cycles"]


@pytest.mark.parametrize("more", [[], ["--inherit"]], ids=["thread", "inherit"])
def test_throttled__counter_is_told_at_the_true_number(record, low, exactly, more):
    command = [PYTHON, "-I", ROOT / "tests/hardware/measured.py", "functions", LOOPS, "--cycles"]
    done, recording = record(command, "-e", "cycles:u", "-c", PERIOD, *more)
    told = report(recording)
    event, lost = told["events"][0], told["lost"]
    exactly("overflows", [told["samples"], lost[KEY], lost["total"]])
    assert told["recording"]["trigger"] == "perf-sigtrap"
    assert lost[KEY] > told["samples"]
    # Every cycle that the program counted by itself is in the event's count ...
    assert own_count(done) < event["count"] < own_count(done) + START_CYCLES
    # ... and that is samples and losses.
    overflows = event["count"] / event["period"]
    assert abs(told["samples"] + lost["total"] - overflows) <= 2 + 0.001 * overflows
    assert "kernel.perf_event_max_sample_rate" in done.stderr


def test_throttled__re_arming_starts_an_event_again(record, low, exactly):
    command = [PYTHON, "-I", ROOT / "tests/hardware/measured.py", "functions", LOOPS, "--cycles"]
    _, recording = record(command, "-e", "cycles:u", "-c", PERIOD, "--trigger", "perf-async")
    told = report(recording)
    overflows = told["events"][0]["count"] / PERIOD
    exactly("overflows", [told["samples"], told["lost"]["total"]])
    assert told["lost"]["total"] == 0 and abs(told["samples"] - overflows) <= 2


def test_throttled__not_without_a_cause(record, exactly):
    command = [PYTHON, "-I", ROOT / "tests/hardware/measured.py", "functions", LOOPS, "--cycles"]
    _, recording = record(command, "-e", "cycles:u", "-c", PERIOD)
    lost = report(recording)["lost"]
    exactly("lost", lost)
    assert KEY not in lost
