# SPDX-License-Identifier: MIT
"""Threads: sampled from their start, and nothing of ours left in whatever way they end."""

import os
import re
import shutil
import subprocess

import pytest
from agent_recorder import AGENT, SECONDS, TRIGGERS, program, record, trigger_options

def test_main_thread__is_sampled_and_accounted(tmp_path):
    run = record(tmp_path, program("threads"), "burn", "500")
    assert run.status == 7
    assert run.result["active"] == 1
    assert run.result["cpu_ns"] >= 500_000_000
    # One interval for each sample and each merged tick: the total is right.
    ticks_ns = (run.result["samples"] + run.result["overrun"]) * 1_000_000
    assert 0.8 * run.result["cpu_ns"] < ticks_ns < 1.2 * run.result["cpu_ns"]


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_threads__end_in_every_way_without_a_trace(tmp_path, trigger):
    run = record(tmp_path, program("threads"), "ends", options=trigger_options(trigger))
    assert run.lines("results ") == ["1"]
    assert run.lines("timers ") == ["1" if trigger == "cpu" else "0"]  # the main thread's
    assert run.result["ended"] == run.result["with_cpu"] == 6
    assert run.result["cpu_ns"] > 6 * 20_000_000 - 40_000_000
    assert run.result["samples"] > 0


def test_threads__short_ones_leak_nothing_and_are_sampled(tmp_path):
    run = record(tmp_path, program("threads"), "many", "1000")
    assert run.status == 0
    before, after = map(int, run.lines("sigq "))
    assert after - before < 500  # the user's, so others change it too; a leak would be 1000
    assert set(run.lines("timers ")) == {"1"}
    assert run.result["ended"] == run.result["with_cpu"] == 1000
    assert run.result["lost"]["no_slot"] == 0
    assert run.result["samples"] > 0


def test_threads__without_a_slot_run_unsampled_and_counted(tmp_path):
    run = record(tmp_path, program("threads"), "ends", options=("-s", "2"))
    assert run.lines("results ") == ["1"]
    assert run.result["lost"]["no_slot"] >= 1


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root to change ids")
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_threads__change_ids_together_under_ticks(tmp_path, trigger):
    run = record(tmp_path, program("threads"), "setid", options=trigger_options(trigger))
    assert run.lines("bad ") == ["0"]
    assert run.status == 0


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_threads__are_cancelled_under_ticks(tmp_path, trigger):
    run = record(tmp_path, program("threads"), "cancel", options=trigger_options(trigger))
    assert run.lines("bad ") == ["0"]
    assert run.result["ended"] == 200


def test_threads__page_faults_of_each_are_counted(tmp_path):
    run = record(tmp_path, program("threads"), "faults", options=("-t", "perf", "-c", "1"))
    assert run.status == 0
    assert run.result["ended"] == 1
    assert run.result["samples"] > 0
    assert run.result["lost"]["late_arming"] == 0


def test_timers__that_cannot_be_made_are_counted(tmp_path):
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0)); " \
            "os.execv(sys.argv[1], sys.argv[1:])"
    run = record(tmp_path, "/usr/bin/python3", "-c", limit, program("threads"), "many", "5")
    assert run.status == 0
    assert set(run.lines("timers ")) == {"0"}
    assert run.result["lost"]["late_arming"] == 6


def test_errno__survives_a_million_failing_calls_under_ticks(tmp_path):
    run = record(tmp_path, program("errno-loop"))
    assert run.lines("wrong ") == ["0"]
    assert run.result["samples"] > 5


@pytest.mark.skipif(not shutil.which("strace"), reason="SKIPPED: strace is not installed")
def test_threads__cost_six_system_calls_and_the_doorbell(tmp_path):
    def calls(n, agent):
        trace = tmp_path / "strace"
        command = [program("threads"), "many", str(n)]
        if agent:
            command = [program("recorder"), "-r", "/dev/null", str(AGENT), "--", *command]
        subprocess.run(["strace", "-f", "-o", str(trace), *command], check=True,
                       capture_output=True, timeout=SECONDS)
        text = trace.read_text()
        ours = r"timer_\w+|getrusage|prctl|gettid|getpid|rt_sigaction"
        recorder = text.split()[0] if agent else ""
        return sum(1 for line in text.splitlines()
                   if line.split()[0] != recorder and re.match(rf"\d+ +({ours})\(", line))

    with_agent = calls(60, True) - calls(10, True)
    without = calls(60, False) - calls(10, False)
    # timer_create, timer_settime, timer_delete, getrusage, prctl: 5. The sixth is clock_gettime,
    # which the program itself calls at random, the seventh the doorbell's futex, as joining.
    assert with_agent - without == 50 * 5


def test_recorder_gone__timers_fall_silent_and_the_program_ends_as_it_would(tmp_path):
    libc = __import__("ctypes").CDLL(None)
    assert libc.prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER: the orphan's status is ours
    argv = [program("recorder"), "-q", "-r", str(tmp_path / "none"), str(AGENT), "--",
            program("threads"), "orphan"]
    recorder = subprocess.Popen(argv)
    assert recorder.wait(timeout=SECONDS) == 0
    _, status = os.waitpid(-1, 0)
    assert os.waitstatus_to_exitcode(status) == 7
