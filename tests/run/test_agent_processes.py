# SPDX-License-Identifier: MIT
"""Environment, fork, exec and spawn: the recorded process stays recorded, children are unharmed."""

import os

import pytest
from agent_recorder import (AGENT, EXECED, FORKED, PYTHON, SPAWNED, TRIGGERS, program, record,
                            trigger_options)

EXECS = ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat"]
PROCESSES = program("processes")


def shows_us(run):
    return [line for line in run.out.splitlines() if "PATHPROF_RECORDING" in line or str(AGENT) in line]


def test_environment__is_as_without_us(tmp_path):
    run = record(tmp_path, PROCESSES, "env", env={"MARK": "here"})
    assert run.lines("getenv ") == ["- -"]
    assert "MARK=here" in run.out.splitlines()
    assert not run.lines("LD_PRELOAD=")
    assert not shows_us(run)
    assert run.result["active"] == 1


def test_environment__keeps_the_users_own_preload(tmp_path):
    run = record(tmp_path, PROCESSES, "env", options=("-p", "libc.so.6:libm.so.6"))
    assert run.lines("LD_PRELOAD=") == ["libc.so.6:libm.so.6"]
    assert not shows_us(run)


def test_environment__python_does_not_see_us(tmp_path):
    code = "import os; print(*os.environ.items(), sep='\\n'); os.system('env')"
    run = record(tmp_path, PYTHON, "-c", code)
    assert run.status == 0 and run.out
    assert not shows_us(run)


def test_environment__of_proc_shows_the_address_but_not_the_preload(tmp_path):
    code = "print(open('/proc/self/environ').read().replace('\\0', '\\n'))"
    run = record(tmp_path, PYTHON, "-c", code, options=("-p", "libm.so.6"))
    assert run.lines("PATHPROF_RECORDING=")  # documented
    assert run.lines("LD_PRELOAD=") == ["libm.so.6"]


def test_refused__the_program_runs_without_us(tmp_path):
    run = record(tmp_path, program("threads"), "ends", options=("-x",))
    assert run.status == 0
    assert run.lines("timers ") == ["0"]
    assert run.result["active"] == 0


def test_preloaded_by_somebody_else__does_nothing(tmp_path):
    del tmp_path
    code = "import os; assert os.environ['LD_PRELOAD']"
    assert os.spawnve(os.P_WAIT, PYTHON, [PYTHON, "-c", code],
                      {**os.environ, "LD_PRELOAD": str(AGENT)}) == 0


@pytest.mark.parametrize("variant", EXECS)
def test_exec__keeps_recording_and_the_environment_clean(tmp_path, variant):
    run = record(tmp_path, PROCESSES, "here", variant, PROCESSES, "env", env={"MARK": "here"})
    assert run.status == 0
    assert len(run.result["hellos"]) == 2
    assert "MARK=here" in run.out.splitlines()
    assert run.lines("getenv ") == ["- -"]
    assert not shows_us(run)


def test_exec__puts_our_agent_before_the_programs_preload(tmp_path):
    script = tmp_path / "shim"
    script.write_text(f"#!/bin/sh\nLD_PRELOAD=libm.so.6 exec {PROCESSES} env\n")
    script.chmod(0o755)
    run = record(tmp_path, str(script))
    assert len(run.result["hellos"]) == 2
    assert run.lines("LD_PRELOAD=") == ["libm.so.6"]


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("variant", ["execve", "fexecve"])
def test_exec__that_fails_leaves_recording_as_it_was(tmp_path, variant, trigger):
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF and no more")
    garbage.chmod(0o755)
    run = record(tmp_path, PROCESSES, "missing", variant, str(garbage),
                 options=trigger_options(trigger))
    assert run.status == 9
    # 250 ms of CPU time at 250 Hz or more; 50 MiB of pages at one of five.
    assert run.result["samples"] > (1000 if trigger == "perf" else 20)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for a set-uid file")
def test_exec__adds_nothing_for_a_set_uid_program(tmp_path):
    copy = tmp_path / "env"
    copy.write_bytes(open("/usr/bin/env", "rb").read())
    copy.chmod(0o4755)
    run = record(tmp_path, PROCESSES, "here", "execve", str(copy))
    assert run.status == 0 and run.out
    assert len(run.result["hellos"]) == 1
    assert not shows_us(run)


def test_exec__of_a_static_program_is_as_without_us(tmp_path):
    run = record(tmp_path, "/bin/sh", "-c", f"exec {PROCESSES} here execvp missing-program")
    assert run.status == 126


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_exec__under_fire_kills_no_image(tmp_path, trigger):
    code = tmp_path / "chain.py"
    code.write_text("""
import mmap, os, sys, threading, time
def work():
    while True:
        block = mmap.mmap(-1, 1 << 20)
        for at in range(0, 1 << 20, 4096):
            block[at] = 1
        block.close()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.02)
left = int(sys.argv[1])
if left:
    os.execv(sys.executable, [sys.executable, __file__, str(left - 1)])
os._exit(5)
""")
    run = record(tmp_path, PYTHON, str(code), "20",
                 options=(*trigger_options(trigger), "-s", "256"))
    assert run.status == 5
    assert len(run.result["hellos"]) == 21


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("how", ["fork", "_Fork", "raw", "vfork"])
def test_child__does_not_tick_and_execs_clean(tmp_path, how, trigger):
    run = record(tmp_path, PROCESSES, how, "execv", PROCESSES, "env",
                 options=trigger_options(trigger))
    assert run.status == 0
    assert run.lines("getenv ") == ["- -"]
    assert not shows_us(run)
    assert len(run.result["hellos"]) == 1
    hows = [p["how"] for p in run.result["processes"]]
    assert hows == ([FORKED, EXECED] if how in ("fork", "_Fork") else [EXECED])
    assert run.result["processes"][-1]["command"] == PROCESSES[:63]
    if trigger == "cpu":
        # The child burns 100 ms before it execs, the parent next to nothing.
        assert run.result["samples"] + run.result["overrun"] < 50


@pytest.mark.parametrize("how", ["posix_spawn", "posix_spawnp", "system", "popen"])
def test_spawned_child__is_clean_and_listed(tmp_path, how):
    run = record(tmp_path, PROCESSES, "spawn", how, "/usr/bin/env")
    assert run.status == 0
    assert "PATH=" in run.out
    assert not shows_us(run)
    assert len(run.result["hellos"]) == 1
    (child,) = run.result["processes"]
    assert child["how"] == SPAWNED and child["command"] == "/usr/bin/env"
    assert (child["pid"] != 0) == how.startswith("posix")


def test_fork__in_python_warns_of_nothing(tmp_path):
    code = "import os; pid = os.fork(); pid and os.waitpid(pid, 0)"
    run = record(tmp_path, PYTHON, "-W", "error", "-c", code)
    assert run.status == 0 and run.err == ""
    assert [p["how"] for p in run.result["processes"]] == [FORKED]


def test_fork__child_can_make_threads(tmp_path):
    code = """
import os, threading
pid = os.fork()
threads = [threading.Thread(target=sum, args=(range(10 ** 6),)) for _ in range(3)]
[t.start() for t in threads], [t.join() for t in threads]
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    run = record(tmp_path, PYTHON, "-c", code)
    assert run.status == 0
    assert run.result["ended"] == 3


def test_wordexp__has_a_clean_child_that_is_listed(tmp_path):
    code = """
import ctypes
class Words(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("words", ctypes.POINTER(ctypes.c_char_p)),
                ("offset", ctypes.c_size_t)]
words = Words()
assert ctypes.CDLL(None).wordexp(b"plain $(env | tr -d ' ')", ctypes.byref(words), 0) == 0
print(*(words.words[i].decode() for i in range(words.count)), sep="\\n")
assert ctypes.CDLL(None).wordexp(b"plain $HOME", ctypes.byref(words), 0) == 0
"""
    run = record(tmp_path, PYTHON, "-c", code, env={"MARK": "here"})
    assert run.status == 0 and "MARK=here" in run.out.splitlines()
    assert not shows_us(run) and not run.lines("LD_PRELOAD=")
    listed = [p["command"] for p in run.result["processes"] if p["how"] == SPAWNED]
    assert listed == ["plain $(env | tr -d ' ')"]
