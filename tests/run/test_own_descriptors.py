# SPDX-License-Identifier: MIT
"""Events by signal, whose descriptors the program holds: and closes, or puts its own files in their place."""

import json
import platform

import pytest

PYTHON = "/usr/bin/python3"
PAGES = 5000
PERIOD = 100
ASYNC = ["--trigger=perf-async", "-e", f"page-faults:u/period={PERIOD}/"]

PROGRAM = """
import ctypes, fcntl, json, mmap, os, resource, signal, struct, sys, threading
def touch():
    memory = mmap.mmap(-1, 4096 * PAGES)
    for page in range(PAGES):
        memory[page * 4096] = 1
def close_all():
    os.closerange(3, 4096)
def put_own_files_there():
    global readable, writable
    close_all()
    readable, writable = os.pipe()
    for number in range(2048, 2080):
        os.dup2(readable, number)
    os.write(writable, b"0123456789abcdef" * 4)
def swap_numbers():
    # Each of the two threads' numbers is the other's descriptor.
    os.dup2(2049, 3000)
    os.dup2(2050, 2049)
    os.dup2(3000, 2050)
    os.close(3000)
def leave_no_number():
    close_all()
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
def forbid_taking():
    close_all()
    code = [(0x20, 0, 0, 0), (0x15, 1, 0, 434), (0x15, 0, 1, 438), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)]
    text = b"".join(struct.pack("HBBI", *one) for one in code)
    words = ctypes.create_string_buffer(text)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(words)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(SECCOMP, 1, 1, program) == 0, ctypes.get_errno()
def of_our_numbers():
    return b"" if sys.argv[1] != "put_own_files_there" else os.read(readable, 100)
begun, go = threading.Event(), threading.Event()
def other():
    begun.set()
    go.wait()
    touch()
thread = threading.Thread(target=other)
thread.start()
begun.wait()
globals().get(sys.argv[1], lambda: None)()
go.set()
thread.join()
touch()
if sys.argv[1] == "put_own_files_there":
    for _ in range(4):  # the kernel's own SIGIO, which may be ours
        signal.signal(signal.SIGIO, lambda *_: None)
        fcntl.fcntl(readable, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(readable, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writable, b"!")
print(of_our_numbers().decode(), os.dup(0))
""".replace("PAGES", str(PAGES)).replace("SECCOMP", {"x86_64": "317", "aarch64": "277"}[platform.machine()])


def recorded(record, how, **more):
    done, directory = record([PYTHON, "-S", "-c", PROGRAM, how], *ASYNC, **more)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    return done, directory


def touched(got):
    return sum(row["self"] for row in got["functions"] if row["name"] == "touch")


@pytest.mark.parametrize("how, printed", [("none", " 3\n"), ("close_all", " 3\n"), ("swap_numbers", " 3\n"),
                                          ("put_own_files_there", "0123456789abcdef" * 4 + "!!!! 5\n")])
def test_closed__descriptors_are_taken_again_and_nothing_is_lost(record, report, how, printed):
    done, directory = recorded(record, how)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    got = report(directory)
    assert got["lost"]["total"] == 0
    assert abs(touched(got) - 2 * PAGES / PERIOD) <= 4


@pytest.mark.parametrize("how", ["leave_no_number", "forbid_taking"])
def test_closed__for_good_is_said_for_each_thread(record, report, pathprof, how):
    """The numbers run out, or a filter kills who calls: then the threads are sampled no more."""
    done, directory = recorded(record, how)
    assert done.returncode in (0, 1), done.stderr  # no number is left for dup() either
    assert "lost      2 descriptor: " in done.stderr
    got = report(directory)
    assert got["lost"]["descriptor"] == 2
    assert touched(got) <= 4
    assert "from then on the thread was not sampled" in " ".join(pathprof("report", directory).stdout.split())
    assert json.loads((directory / "manifest.json").read_text())["complete"]
