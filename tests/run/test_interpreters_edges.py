# SPDX-License-Identifier: MIT
"""No stack of a recording has an edge that cannot be: a program's functions call a few each, and
its text says which (programs/impossible). `bench/impossible_edges.py` looks at more samples."""

import json
import sys

import pytest

from conftest import ROOT

PROGRAM = ROOT / "tests" / "programs" / "impossible" / "program.py"
sys.path.insert(0, str(PROGRAM.parent))

import edges  # pylint: disable=wrong-import-position

SECONDS = 0.7  # of CPU, for each of two threads
PERIOD_NS = 50_000
LEAST = 20_000  # samples to look at; 28,000 are due in a run, and more runs are made
RUNS_MOST = 4
UNREAD_MOST = 0.05  # measured: 0.013 on 3.12, 0.001 on 3.11, else less


def record_rows(record, pathprof, python, number):
    """What `export` says of a recording of the program."""
    done, directory = record([python, PROGRAM, SECONDS], "-q", "-e", "cpu-clock", "-c", PERIOD_NS,
                             name=f"recording-{number}")
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: no software clock here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    text = pathprof("export", "-q", directory, "--format", "jsonl").stdout
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.plain_only
def test_stack__has_no_edge_that_cannot_be(record, pathprof, python):
    rows, verdict = [], edges.Verdict()
    for number in range(RUNS_MOST):
        rows += record_rows(record, pathprof, python, number)
        verdict = edges.verdict(rows)
        if verdict.looked_at >= LEAST:
            break
    print(f"\n{python.name}: {verdict}")
    assert verdict.looked_at >= LEAST
    assert verdict.unread <= UNREAD_MOST * verdict.samples
    assert not verdict.functions, verdict
    # With the JIT a frame's position may be that of an earlier instruction.
    assert python.kind == "jit" or not verdict.lines, verdict


def row(*names, file="family_p.py"):
    """A row of an export; the callers' lines are those that the text marks."""
    lines = {callee: line for line, callees in edges.CALLS.items() if isinstance(line, int)
             for callee in callees}
    frames = [("program.py", "<module>", 1), ("program.py", "main", 26)]
    frames += [(file, name, lines.get(callee, 1))
               for name, callee in zip(names, [*names[1:], None])]
    return {"samples": 7, "frames": [{"file": f, "function": n, "line": line, "kind": "python"}
                                     for f, n, line in frames]}


DOWN = ["work", "recurses", *["down"] * 8, "bottom"]
ROWS = [row("work", "root_a", "a_0", "b_1", "a_2"), row(*DOWN[:-1]),
        row("work", "alternates", "take_1", "gen_1", "inner_1"), row("work", "uses", "value")]


def changed(number, change):
    rows = json.loads(json.dumps(ROWS))
    change(rows[number]["frames"])
    return rows


def test_verdict__of_stacks_that_can_be():
    good = edges.verdict(ROWS)
    assert (good.looked_at, good.outside, good.unread) == (28, 0, 0)
    assert not good.functions and not good.lines


@pytest.mark.parametrize("number, change", [
    (0, lambda frames: frames.pop(4)),  # a caller is missing
    (0, lambda frames: frames.pop(2)),  # the family's first
    (0, lambda frames: frames.__delitem__(slice(0, 4))),  # the root's side is missing, unsaid
    (0, lambda frames: frames[5].update(function="b_3")),
    (0, lambda frames: frames[5].update(file="family_q.py")),  # the other thread's
    (1, lambda frames: frames.insert(4, frames[4])),  # too deep
    (2, lambda frames: frames[5].update(function="gen_2")),
    (3, lambda frames: frames.append(frames[4])),  # value calls itself
], ids=str)
def test_verdict__finds_what_cannot_be(number, change):
    assert edges.verdict(changed(number, change)).functions.total() == 7


def test_verdict__finds_lines_that_cannot_be():
    found = edges.verdict(changed(0, lambda frames: frames[3].update(line=frames[3]["line"] + 1)))
    assert (found.functions.total(), found.lines.total()) == (0, 7)


def test_verdict__looks_at_what_was_read_of_a_stack():
    marker = {"file": None, "function": "[unreadable]", "line": None, "kind": "marker"}

    def cut(*more):
        return edges.verdict(changed(0, lambda frames: frames.__setitem__(slice(0, 4),
                                                                          [marker, *more])))
    good = cut()
    assert (good.unread, good.functions.total()) == (7, 0)
    assert cut(ROWS[2]["frames"][4]).functions.total() == 7
