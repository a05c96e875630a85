# SPDX-License-Identifier: MIT
"""pathprof on the counter: every overflow is a sample or a loss with its reason; lines are right;
threads, fork and exec go on under counting."""

import json
from collections import Counter

import pytest

from conftest import PROGRAMS, PYTHON, report, stacks

PERIOD = 100_003
# A thread's first period is drawn; until the recorder comes to set the whole one its overflows are
# not samples. This machine has one processor, so the recorder comes when the thread's turn ends.
UNCOVERED_CYCLES = 8_000_000
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


def check_all_seen(overflows, parts, trigger):
    """Every overflow of `parts` threads or images is a sample or a loss."""
    samples, lost, counted = overflows
    uncovered = UNCOVERED_CYCLES / PERIOD if trigger == "perf-sigtrap" else 0
    # Beside that, what each part counts before its first overflow and after its last.
    assert -2 * parts <= counted - samples - lost <= parts * (2 + uncovered)
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
    check_all_seen((samples, lost, counted), 4, trigger)


def test_record__inherited(record, exactly):
    _, recording = record([PYTHON, "-c", SPIN], "-e", "cycles:u", "-c", PERIOD, "--inherit")
    samples, lost, counted = overflows(recording)
    exactly("overflows", [samples, lost, round(counted, 3)])
    assert len(report(recording)["threads"]) == 4
    check_all_seen((samples, lost, counted), 4, "inherited")


@pytest.mark.parametrize("trigger", ["perf-sigtrap", "perf-async"])
@pytest.mark.parametrize("program,more", [(FORK, []), (EXEC, [EXEC, "4"])], ids=["fork", "exec"])
def test_record__fork_and_exec_under_counting(record, trigger, program, more, exactly):
    _, recording = record([PYTHON, "-c", program, *more], "-e", "cycles:u", "-c", PERIOD,
                          "--trigger", trigger,
                          "--seed", 1)
    samples, lost, counted = overflows(recording)
    exactly("overflows", [samples, lost, round(counted, 3)])
    check_all_seen((samples, lost, counted), 6, trigger)


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
