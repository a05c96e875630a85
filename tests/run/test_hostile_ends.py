# SPDX-License-Identifier: MIT
"""However a program ends, it ends as without us; what it had done is in the recording."""

import json
import os
import signal
import subprocess

import pytest

from conftest import BUILD, PATHPROF, SECONDS
from hostile import nr_samples

DEEP_C = BUILD / "tests" / "programs" / "hostile" / "libdeep-c.so"
BURN = "import os, sys, time\nwhile time.process_time() < 0.1: pass\n"
ENDS = {
    "_exit": "os._exit(5)",
    "exit": "sys.exit(3)",
    "text": "sys.exit('a last word')",
    "abort": "os.abort()",
    "kill": "os.kill(os.getpid(), 9)",
    "thread": "import threading\nthreading.Thread(target=lambda: os._exit(6)).start()\n"
              "time.sleep(100)",
    "daemon": "import threading\ndef spin():\n    while True: pass\n"
              "threading.Thread(target=spin, daemon=True).start()\nsys.exit(4)",
    "c_stack": f"import ctypes\nctypes.CDLL({str(DEEP_C)!r}).endless(1)",
    "c_stack_of_thread": f"import ctypes, threading\n"
                         f"threading.Thread(target=ctypes.CDLL({str(DEEP_C)!r}).endless, "
                         f"args=(1,)).start()",
    "recursion": "def deeper(n): return deeper(n + 1)\ndeeper(0)",
    "caught": "def deeper(n):\n    try:\n        return deeper(n + 1)\n"
              "    except RecursionError:\n        return n\nprint(deeper(0))",
    "memory": "bytearray(1 << 62)",
    "address_space": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
                     "try: bytearray(1 << 31)\nexcept MemoryError: print('none')",
    "fork": "pid = os.fork()\nif not pid: os._exit(8)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    "assert_in_exit": "import atexit\natexit.register(divmod, 1, 0)",
    "own_signal": "import signal\nos.kill(os.getpid(), signal.SIGUSR1)",
}
TRIGGERS = [["-e", "cpu-time"], ["-e", "page-faults", "-c", "1"]]


def bare(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return (done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout,
            done.stderr)


@pytest.mark.parametrize("options", TRIGGERS, ids=["cpu-time", "page-faults"])
@pytest.mark.parametrize("end", ENDS)
def test_end__is_as_without_us(record, tmp_path, python, end, options):
    command = [python, "-W", "error", "-c", BURN + ENDS[end]]
    done, directory = record(command, "-q", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == bare(command)
    got = json.loads((directory / "manifest.json").read_text())
    assert got["complete"] and got["exit_status"] == done.returncode
    assert nr_samples(directory) > 5




def test_recorder__killed_disarms_the_timers_and_the_status_stays(tmp_path, python):
    """The program looks at its own timers until none ticks, then ends by itself."""
    code = f"""
import os, sys, time
parent, end = os.getppid(), time.monotonic() + {SECONDS}
print(os.getpid(), flush=True)
while os.getppid() == parent: pass
def armed():
    return [line for line in open("/proc/self/timers") if line.startswith("ID:")]
def ticks():
    with open("/proc/self/stat") as stat: return stat.read()
import ctypes
class Spec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval", "value_s", "value")]
def running():
    spec, libc = Spec(), ctypes.CDLL(None)
    for line in armed():
        libc.syscall(224, int(line.split()[1]), ctypes.byref(spec))  # timer_gettime, x86-64
        if spec.value_s or spec.value: return True
    return False
assert armed()
while running() and time.monotonic() < end: sum(range(10000))
open({str(tmp_path / 'done')!r}, "w").write(str(running()))
sys.exit(9)
"""
    subreaper = subprocess.Popen(
        [python, "-c", f"""
import ctypes, os, subprocess, sys
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
recorder = subprocess.Popen({[str(PATHPROF), 'record', '-q', '-e', 'cpu-time', '-o',
                             str(tmp_path / 'r'), '--', str(python), '-c', code]!r},
                            stdout=subprocess.PIPE, text=True)
recorder.stdout.readline()
recorder.kill()
recorder.wait()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1]))
"""])
    assert subreaper.wait(SECONDS) == 9
    assert (tmp_path / "done").read_text() == "False"
    done = subprocess.run([PATHPROF, "report", tmp_path / "r", "--no-pager"], capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    assert done.returncode in (0, 125) and (done.stdout or done.stderr)
    assert "not complete" in done.stdout + done.stderr or "incomplete" in done.stdout + done.stderr


def test_nohup__an_ignored_interrupt_stays_ignored(tmp_path, python):
    code = ("import os, signal\nassert signal.getsignal(signal.SIGINT) == signal.SIG_IGN\n"
            "os.kill(os.getpid(), signal.SIGINT)\nprint('on')")
    done = subprocess.run([PATHPROF, "record", "-q", "-o", tmp_path / "r", "--", python, "-c", code],
                          capture_output=True, text=True, timeout=SECONDS, check=False,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr
    assert os.path.exists(tmp_path / "r" / "manifest.json")


def test_recorder__stopped_for_longer_than_its_heartbeat_comes_back(tmp_path, python):
    """The program itself stops its parent, works on for what a dead one is given, and continues."""
    code = ("import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\n"
            "end = time.monotonic() + 2.5\nwhile time.monotonic() < end: pass\n"
            "os.kill(os.getppid(), signal.SIGCONT)\n"
            "end = time.process_time() + 1\nwhile time.process_time() < end: pass\n")
    done = subprocess.run([PATHPROF, "record", "-q", "-e", "cpu-time", "-o", tmp_path / "r", "--",
                           python, "-c", code], capture_output=True, text=True, timeout=SECONDS,
                          check=False)
    assert done.returncode == 0, done.stderr
    got = json.loads((tmp_path / "r" / "manifest.json").read_text())
    seen = nr_samples(tmp_path / "r") + sum(got["lost"].values())
    assert seen > 0.8 * got["events"][0]["count"] / got["tick_ns"]
