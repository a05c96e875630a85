# SPDX-License-Identifier: MIT
"""Instructions that this thread executes in a loop below 32 frames, counted by the processor.

usage: measured.py functions|recursion ROUNDS [--cycles]

Prints the instructions in user mode and in the kernel as JSON, with --cycles the cycles in user mode
as well. "functions": the 32 frames are of as many functions; "recursion": of one.
"""

import ctypes
import json
import os
import struct
import sys

DEPTH = 32
SYS_PERF_EVENT_OPEN = 241  # aarch64
TYPE_HARDWARE, CYCLES, INSTRUCTIONS = 0, 0, 1
EXCLUDE_USER, EXCLUDE_KERNEL, EXCLUDE_HV = 1 << 4, 1 << 5, 1 << 6
ATTR_BYTES = 128
libc = ctypes.CDLL(None, use_errno=True)


def counter(what, excluded):
    """A counter of this thread's instructions or cycles, running."""
    attr = struct.pack("IIQQQQQ", TYPE_HARDWARE, ATTR_BYTES, what, 0, 0, 0,
                       excluded | EXCLUDE_HV).ljust(ATTR_BYTES, b"\0")
    event = libc.syscall(SYS_PERF_EVENT_OPEN, attr, 0, -1, -1, 0)
    if event < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return event


def value(event):
    return struct.unpack("Q", os.read(event, 8))[0]


def burn(loops):
    total = 0
    for step in range(loops):
        total += step & 3
    return total


def recursion(depth, loops):
    if depth:
        recursion(depth - 1, loops)
    else:
        burn(loops)


def functions(depth):
    """A chain of distinct functions that ends in burn()."""
    down = burn
    for level in range(depth):
        space = {"down": down}
        exec(f"def level_{level}(loops):\n    down(loops)\n", space)
        down = space[f"level_{level}"]
    return down


def main():
    start = functions(DEPTH) if sys.argv[1] == "functions" else \
        lambda loops: recursion(DEPTH, loops)
    loops = int(sys.argv[2])
    start(1000)  # what is made at the first call is made
    counters = {"user": counter(INSTRUCTIONS, EXCLUDE_KERNEL),
                "kernel": counter(INSTRUCTIONS, EXCLUDE_USER)}
    if "--cycles" in sys.argv:
        counters["cycles"] = counter(CYCLES, EXCLUDE_KERNEL)
    before = {name: value(event) for name, event in counters.items()}
    start(loops)
    print(json.dumps({name: value(event) - before[name] for name, event in counters.items()}))


main()
