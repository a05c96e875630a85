# SPDX-License-Identifier: MIT
"""What the handler may not do, and what the program's system calls may not feel of it."""

import subprocess

import pytest

from conftest import BUILD
from hostile import nr_samples

PROGRAMS = BUILD / "tests" / "programs" / "hostile"
INTERPOSED = PROGRAMS / "libinterposed.so"
TRIGGERS = [["-e", "cpu-time"], ["-e", "page-faults", "-c", "1"], ["-e", "cpu-clock"]]
# New code at every step, threads, deep stacks: each path of the handler, packets that fill.
WORK = """
import threading
def deeper(n, code):
    return deeper(n - 1, code) if n else exec(code)
def work():
    for i in range(300):
        deeper(i % 60, compile(f"x = [bytearray(4096 * k) for k in range(30)]", f"<{i}>", "exec"))
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads], [t.join() for t in threads]
"""
# SIGTRAP blocked behind the C library's back, as the mask stands in the handler; then memory.
AS_IN_THE_HANDLER = """
import ctypes
mask = ctypes.c_uint64(1 << 4)
ctypes.CDLL(None).syscall(14, 0, ctypes.byref(mask), None, 8)  # rt_sigprocmask, x86-64
ACT
"""


@pytest.mark.plain_only
@pytest.mark.parametrize("options", TRIGGERS, ids=lambda options: options[1])
def test_handler__takes_no_memory_no_lock_and_writes_nothing(record, options, python):
    command = ["env", f"LD_PRELOAD={INTERPOSED}", python, "-c", WORK]
    done, directory = record(command, *options)
    assert done.returncode == 0, done.stderr
    assert nr_samples(directory) > 20


@pytest.mark.plain_only
@pytest.mark.parametrize("act", ["bytearray(1 << 20)", "print(1, flush=True)",
                                 "import mmap; mmap.mmap(-1, 4096)",
                                 "ctypes.CDLL(None).calloc(1, 1)"])
def test_handler__what_it_may_not_do_would_be_noticed(record, act, python):
    code = AS_IN_THE_HANDLER.replace("ACT", act)
    done, _ = record(["env", f"LD_PRELOAD={INTERPOSED}", python, "-c", code], "-e", "cpu-time")
    assert done.returncode == 99


@pytest.mark.parametrize("options", [*TRIGGERS, ["-e", "cpu-clock", "-c", "30000"],
                                     ["--wall", "-e", "cpu-time"], ["--wall", "-e", "cpu-clock"]],
                         ids=" ".join)
def test_blocking_calls__are_never_broken_off_and_own_alarms_come(record, options):
    done, directory = record([PROGRAMS / "blocking-calls", "1500"], *options)
    assert done.returncode == 0, done.stderr
    calls, broken, alarms = map(int, done.stdout.split())
    assert calls > 200 and broken == 0 and nr_samples(directory) > 5
    print(f"{calls} calls, {alarms} of 40 alarms ended their read")
    # A clock's tick that is due when the alarm meets the read has the kernel begin the read again:
    # the handler must undo that (agent/sources/interrupted_call.h).
    assert alarms == 40


@pytest.mark.parametrize("options", [["--trigger=perf-async", "-e", "page-faults:u/period=20/"],
                                     ["--trigger=perf-sigtrap", "-e", "page-faults/period=20/"]],
                         ids=["async", "sigtrap"])
def test_longjmp__out_of_an_alarm_leaves_no_sample_half_taken(record, report, options):
    """The alarm waits until the handler has come back, which arms the event again."""
    pages = 100000
    done, directory = record([PROGRAMS / "longjmp", str(pages)], *options)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert (done.returncode, done.stdout) == (0, "jumped\n"), done.stderr
    event, = report(directory)["events"]
    assert event["count"] >= pages
    assert abs(event["samples"] - event["count"] / 20) <= 2
    assert nr_samples(directory) >= event["samples"]


@pytest.mark.parametrize("access", ["w", "rw"])
def test_breakpoint__under_the_handlers_own_frames_is_ended(record, report, access):
    """Each handler would set off the next, and the program never take a step."""
    pages = 2000
    program = PROGRAMS / "watched-stack"
    address = subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()
    options = ["--trigger=perf-sigtrap", "-e", f"page-faults:u/period=1/,mem:{address}/8:{access}"]
    done, directory = record([program, str(pages)], *options)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert f"mem:{address}/8:{access} was ended in thread" in done.stderr
    got = report(directory)
    assert got["events"][0]["samples"] >= pages  # that one goes on
    assert got["lost"]["delayed"] >= 64
