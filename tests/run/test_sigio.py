# SPDX-License-Identifier: MIT
"""Events by signal in programs that use SIGIO and O_ASYNC themselves, and where no signal can be queued: then the
kernel sends a SIGIO in place of ours, whose default action kills."""

import json
import os
import resource
import subprocess

import pytest

PAGES = 2000
ASYNC = ["--trigger=perf-async", "-e", "page-faults/period=1/"]
SIGIO = 29

# Both ends in one process: a byte written on one makes the kernel send the signal for the other.
PROGRAM = """
import fcntl, json, mmap, os, signal, socket, sys
how = sys.argv[1]
F_SETSIG = 10
got = []
def count(signo, frame):
    got.append(signo)
def touch(pages):
    memory = mmap.mmap(-1, 4096 * pages)
    for page in range(pages):
        memory[page * 4096] = 1
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
wanted = signal.SIGRTMIN + 2 if how == "own-signal" else signal.SIGIO
signal.signal(wanted, signal.SIG_IGN if how == "ignored" else count)
fcntl.fcntl(here, fcntl.F_SETOWN, os.getpid())
if how == "own-signal":
    fcntl.fcntl(here, F_SETSIG, wanted)
fcntl.fcntl(here, fcntl.F_SETFL, fcntl.fcntl(here, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
for round in range(50):
    before = len(got)
    touch(PAGES // 50)
    there.send(b"x")  # the signal is there when the call returns
    if how != "ignored":
        assert len(got) == before + 1, (round, before, len(got))
    assert here.recv(1) == b"x"
if how == "killed":
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGIO)  # the kernel's own may be in place of ours: those kill nobody
print(json.dumps([len(got), sorted(set(map(int, got)))]))
""".replace("PAGES", str(PAGES))


def recorded(record, *arguments, program=PROGRAM, options=(), name="recording", **how):
    done, directory = record(["/usr/bin/python3", "-S", "-c", program, *arguments], *ASYNC, *options, name=name, **how)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    return done, directory


@pytest.mark.parametrize("how", ["handled", "ignored", "own-signal"])
@pytest.mark.parametrize("beside", [[], ["-e", "cpu-time"]], ids=["alone", "timer"])
def test_sigio__the_programs_own_descriptors_signal_as_without_us(record, report, how, beside):
    command = ["/usr/bin/python3", "-S", "-c", PROGRAM, how]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(plain)[0] == (0 if how == "ignored" else 50)
    done, directory = recorded(record, how, options=beside)
    assert (done.returncode, done.stdout) == (0, plain), done.stderr
    got = report(directory)
    event = got["events"][0]
    assert sum(row["self"] for row in got["functions"]
               if (row["event"], row["name"]) == ("page-faults", "touch")) >= PAGES
    assert 0 <= event["count"] - event["samples"] <= 1


def test_sigio__still_kills_who_wants_it(record, report):
    done, directory = recorded(record, "killed")
    assert done.returncode == 128 + SIGIO
    got = report(directory)
    assert got["events"][0]["samples"] >= PAGES or got["lost"]["late_arming"]  # on a busy machine


FAULTS = """
import ctypes, mmap, os, signal, sys
# As many of another signal as the user's queue takes, which stay there.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN + 3])
queued = 0
libc = ctypes.CDLL(None)
while queued < 200000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN + 3, None) == 0:
    queued += 1
if len(sys.argv) > 1:
    got = []
    signal.signal(signal.SIGIO, lambda *_: got.append(1))
memory = mmap.mmap(-1, 4096 * PAGES)
for page in range(PAGES):
    memory[page * 4096] = 1
print(queued)
""".replace("PAGES", str(PAGES))


@pytest.mark.parametrize("limit", [0, 300])
@pytest.mark.parametrize("handler", [[], ["handler"]], ids=["default", "handler"])
def test_full_queue__kills_nobody_and_what_is_lost_is_counted(record, report, pathprof, limit, handler):
    """The program's own signals fill what the limit leaves; then an overflow comes as SIGIO, which re-arms. (What
    other processes of the user take and give back is in the queue as well, but where nothing may be.)"""
    def small():
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (limit, limit))

    done, directory = recorded(record, *handler, program=FAULTS, preexec_fn=small)
    assert done.returncode == 0, done.stderr  # not 128 + 29
    got = report(directory)
    event, = got["events"]
    assert int(done.stdout) <= limit
    assert event["count"] >= PAGES  # it was re-armed each time
    # Every overflow is a sample or is lost.
    assert abs(event["samples"] + got["lost"]["total"] - event["count"]) <= 2
    if limit:
        return
    assert event["samples"] <= event["count"] - PAGES
    assert got["lost"]["merged"] >= PAGES - 2
    text = pathprof("report", directory).stdout
    assert f"{got['lost']['total']:,} of " in text and "left no sample." in text


# All signals are blocked, and page faults come as fast as they can.
STORM = """
import mmap, os, signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
def pending():
    for line in open("/proc/self/status"):
        if line.startswith("SigQ:"):
            return int(line.split()[1].split("/")[0])
def touch():
    memory = mmap.mmap(-1, 4096 * 5000)
    for page in range(5000):
        memory[page * 4096] = 1
before = pending()
threads = [threading.Thread(target=touch) for _ in range(4)]
for thread in threads: thread.start()
most = 0
while any(thread.is_alive() for thread in threads):
    most = max(most, pending() - before)
print(most)
"""


def test_storm__nothing_queues_however_fast_the_events_come(record, report):
    """One shot each time: at most a signal a thread and event is on its way."""
    done, directory = recorded(record, program=STORM, options=["-e", "minor-faults/period=1/"])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100  # the user's, so others change it
    assert report(directory)["events"][0]["samples"] >= 20000
