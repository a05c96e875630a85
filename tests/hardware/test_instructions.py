# SPDX-License-Identifier: MIT
"""Instructions a sample, counted by the processor: all that a sample adds in user mode (handler and
return), and in the kernel (interrupt, delivery). A budget is the present figure and a tenth."""

import json
import sys

import pytest

from conftest import PYTHON, ROOT, report, run

GATED = sys.version_info[:2] == (3, 11)  # the figures of others are shown alone
USER = {"functions": 12500, "recursion": 5500}
KERNEL = 7200
PERIOD = 20_011


# A period is drawn by one system call, what went by is read by another, and before each the number of
# the descriptor is looked at.
JITTER_USER, JITTER_KERNEL = 160, 3900


def of_a_sample(record, kind, *options):
    """(instructions that each sample adds in user mode, in the kernel)"""
    def added(loops):
        """(samples, instructions more in user mode, in the kernel) of a run of that length."""
        command = [PYTHON, "-I", ROOT / "tests/hardware/measured.py", kind, loops]
        plain = json.loads(run(*command).stdout)
        done, recording = record(command, "-e", "cycles:u", *options,
                                 name=f"r{loops}{''.join(map(str, options))}")
        sampled = json.loads(done.stdout)
        return (report(recording)["samples"], sampled["user"] - plain["user"],
                sampled["kernel"] - plain["kernel"])

    short, long = added(200_000), added(600_000)
    return tuple((long[i] - short[i]) / (long[0] - short[0]) for i in (1, 2))


@pytest.mark.parametrize("kind", USER)
def test_instructions__of_a_sample(record, figure, kind):
    user, kernel = of_a_sample(record, kind, "-c", PERIOD)
    figure("user", round(user))
    figure("kernel", round(kernel))
    assert not GATED or 0.5 * USER[kind] < user <= USER[kind]
    assert not GATED or 0.5 * KERNEL < kernel <= KERNEL


def test_instructions__of_a_jittered_sample(record, figure):
    options = ["-c", 2 * PERIOD, "--trigger", "perf-async", "--seed", 1]
    plain = of_a_sample(record, "recursion", *options)
    jittered = of_a_sample(record, "recursion", *options, "--jitter=yes")
    for name, index, budget in (("user", 0, JITTER_USER), ("kernel", 1, JITTER_KERNEL)):
        figure(name, [round(plain[index]), round(jittered[index])])
        assert not GATED or 0 < jittered[index] - plain[index] <= budget
