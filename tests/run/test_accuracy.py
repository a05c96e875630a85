# SPDX-License-Identifier: MIT
"""The sampled shares are right: by function, by line, under load, with threads that compete for
the interpreter lock; and what a CPU timer cannot get right is said in the report's first lines.

Truth: the programs measure themselves with the thread's CPU clock. Bound: sampling theory. With n
samples a share p has a standard deviation of sqrt(p (1 - p) / n); 4.5 of them, and half a percent for
what the measuring itself costs. Each check is shown to fail on three mutants of the same data.
"""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
DEVIATIONS = 4.5
SLACK = 0.005
BUSY = "while True: pass"


def stacks(pathprof, recording):
    """[(frames root first, samples)]"""
    text = subprocess.run(
        [pathprof, "export", recording, "--format", "jsonl"],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    return [(row["frames"], row["samples"]) for row in map(json.loads, text.splitlines())]


def record(pathprof, recording, program, *arguments, options=()):
    run = subprocess.run(
        [pathprof, "record", "-q", *options, "-o", recording, "--", "/usr/bin/python3",
         PROGRAMS / program, *arguments],
        check=True, stdout=subprocess.PIPE, text=True,
    )
    return run.stdout


def by_function(rows):
    """Samples with f_NN on the stack: what f_NN and what it calls took."""
    found = Counter()
    for frames, samples in rows:
        names = {frame["function"] for frame in frames if frame["function"].startswith("f_")}
        for name in names:
            found[name] += samples
    return found


def by_line(rows):
    """Samples by the line of hot() that was at work."""
    found = Counter()
    for frames, samples in rows:
        if frames and frames[-1]["function"] == "hot":
            found[str(frames[-1]["line"])] += samples
    return found


def deviation(found, truth):
    """The largest difference of a share, in units of what theory allows."""
    total, true_total = sum(found.values()), sum(truth.values())
    worst = 0.0
    for name, true in truth.items():
        share, expected = found.get(name, 0) / total, true / true_total
        allowed = DEVIATIONS * math.sqrt(expected * (1 - expected) / total) + SLACK
        worst = max(worst, abs(share - expected) / allowed)
    return worst


def check(found, truth, unexpected=0.0):
    assert sum(found.values()) > 300, "too few samples to say anything"
    outside = sum(count for name, count in found.items() if name not in truth)
    assert outside <= unexpected * sum(found.values()), f"samples outside: {found}"
    assert deviation(found, truth) <= 1, f"found {dict(found)}, true {truth}"


def counted_twice(rows):
    """Mutant: samples in the second heaviest function count twice."""
    return [
        (frames, samples * (2 if any(f["function"] == "f_01" for f in frames) else 1))
        for frames, samples in rows
    ]


def dropped_leaf(rows):
    """Mutant: the innermost frame is lost."""
    return [(frames[:-1], samples) for frames, samples in rows]


def line_of_def(rows):
    """Mutant: each frame shows the first line of hot()."""
    first = min(f["line"] for frames, _ in rows for f in frames if f["function"] == "hot") - 1
    return [
        ([{**f, "line": first} if f["function"] == "hot" else f for f in frames], samples)
        for frames, samples in rows
    ]


@pytest.fixture
def neighbours():
    """As many busy processes as there are CPUs, beside the measured one."""
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)
    ]
    yield busy
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.parametrize("threads", [1, 3])
def test_shares_by_function(pathprof, tmp_path, threads):
    truth = json.loads(record(pathprof, tmp_path / "r", "calibrated.py", "6", str(threads)))
    rows = stacks(pathprof, tmp_path / "r")
    check(by_function(rows), truth)
    with pytest.raises(AssertionError):
        check(by_function(counted_twice(rows)), truth)


def test_shares_by_function_on_a_busy_machine(pathprof, tmp_path, neighbours):
    truth = json.loads(record(pathprof, tmp_path / "r", "calibrated.py", "6", "2"))
    check(by_function(stacks(pathprof, tmp_path / "r")), truth)


def test_leaf_is_burn(pathprof, tmp_path):
    """Nearly all time is in burn(), so nearly all samples of f_NN have it innermost."""
    record(pathprof, tmp_path / "r", "calibrated.py", "3")

    def share(rows):
        leaf = sum(n for frames, n in rows if frames and frames[-1]["function"] == "burn")
        return leaf / sum(n for _, n in rows)

    rows = stacks(pathprof, tmp_path / "r")
    assert share(rows) > 0.9
    assert share(dropped_leaf(rows)) < 0.1


def test_shares_by_line(pathprof, tmp_path):
    truth = json.loads(record(pathprof, tmp_path / "r", "lines.py", "6"))
    rows = stacks(pathprof, tmp_path / "r")
    check(by_line(rows), truth, unexpected=0.02)
    with pytest.raises(AssertionError):
        check(by_line(line_of_def(rows)), truth, unexpected=0.02)
    with pytest.raises(AssertionError):
        check(by_line(dropped_leaf(rows)), truth, unexpected=0.02)


def test_samples_are_the_cpu_time(pathprof, tmp_path):
    """The number of samples, lost ones included, times the period is the CPU time."""
    record(pathprof, tmp_path / "r", "calibrated.py", "4", "3")
    report = json.loads(
        subprocess.run([pathprof, "report", "--json", tmp_path / "r"], check=True,
                       stdout=subprocess.PIPE, text=True).stdout
    )
    period = report["events"][0]["period"]
    expected = report["events"][0]["count"] / period
    assert report["events"][0]["count"] > 4e9
    seen = report["samples"] + report["lost"]["total"]
    # A timer that is read at its end misses at most the last tick of each thread.
    allowed = 0.01 * expected + 2 * len(report["threads"])
    assert abs(seen - expected) <= allowed
    assert abs(seen + report["samples"] - expected) > allowed, "counted twice would pass"


def test_in_step_is_said_first(pathprof, tmp_path):
    record(pathprof, tmp_path / "r", "in_step.py", "4", options=["-e", "cpu-time"])
    text = subprocess.run([pathprof, "report", tmp_path / "r"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    head = text.split("Function")[0]
    assert "in step" in head and "cpu-clock" in head, head


def test_in_step_is_right_by_the_software_clock(pathprof, tmp_path):
    # Not 1 ms, which is how long the program runs each time: that would be another rhythm.
    run = subprocess.run(
        [pathprof, "record", "-q", "-e", "cpu-clock", "-c", "730000", "-o", tmp_path / "r", "--",
         "/usr/bin/python3", PROGRAMS / "in_step.py", "4"],
        stderr=subprocess.PIPE, text=True,
    )
    if run.returncode == 125:
        pytest.skip(f"no software clock here: {run.stderr.strip()}")
    found = Counter()
    for frames, samples in stacks(pathprof, tmp_path / "r"):
        if frames and frames[-1]["function"] in ("a", "b"):
            found[frames[-1]["function"]] += samples
    check(found, {"a": 1, "b": 1})
    text = subprocess.run([pathprof, "report", tmp_path / "r"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "in step" not in text


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_busy_program_is_not_said_to_be_in_step(pathprof, tmp_path, threads):
    """Also where threads hand on the interpreter lock every 5 ms, a simple ratio of the tick."""
    record(pathprof, tmp_path / "r", "calibrated.py", "3", threads)
    text = subprocess.run([pathprof, "report", tmp_path / "r"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "in step" not in text
