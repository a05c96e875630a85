# SPDX-License-Identifier: MIT
"""SIGSEGV, SIGBUS and SIGTRAP are the program's own, whatever we do with them."""

import os
import subprocess
from pathlib import Path

import pytest
from agent_recorder import PYTHON, SECONDS, TRIGGERS, library, program, record, trigger_options

CASE = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).signals_case(sys.argv[2].encode()))"
SEGV, TRAP = 128 + 11, 128 + 5
PARANOID = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
NEEDS_KERNEL_CLOCK = pytest.mark.skipif(
    os.geteuid() != 0 and PARANOID > 1, reason="SKIPPED: may not count kernel time")


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("case", ["faults", "flags", "overflow", "trap", "masks"])
def test_program__sees_its_own_signals(tmp_path, case, trigger):
    run = record(tmp_path, PYTHON, "-c", CASE, library("signals"), case,
                 options=trigger_options(trigger))
    assert (run.status, run.out) == (0, "")
    assert run.result["hellos"][0]["interpreter"] == 1  # else SIGSEGV was never ours
    if case == "faults" or trigger == "perf":  # else it may end before a tick
        assert run.result["samples"] > 0


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_ignored_signals__stay_ignored_over_exec(tmp_path, trigger):
    run = record(tmp_path, PYTHON, "-c", CASE, library("signals"), "children",
                 options=trigger_options(trigger))
    masks = {int(line, 16) & 0x410 for line in run.out.split()}
    assert masks == {0x410}
    assert len(run.out.split()) == 3


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("code, status", [
    ("import ctypes; ctypes.string_at(8)", SEGV),
    ("import os; os.kill(os.getpid(), 11)", SEGV),
    ("import os; os.kill(os.getpid(), 5)", TRAP),
    ("import sys; sys.setrecursionlimit(1 << 30); f = lambda x: sorted([1], key=f); f(1)", SEGV),
])
def test_default_action__kills_as_without_us(tmp_path, code, status, trigger):
    run = record(tmp_path, PYTHON, "-c", code, options=trigger_options(trigger))
    assert run.status == status


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_faulthandler__works(tmp_path, trigger):
    run = record(tmp_path, PYTHON, "-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(8)",
                 options=trigger_options(trigger))
    assert run.status == SEGV
    assert "Fatal Python error: Segmentation fault" in run.err
    assert "string_at" in run.err


def test_getsignal__shows_what_it_showed(tmp_path):
    code = """
import signal
for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP):
    assert signal.getsignal(number) == signal.SIG_DFL, number
    signal.signal(number, lambda *_: print("handled"))
signal.raise_signal(signal.SIGTRAP)
"""
    run = record(tmp_path, PYTHON, "-c", code, options=trigger_options("perf"))
    assert (run.status, run.out) == (0, "handled\n")


# With the interpreter's lock held, which ctypes.CDLL would release.
HOLDING = CASE.replace("CDLL", "PyDLL")


def test_fault__while_an_event_is_queued_is_told_as_it_was(tmp_path):
    run = record(tmp_path, PYTHON, "-c", CASE, library("signals"), "queued_trap",
                 options=("-t", "perf", "-c", "1"))
    assert (run.status, run.out) == (0, "")
    assert run.result["lost"]["delayed"] >= 100  # the queued ones


@NEEDS_KERNEL_CLOCK
def test_walks__that_fault_under_queued_events_harm_nobody(tmp_path):
    run = record(tmp_path, PYTHON, "-c", HOLDING, library("signals"), "bad_frames",
                 options=("-t", "clock", "-c", "10000"))
    assert (run.status, run.out) == (0, "")
    assert run.result["samples"] > 100 and run.result["lost"]["delayed"] > 0


CLOCK = ("-t", "clock", "-c", "30000")  # in a good part of the calls, a tick is due with the alarm


@NEEDS_KERNEL_CLOCK
def test_interrupted_calls__end_or_begin_again_as_the_handler_says(tmp_path):
    run = record(tmp_path, program("interrupted"), "30", options=CLOCK)
    assert run.status == 0
    found = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in run.out.splitlines()}
    assert set(found) == {"read", "accept", "connect", "sem_wait", "wait", "flock", "msgrcv"}
    # On a busy machine an alarm may come before its call.
    assert all(ended >= 26 and restarted == 30 for ended, restarted in found.values()), found
    assert run.result["samples"] > 100


@NEEDS_KERNEL_CLOCK
def test_interrupted_calls__fork_is_none(tmp_path):
    run = record(tmp_path, program("interrupted"), "forks", "2000", options=CLOCK)
    assert run.out == "failed 0\n"
    assert run.result["samples"] > 100


@NEEDS_KERNEL_CLOCK
def test_interrupted_calls__end_although_another_thread_could_take_the_signal(tmp_path):
    run = record(tmp_path, program("interrupted"), "threads", "100", options=CLOCK)
    assert int(*run.lines("ended ")) >= 85  # without our care about 60
    assert run.result["samples"] > 100


LOCKS = """
import json, threading
for i in range(2000):
    json.loads(json.dumps({str(k): [k] * 10 for k in range(30)}))
"""
BLOCKED = """
import ctypes
mask = ctypes.c_uint64(1 << 4)
ctypes.CDLL(None).syscall(14, 0, ctypes.byref(mask), None, 8)  # rt_sigprocmask, x86-64
[str(i) * 1000 for i in range(1000)]
"""


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_handler__neither_allocates_nor_locks(tmp_path, trigger):
    run = record(tmp_path, PYTHON, "-c", LOCKS,
                 options=(*trigger_options(trigger), "-p", library("no-malloc")))
    assert run.status == 0
    assert run.result["samples"] > 5


def test_handler__an_allocation_would_be_noticed(tmp_path):
    run = record(tmp_path, PYTHON, "-c", BLOCKED, options=("-p", library("no-malloc")))
    assert run.status == 99


def test_masks__are_the_programs_in_its_eyes_and_events_come(tmp_path):
    alone = subprocess.run([program("masks"), "plain"], capture_output=True, text=True,
                           timeout=SECONDS, check=False)
    assert (alone.returncode, alone.stdout) == (0, "")
    run = record(tmp_path, program("masks"), options=("-t", "perf", "-c", "1"))
    assert (run.status, run.out) == (0, "")
    # 50 new pages in each of 19 places with the signal blocked: no event waits for the unblocking.
    assert run.result["samples"] > 700 and run.result["lost"]["delayed"] < 100


def alone_and_recorded(tmp_path, trigger, *command):
    alone = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert alone.returncode == 0 and alone.stdout
    run = record(tmp_path, *command, options=trigger_options(trigger))
    assert run.status == 0
    return alone.stdout.splitlines(), run.out.splitlines()


@pytest.mark.parametrize("threads", [(), ("threads",)])
@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_unwanted_trap__breaks_no_call_off(tmp_path, how, threads):
    alone, recorded = alone_and_recorded(tmp_path, "perf", program("unwanted"), how, "5", *threads)
    assert recorded == alone


def test_unwanted_sigio__breaks_no_call_off(tmp_path):
    alone, recorded = alone_and_recorded(tmp_path, "async", program("unwanted"), "ignored", "29")
    assert recorded == alone


IGNORES = """
import os, signal, sys
signo = int(sys.argv[1])
signal.signal(signo, signal.SIG_IGN)
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
def asleep(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "S"
parent = os.getpid()
if os.fork() == 0:
    for number in [signo] * 5 + [signal.SIGALRM]:
        while not asleep(parent):
            pass
        if number == signal.SIGALRM:
            print("ignored", flush=True)
        os.kill(parent, number)
    os._exit(0)
signal.pause()
print("woken")
"""


@pytest.mark.parametrize("signo", [7, 11])
def test_ignored_fault_signal__does_not_end_pause(tmp_path, signo):
    run = record(tmp_path, PYTHON, "-u", "-c", IGNORES, str(signo), options=trigger_options("cpu"))
    assert run.out.splitlines() == ["ignored", "alarm", "woken"]
