# SPDX-License-Identifier: MIT
"""A program in step with the scheduler's tick: it wakes every 4 ms, works half a millisecond in
a() and half a millisecond in b(), and sleeps again.

usage: in_step.py SECONDS
"""

import sys
import time

PERIOD_NS = 4_000_000
HALF_NS = 500_000


def a(until):
    while time.monotonic_ns() < until:
        pass


def b(until):
    while time.monotonic_ns() < until:
        pass


def main():
    wake = time.monotonic_ns()
    end = wake + int(float(sys.argv[1]) * 1e9)
    while wake < end:
        wake += PERIOD_NS
        rest = wake - time.monotonic_ns()
        if rest > 0:
            time.sleep(rest / 1e9)
        now = time.monotonic_ns()
        a(now + HALF_NS)
        b(now + 2 * HALF_NS)


main()
