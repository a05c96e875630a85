# SPDX-License-Identifier: MIT
"""What is in the files while the program runs: after a flush, and when --duration is over."""

import json
import shutil
import subprocess
import time

import pytest

from conftest import PATHPROF, SECONDS

PYTHON = "/usr/bin/python3"

needs_babeltrace = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="no babeltrace2")

# A little work five times a second, until the file `end` is there; a line of `log` each time.
WORKER = """
import os, sys, time
with open(sys.argv[1] + "/log", "w", buffering=1) as log:
    while not os.path.exists(sys.argv[1] + "/end"):
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        print(time.time(), time.process_time(), file=log)
        time.sleep(0.18)
"""


def wait_until(condition):
    """Wait for something that must come; it is the deadline alone that is a time."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def worker(tmp_path):
    """A function that starts the recorder with WORKER; both have ended when the test has."""
    started = []

    def run(*options):
        process = subprocess.Popen(
            [PATHPROF, "record", "-e", "cpu-time", "-o", tmp_path / "r", *options, "--", PYTHON,
             "-c", WORKER, tmp_path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process, tmp_path / "r"

    yield run
    (tmp_path / "end").touch()
    for process in started:
        process.communicate(timeout=SECONDS)


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def stream_bytes(directory):
    stream = directory / "ust" / "slot_0000"
    return stream.stat().st_size if stream.exists() else 0


def read_back(directory, babeltrace):
    return sum(" sample:cpu-time:" in line or " sample_wide:cpu-time:" in line
               for line in babeltrace(directory))


@needs_babeltrace
def test_flush__a_killed_recorder_leaves_the_samples_until_the_last_flush(worker, report,
                                                                        babeltrace, tmp_path):
    process, directory = worker()
    sizes = {0}
    # Two flushes: the second one's packet goes on where the first one's ended.
    wait_until(lambda: sizes.add(stream_bytes(directory)) or len(sizes) == 3)
    process.kill()
    process.wait(SECONDS)
    flushed = (directory / "ust" / "slot_0000").stat().st_mtime
    worked = [cpu for at, cpu in (map(float, line.split())
                                  for line in (tmp_path / "log").read_text().splitlines())
              if at < flushed]
    got = report(directory)
    samples = sum(thread["samples"] for thread in got["threads"])
    assert samples == read_back(directory, babeltrace)
    assert len(worked) > 10
    # Every tick of its CPU time but few: those of its start and those that fell into a wait.
    assert samples > 0.5 * worked[-1] / (manifest(directory)["tick_ns"] / 1e9)
    text = subprocess.run([PATHPROF, "report", directory], capture_output=True, text=True,
                          timeout=SECONDS, check=True).stdout
    assert "not complete" in text and "packets are missing" not in text
