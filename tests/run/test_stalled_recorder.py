# SPDX-License-Identifier: MIT
"""Programs whose recorder has no turn: it is stopped. Nothing of theirs may depend on its answer."""

import os
import shutil
import subprocess

import pytest

PYTHON = "/usr/bin/python3"
PAGES = 1000
BY_SIGTRAP = ["--trigger=perf-sigtrap", "-e", "page-faults/period=1/"]

# stop() returns with the recorder stopped; it goes on when the program closes `there` or execs.
STALL = """
import mmap, os, signal, sys, threading
recorder = os.getppid()
here, there = os.pipe()
def stop():
    if os.environ.get("PLAIN"):
        return
    if os.fork() == 0:
        os.close(there)
        os.read(here, 1)
        os.kill(recorder, signal.SIGCONT)
        os._exit(0)
    os.kill(recorder, signal.SIGSTOP)
    while open(f"/proc/{recorder}/stat").read().rpartition(")")[2].split()[0] != "T":
        os.sched_yield()
def touch(pages):
    memory = mmap.mmap(-1, 4096 * pages)
    for page in range(pages):
        memory[page * 4096] = 1
"""

# The kernel reads one argument from a page that nobody touched: an overflow on the way into the new image.
EXEC = STALL + """
import ctypes
fresh = mmap.mmap(-1, 4096)
strings = [ctypes.create_string_buffer(os.fsencode(argument)) for argument in sys.argv[2:]]
argv = (ctypes.c_void_p * len(sys.argv))(*map(ctypes.addressof, strings),
                                         ctypes.addressof(ctypes.c_char.from_buffer(fresh)))
execv = ctypes.CDLL(None).execv
how = sys.argv[1]
if how == "ignored":
    signal.signal(signal.SIGTRAP, signal.SIG_IGN)
if how == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
stop()
def replace():
    touch(PAGES)
    execv(strings[0], argv)
if how != "thread":
    replace()
threading.Thread(target=touch, args=[10 * PAGES], daemon=True).start()
thread = threading.Thread(target=replace)
thread.start()
thread.join()
""".replace("PAGES", str(PAGES))

NEW_IMAGE = """
import os, signal
print(signal.getsignal(signal.SIGTRAP), signal.sigpending(), signal.pthread_sigmask(signal.SIG_BLOCK, []))
print([name for name in os.environ if "PATHPROF" in name or name == "LD_PRELOAD"])
ignored = next(line for line in open("/proc/self/status") if line.startswith("SigIgn"))
print("ignored" if int(ignored.split()[1], 16) & 1 << signal.SIGTRAP - 1 else "not ignored", "in the kernel")
signal.signal(signal.SIGTRAP, lambda *_: print("trapped"))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTRAP])
signal.raise_signal(signal.SIGTRAP)
"""


def recorded(record, program, *arguments, options=BY_SIGTRAP, **how):
    done, directory = record([PYTHON, "-S", "-c", program, *arguments], *options, **how)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    return done, directory


@pytest.mark.parametrize("how", ["plain", "thread", "ignored", "blocked"])
def test_exec__by_which_events_are_live_goes_on_as_without_us(record, how):
    """A SIGTRAP that is queued, or comes on the way, would kill the new image."""
    command = [how, PYTHON, "-S", "-c", NEW_IMAGE]
    plain = subprocess.run([PYTHON, "-S", "-c", EXEC, *command], capture_output=True, text=True, check=True,
                           env={**os.environ, "PLAIN": "1"}).stdout
    done, _ = recorded(record, EXEC, *command)
    if how == "ignored":  # in the kernel it is ours
        plain = plain.replace("ignored in the kernel", "not ignored in the kernel")
    assert (done.returncode, done.stdout) == (0, plain), done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for a set-uid file")
def test_exec__of_a_set_uid_program_lives_and_has_sigtrap_ignored(record, tmp_path):
    """Nobody is there to set it back: documented."""
    copy = tmp_path / "grep"
    shutil.copy("/usr/bin/grep", copy)
    copy.chmod(0o4755)
    done, _ = recorded(record, EXEC, "plain", str(copy), "-s", "SigIgn", "/proc/self/status")
    assert done.returncode == 2, done.stderr  # there is no file of an empty name
    assert int(done.stdout.split()[-1], 16) & 1 << 4


FAILS = STALL + """
stop()
try:
    os.execv(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(error.errno)
touch(PAGES)
os.close(there)
print(signal.getsignal(signal.SIGTRAP))
""".replace("PAGES", str(PAGES))


def test_exec__that_fails_leaves_recording_as_it_was(record, report, tmp_path):
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF and no more")
    garbage.chmod(0o755)
    done, directory = recorded(record, FAILS, str(garbage))
    assert (done.returncode, done.stdout) == (0, "8\n0\n"), done.stderr
    touched = [row["self"] for row in report(directory)["functions"] if row["name"] == "touch"]
    assert touched and touched[0] >= PAGES


# The thread begins while the recorder stands, and works when that has come back and opened its events.
LATE = STALL + """
def nr_events():
    names = os.listdir(f"/proc/{recorder}/fd")
    links = []
    for name in names:
        try:
            links.append(os.readlink(f"/proc/{recorder}/fd/{name}"))
        except FileNotFoundError:
            pass
    return sum("perf_event" in link for link in links)
def work():
    os.close(there)
    while nr_events() == before:
        os.sched_yield()
    touch(PAGES)
before = nr_events()
stop()
thread = threading.Thread(target=work)
thread.start()
thread.join()
""".replace("PAGES", str(PAGES))


@pytest.mark.parametrize("trigger", ["perf-sigtrap", "perf-async"])
def test_thread__that_began_without_the_recorder_is_sampled_from_when_it_is_back(record, report, trigger):
    done, directory = recorded(record, LATE, options=[f"--trigger={trigger}", "-e", "page-faults:u/period=10/"])
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert got["lost"]["late_arming"] == 1  # said, and that is all
    assert got["lost"]["total"] <= 3
    touched = [row["self"] for row in got["functions"] if row["name"] == "touch"]
    assert touched and abs(touched[0] - PAGES / 10) <= 10
