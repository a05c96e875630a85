# SPDX-License-Identifier: MIT
"""pathprof on the counter: every overflow is a sample or a loss with its reason; lines are right;
threads, fork and exec go on under counting."""

import json
from collections import Counter

import pytest

from conftest import PROGRAMS, PYTHON, report, rows, stacks

PERIOD = 100_003
SPIN = """
import threading
def spin():
    for _ in range(1000000):
        pass
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
FORK = """
import os, sys
def spin():
    for _ in range(400000):
        pass
for _ in range(5):
    child = os.fork()
    spin()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
EXEC = """
import os, sys
def spin():
    for _ in range(400000):
        pass
spin()
if int(sys.argv[2]):
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], sys.argv[1], str(int(sys.argv[2]) - 1)])
"""


def check_all_seen(overflows, parts, kernel=False):
    """Every overflow of `parts` threads or images is a sample or a loss."""
    samples, lost, counted = overflows
    # But for what each part counts before its first overflow and after its last: in the kernel that is
    # the end of the thread, and the wait for the whole period.
    assert abs(counted - samples - lost) <= (4 if kernel else 2) * parts
    assert samples > 500 and lost <= 0.01 * samples


def overflows(recording):
    """(samples, lost, the counter's value / period) of a recording's one event."""
    told = report(recording)
    event = told["events"][0]
    return event["samples"], told["lost"]["total"], event["count"] / event["period"]


@pytest.mark.parametrize("event", ["cycles:u", "cycles"])
@pytest.mark.parametrize("trigger", ["perf-sigtrap", "perf-async"])
def test_record__no_overflow_is_missing(record, event, trigger, exactly):
    _, recording = record([PYTHON, "-c", SPIN], "-e", event, "-c", PERIOD, "--trigger", trigger,
                          "--seed", 1)
    samples, lost, counted = overflows(recording)
    exactly("overflows", [samples, lost, round(counted, 3)])
    told = report(recording)
    assert told["recording"]["trigger"] == trigger
    assert len(told["threads"]) == 4
    check_all_seen((samples, lost, counted), 4, kernel=event == "cycles")


def test_record__inherited(record, exactly):
    _, recording = record([PYTHON, "-c", SPIN], "-e", "cycles:u", "-c", PERIOD, "--inherit")
    samples, lost, counted = overflows(recording)
    exactly("overflows", [samples, lost, round(counted, 3)])
    assert len(report(recording)["threads"]) == 4
    check_all_seen((samples, lost, counted), 4)


def test_record__jittered_samples_stand_for_what_was_counted(record, exactly):
    _, recording = record([PYTHON, "-c", SPIN], "-e", "cycles:u", "-c", PERIOD, "--trigger",
                          "perf-async", "--jitter=yes", "--seed", 1)
    samples, lost, counted = overflows(recording)
    weight = sum(row["count"] for row in rows(recording)) / PERIOD
    exactly("overflows", [samples, lost, round(counted, 3), round(weight, 3)])
    told = report(recording)
    assert told["events"][0]["jitter"] == PERIOD // 2 and lost == 0
    # The first sample of a thread stands for a whole period; its last period makes none.
    assert abs(weight - counted) <= 4 * 1.5
    # n evenly drawn periods: 4 standard errors of their mean are 4 / sqrt(12 n) of it.
    assert abs(samples / counted - 1) < 4 / (12 * samples) ** 0.5 + 4 * 1.5 / samples


@pytest.mark.parametrize("trigger", ["perf-sigtrap", "perf-async"])
@pytest.mark.parametrize("program,more", [(FORK, []), (EXEC, [EXEC, "4"])], ids=["fork", "exec"])
def test_record__fork_and_exec_under_counting(record, trigger, program, more, exactly):
    _, recording = record([PYTHON, "-c", program, *more], "-e", "cycles:u", "-c", PERIOD,
                          "--trigger", trigger,
                          "--seed", 1)
    samples, lost, counted = overflows(recording)
    exactly("overflows", [samples, lost, round(counted, 3)])
    check_all_seen((samples, lost, counted), 6)


def test_record__lines_are_right(record, exactly):
    done, recording = record([PYTHON, PROGRAMS / "lines.py", "1"], "-e", "cycles:u", "-c", 10_007)
    truth = json.loads(done.stdout)
    found = Counter()
    for frames, samples in stacks(recording):
        if frames and frames[-1]["function"] == "hot":
            found[str(frames[-1]["line"])] += samples
    exactly("found", dict(found))
    n, whole = sum(found.values()), sum(truth.values())
    assert n > 10_000
    for line, true in truth.items():
        assert abs(found[line] / n - true / whole) < 0.003
