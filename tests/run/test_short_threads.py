# SPDX-License-Identifier: MIT
"""Threads much shorter than a period have their share of the samples."""

import math
import os
from pathlib import Path

import pytest
from agent_recorder import program

THREADS = 4000
PARANOID = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
NEEDS_KERNEL_CLOCK = pytest.mark.skipif(
    os.geteuid() != 0 and PARANOID > 1, reason="SKIPPED: may not count kernel time")


@pytest.mark.parametrize("event", [
    pytest.param(("-e", "cpu-clock", "-c", "1000000"), marks=NEEDS_KERNEL_CLOCK),
    ("-e", "cpu-time"),
])
def test_short_threads__have_their_share_beside_a_busy_one(record, report, event):
    done, recording = record([program("events"), "share", str(THREADS), "50"], *event)
    assert done.returncode == 0, done.stderr
    ran = {key: int(value) for key, value in map(str.split, done.stdout.splitlines())}
    threads = report(recording)["threads"]
    busy = sum(t["samples"] for t in threads if t["name"] == "busy")
    short = sum(t["samples"] for t in threads if t["name"] == "main" and t["pid"] != t["tid"])
    share = ran["short"] / (ran["short"] + ran["busy"])
    due = share * (short + busy)
    # As many as a fair draw gives, within five standard deviations.
    assert due > 20
    assert abs(short - due) < 5 * math.sqrt(due * (1 - share)), (short, due, busy)
