# SPDX-License-Identifier: MIT
"""Perf events by signal and inherited ones, seen from the program: nothing of it changes."""

import re
import shutil
import subprocess

import pytest
from agent_recorder import AGENT, SECONDS, program, record

ASYNC = ("-t", "async", "-c", "3")
INHERIT = ("-t", "inherit", "-c", "10")
PAGES = "mmap(NULL, 20480,"  # 5 of them
HIGH = 1024  # no number that programs come to by opening files


def alone(*arguments):
    return subprocess.run([program("events"), *arguments], capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def numbers(text, key):
    """The descriptors of a line "key N N N", below HIGH and from it on."""
    line = next(line for line in text.splitlines() if line.split(" ", 1)[0] == key)
    found = list(map(int, line.split()[1:]))
    return [n for n in found if n < HIGH], [n for n in found if n >= HIGH]


def test_by_signal__every_overflow_is_a_sample(tmp_path):
    for period in ("1", "3"):
        run = record(tmp_path, program("events"), options=("-t", "async", "-c", period))
        assert run.status == 0
        assert run.result["counted"] >= 2000
        # The first period is half of one.
        assert abs(run.result["weight"] - run.result["counted"]) <= int(period) + 1
        assert sum(run.result["lost"].values()) == 0


def test_jitter__samples_stand_for_what_was_counted(tmp_path):
    run = record(tmp_path, program("events"), options=("-t", "async", "-c", "30", "-j", "15"))
    assert run.status == 0
    assert run.result["counted"] >= 2000
    assert 0.8 < run.result["samples"] * 30 / run.result["counted"] < 1.2
    # But for the last period, and the first, half of one that stands for a whole one.
    assert abs(run.result["weight"] - run.result["counted"]) <= 45
    assert sum(run.result["lost"].values()) == 0


def test_jitter__a_full_queue_of_signals_loses_what_it_loses(tmp_path):
    options = ("-t", "async", "-c", "6", "-j", "3")
    run = record(tmp_path, program("events"), "full-queue", "handler", options=options)
    assert (run.status, run.lines("handler "), run.lines("sigio ")) == (0, ["1"], ["1"])
    samples, lost = run.result["samples"], run.result["lost"]
    counted = run.result["counted"]
    assert counted >= 4000 and 300 < samples < 370
    assert 300 < lost["merged"] < 370 and sum(lost.values()) == lost["merged"]
    # What was lost is in no sample's weight.
    assert abs(run.result["weight"] - counted / 2) < 0.1 * counted
    assert abs((samples + lost["merged"]) * 6 - counted) < 0.1 * counted


def test_jitter__a_program_that_closes_everything_keeps_its_own(tmp_path):
    options = ("-t", "async", "-c", "6", "-j", "3")
    run = record(tmp_path, program("events"), "closed", options=options)
    assert run.status == 0
    assert run.result["samples"] > 1200 and sum(run.result["lost"].values()) == 0


def test_by_signal__descriptors_are_high_and_stay_in_the_process(tmp_path):
    without = alone("descriptors").stdout
    run = record(tmp_path, program("events"), "descriptors", options=ASYNC)
    assert run.status == 0
    for key, ours in (("start", 2), ("thread", 3), ("after", 2), ("child", 0), ("executed", 2)):
        low, high = numbers(run.out, key)
        assert (low, len(high)) == (numbers(without, key)[0], ours), (key, run.out)
    assert run.lines("first ") == [line[6:] for line in without.splitlines()
                                   if line.startswith("first ")]


def test_by_signal__a_program_that_closes_everything_keeps_its_own(tmp_path):
    run = record(tmp_path, program("events"), "closed", options=ASYNC)
    assert run.status == 0
    assert run.result["samples"] > 2400  # also behind that: both threads take theirs again
    assert sum(run.result["lost"].values()) == 0


@pytest.mark.parametrize("handler", [[], ["handler"]])
def test_by_signal__a_full_queue_of_signals_kills_nobody(tmp_path, handler):
    run = record(tmp_path, program("events"), "full-queue", *handler, options=ASYNC)
    assert run.status == 0  # SIGIO's default action would have killed
    assert run.lines("handler ") == [str(len(handler))]
    assert run.result["counted"] >= 4000  # and it was re-armed each time
    assert 600 < run.result["samples"] < 700


def test_by_signal__sigio_is_the_programs_own(tmp_path):
    for how in ("handle", "ignore"):
        without = alone("sigio", how)
        run = record(tmp_path, program("events"), "sigio", how, options=ASYNC)
        assert (run.status, run.out) == (0, without.stdout)
        assert run.result["samples"] >= 660
    assert record(tmp_path, program("events"), "sigio", "kill", options=ASYNC).status == 128 + 29


def test_by_signal__nothing_queues_however_short_the_period(tmp_path):
    run = record(tmp_path, program("events"), "blocked", options=("-t", "async", "-c", "1"))
    assert run.status == 0
    assert int(*run.lines("queued ")) < 100  # the user's, so others change it; 20,000 overflows
    assert run.result["samples"] > 1900  # and it went on after the unblocking


def test_inherited__threads_are_sampled_without_asking(tmp_path):
    run = record(tmp_path, program("events"), "threads", "20", "100", options=INHERIT)
    assert run.status == 0
    assert run.result["asked"] == 1
    assert run.result["ended"] == 20
    assert 20 * 9 <= run.result["samples"] <= run.result["counted"] // 10
    assert run.result["lost"]["late_arming"] == 0


def test_inherited__children_and_what_they_exec_are_not_hit(tmp_path):
    run = record(tmp_path, program("events"), "children", options=("-t", "inherit", "-c", "1"))
    assert run.status == 0  # one that is hit after its exec is killed
    assert 2000 <= run.result["samples"] <= run.result["counted"] < 3000  # 22,000 with them


def test_inherited__the_main_thread_may_end(tmp_path):
    run = record(tmp_path, program("events"), "main-ends", options=INHERIT)
    assert run.status == 0
    # 20,000 pages of the other thread; each of the two ends within a period that is not full.
    assert run.result["samples"] >= 2000 - 2


@pytest.mark.skipif(not shutil.which("strace"), reason="SKIPPED: strace is not installed")
def test_inherited__setting_up_a_thread_is_no_system_call(tmp_path):
    def calls(agent):
        """Names of those of each thread before it maps its first pages."""
        trace = tmp_path / "strace"
        command = [program("events"), "threads", "10", "5"]
        if agent:
            command = [program("recorder"), "-r", "/dev/null", *INHERIT, str(AGENT), "--", *command]
        subprocess.run(["strace", "-f", "-o", str(trace), *command], check=True,
                       capture_output=True, timeout=SECONDS)
        by_thread = {}
        for line in trace.read_text().splitlines():
            thread, call = line.split(maxsplit=1)
            if not call.startswith("<"):
                by_thread.setdefault(thread, []).append(call)
        return [before_pages(made) for made in by_thread.values()
                if any(call.startswith("rseq") for call in made[:3])
                and not made[0].startswith("exec") and any(PAGES in call for call in made)]

    def before_pages(made):
        first = next(i for i, call in enumerate(made) if PAGES in call)
        return [call.split("(")[0] for call in made[:first]]

    without = calls(False)
    assert len(without) == 10
    assert calls(True) == without
