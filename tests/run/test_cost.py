# SPDX-License-Identifier: MIT
"""What a sample costs, in figures that do not depend on the clock: bytes, system calls,
instructions. Times are measured by `make bench`, never tested.

A budget is the present figure and a tenth, of instructions, which do not vary, and a fiftieth: raise it
only with a reason in the commit.
"""

import json
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, PATHPROF, ROOT, SECONDS

pytestmark = pytest.mark.plain_only  # a sanitizer's own calls and instructions would be counted
PREFIX_BYTES = 104  # of a packet: src/core/event/ctf.h
SAMPLE_BYTES = 16
INSTRUCTIONS = {"functions": 11715, "recursion": 4230}  # a tick of a stack of 32 frames
SYSTEM_CALLS = 1.1  # a sample: rt_sigreturn, and now and then the doorbell
START_CALLS = 120  # of the agent at start-up, in all
BUSY = """
import sys
def burn(n):
    total = 0
    for i in range(n):
        total += i & 3
def down(depth):
    if depth:
        down(depth - 1)
    else:
        burn(20000)
for _ in range(int(sys.argv[1])):
    down(int(sys.argv[2]))
"""


def nr_samples(pathprof, recording):
    return json.loads(pathprof("report", "--json", recording).stdout)["samples"]


def nr_packets(stream):
    """How many packets a stream file has: each says its bits at byte 48."""
    content, at, number = stream.read_bytes(), 0, 0
    while at < len(content):
        at += int.from_bytes(content[at + 48:at + 56], "little") // 8
        number += 1
    return number


@pytest.mark.parametrize("depth", [10, 300])
def test_bytes_per_sample__are_sixteen_at_any_depth(pathprof, record, depth):
    _, recording = record(["/usr/bin/python3", "-c", BUSY, "1200", str(depth)], "-e", "cpu-time")
    samples = nr_samples(pathprof, recording)
    stream = sum(path.stat().st_size for path in recording.glob("ust/slot_*"))
    packets = sum(map(nr_packets, recording.glob("ust/slot_*")))
    assert samples > 50
    # A gap of more than 134 ms between two samples costs nine bytes more: on a busy machine.
    assert stream - packets * PREFIX_BYTES <= SAMPLE_BYTES * samples + 9 * (2 + samples // 20)


def system_calls(log, command, tmp_path):
    """System calls of the interpreter's process, of @command under strace."""
    path = tmp_path / log
    subprocess.run(["strace", "-f", "-qq", "-o", path, *command], check=True, timeout=SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    lines = path.read_text(errors="replace").splitlines()
    # strace may cut the line of a call in two; the last process to begin this one made it.
    python = [line.split()[0] for line in lines if 'execve("/usr/bin/python3"' in line][-1]
    return sum(1 for line in lines if re.match(rf"{python}\s+\w+\(", line))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_system_calls_per_sample(pathprof, tmp_path):
    command = ["/usr/bin/python3", "-c", BUSY, "2000", "28"]
    recording = tmp_path / "recording"
    plain = system_calls("plain", command, tmp_path)
    recorded = system_calls("recorded", [PATHPROF, "record", "-q", "-e", "cpu-time", "-o", recording,
                                         "--", *command], tmp_path)
    samples = nr_samples(pathprof, recording)
    assert samples > 100
    assert recorded - plain <= SYSTEM_CALLS * samples + START_CALLS
    assert recorded - plain >= samples, "not even the returns from the handler were counted"


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("kind", INSTRUCTIONS)
def test_instructions_per_sample(kind):
    number = 500

    def collected(ticks):
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             "--toggle-collect=capture_tick", "/usr/bin/python3", ROOT / "bench" / "capture.py",
             BUILD / "bench" / "libbench-capture.so", kind, str(ticks)],
            check=True, capture_output=True, text=True, timeout=SECONDS)
        return int(re.search(r"Collected : (\d+)", run.stderr)[1])

    instructions = (collected(2 * number) - collected(number)) / number
    print(f"{kind}: {instructions:.0f} instructions a sample")
    assert 0.5 * INSTRUCTIONS[kind] < instructions <= INSTRUCTIONS[kind]
