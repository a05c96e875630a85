# SPDX-License-Identifier: MIT
"""The frame walk against the truth that a program records about itself at the same moment."""

import json
import subprocess

import pytest

from conftest import ROOT
from looks import END_TRUNCATED, PROBE, ROOM, check

PROGRAM = ROOT / "tests" / "programs" / "walk_truth.py"


def run(python, case, *how):
    done = subprocess.run([python, str(PROGRAM), str(PROBE), case, *how], capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Looks that the case makes: each is taken with and without the lock.
CASES = {"nested": 1, "lines": 13, "far_lines": 2, "methods": 1, "generators": 10, "coroutines": 19,
         "comprehensions": 5, "decorators": 4, "class_bodies": 3, "executed": 5, "names": 7,
         "deep": 1, "threads": 5, "callbacks": 7, "faults": 1}


@pytest.mark.parametrize("case", CASES)
def test_walk__is_the_truth(python, case):
    looks = run(python, case)["looks"]
    check(looks)
    assert len(looks) == 2 * CASES[case]


@pytest.mark.parametrize("case", ["nested", "lines", "generators", "coroutines", "names", "deep",
                                  "threads", "callbacks", "subinterpreters"])
def test_walk__is_the_truth_from_another_process(python, case):
    check(run(python, case, "outside")["looks"])


def test_walk__knows_the_line_not_only_the_function(python):
    """A walk that gave the line of the `def` would fail here and in every case above."""
    looks = run(python, "lines")["looks"]
    seen = {name: {frame[2] for look in looks for frame in look["walked"] if frame[1] == name}
            for name in ("look", "lines")}
    assert len(seen["look"]) == 1
    assert len(seen["lines"]) == 12


def test_walk__says_that_it_was_cut(python):
    looks = run(python, "deeper_than_room")["looks"]
    check(looks, END_TRUNCATED)
    assert {len(look["walked"]) for look in looks} == {ROOM}


def test_walk__marks_what_native_code_entered(python):
    looks = run(python, "callbacks")["looks"]
    entered = {"called_back", "callbacks.<locals>.key", "<module>"}
    marks = {(name, entry) for look in looks for _, name, _, entry in look["walked"]}
    names = {name for name, _ in marks}
    assert entered < names
    assert marks == {(name, name in entered) for name in names}


@pytest.mark.parametrize("case", ["subinterpreters", "subinterpreter_in_thread"])
def test_walk__follows_subinterpreters(python, case):
    result = run(python, case)
    check(result["looks"])
    assert len(result["facts"]["in_sub"]) == 4
    for look in result["facts"]["in_sub"]:
        assert look["walked"][-1][0] in ("<string>", "<script>")
        assert look["walked"][-1][1] == "<module>"


def test_thread_state__is_none_in_a_thread_without_python(python):
    assert run(python, "foreign_thread")["facts"]["state"] == 0


def test_identity__is_equal_exactly_when_the_content_is(python):
    facts = run(python, "identities")["facts"]
    assert facts["wrong"] == 0
    assert facts["identities"] == 40_000
    assert facts["addresses"] < 90_000  # of 100,000: addresses do come back, some much later
    assert facts["pairs"] == facts["similar_identities"] == facts["similar_contents"] == 100


def test_reading__survives_addresses_where_nothing_is(python):
    assert set(run(python, "faults")["facts"]["wrong"]) == {0}


def test_walk__holds_at_any_instruction(python):
    """Frames are half pushed for some instructions: those walks say so, and none is wrong."""
    facts = run(python, "ticks")["facts"]
    print(f"\n{facts}")
    assert facts["ticks"] >= 20_000
    assert facts["wrong_root"] == facts["wrong_code"] == 0
    assert facts["unreadable"] < facts["ticks"] / 100  # measured: 1 in 10,000


def test_reading__cost_is_printed(python):
    """No limit is tested: the figures are for the reader."""
    facts = run(python, "benchmark")["facts"]
    print(f"\n32 frames, line tables of {facts['line_table_bytes']} bytes: "
          f"{facts['warm_ns']:.0f} ns warm, {facts['cold_ns']:.0f} ns cold")
    for how in ("outside", "outside_identified"):
        print(f"20 frames, {how}: {facts[how + '_ns']:.0f} ns, {facts[how + '_calls']:.1f} calls")
    assert facts["warm_ns"] > 0
    assert facts["outside_ns"] > 0
    assert 1 <= facts["outside_calls"] <= 20  # one a frame at worst; measured: 3 to 8
