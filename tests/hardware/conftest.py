# SPDX-License-Identifier: MIT
"""Tests that run in the virtual machine of `make check-hardware`: a processor whose cycle counter has
a real driver, and a clock that counts instructions, so that every run is the same.

Each finished test is a line on the console, "@ " and JSON, for tools/hardware/machine.py: its name,
outcome, and the figures that it recorded. Figures that the fixture `exactly` recorded must be
the same in every run of the machine.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PATHPROF_BUILD", "build-aarch64")
PATHPROF = BUILD / "pathprof"
REFERENCE = BUILD / "tests" / "hardware" / "reference"
PROGRAMS = ROOT / "tests" / "programs"
PYTHON = "/usr/bin/python3"
SECONDS = 300  # of the machine's own clock; a command that takes longer hangs


def pytest_runtest_logreport(report):
    """A line for what is decided: a call, or a set-up that failed or skipped. It begins anew:
    pytest's own dots may stand before it."""
    if report.when != "call" and report.outcome == "passed":
        return
    line = {"test": report.nodeid.split("/")[-1], "outcome": report.outcome,
            "seconds": round(report.duration, 2), "figures": dict(report.user_properties)}
    if report.outcome != "passed":
        line["text"] = report.longreprtext[-4000:]
    with open("/dev/console", "w", encoding="utf-8") as console:
        console.write("\n@ " + json.dumps(line) + "\n")


@pytest.fixture
def figure(record_property):
    """figure(name, value): shown beside the test."""
    return record_property


@pytest.fixture
def exactly(record_property):
    """exactly(name, value): shown, and compared between runs of the machine."""
    return lambda name, value: record_property("=" + name, value)


def run(*command, **options):
    """A finished command that succeeded, its output as text."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=SECONDS, stdin=subprocess.DEVNULL, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def record(tmp_path):
    """Record COMMAND (a list) into a directory of its own; (finished process, directory)."""
    def record_command(command, *options, name="recording", **more):
        directory = tmp_path / name
        return run(PATHPROF, "record", "-o", directory, *options, "--", *command, **more), directory
    return record_command


def report(directory):
    """`report --json` of a recording, parsed."""
    return json.loads(run(PATHPROF, "report", directory, "--json").stdout)


def rows(directory):
    """What `export --format jsonl` has of a recording: frames root first, samples, count."""
    text = run(PATHPROF, "export", directory, "--format", "jsonl").stdout
    return list(map(json.loads, text.splitlines()))


def stacks(directory):
    """[(frames root first, samples)] of a recording."""
    return [(row["frames"], row["samples"]) for row in rows(directory)]
