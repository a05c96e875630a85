# SPDX-License-Identifier: MIT
"""What the counter and the kernel do without pathprof: every overflow is one signal."""

import pytest

from conftest import REFERENCE, run

WORK = 5_000_000
THREADS = 2


def counted(way, mode, period, threads):
    """[(count, overflows due, signals)] of the reference program."""
    lines = run(REFERENCE, way, mode, period, WORK, threads).stdout.splitlines()
    return [tuple(map(int, line.split())) for line in lines]


@pytest.mark.parametrize("period", [1_000_003, 100_003, 10_007])
@pytest.mark.parametrize("way,mode", [("sigtrap", "thread"), ("async", "thread"),
                                      ("sigtrap", "inherit")])
def test_counter__every_overflow_is_a_signal(way, mode, period, exactly):
    lines = counted(way, mode, period, THREADS)
    exactly("counted", lines)
    assert len(lines) == (1 if mode == "inherit" else THREADS)
    for count, due, signals in lines:
        assert due > 20 and count > WORK
        # Inherited, the count is the sum of what each thread counts down by itself.
        assert due - (THREADS if mode == "inherit" else 0) <= signals <= due
