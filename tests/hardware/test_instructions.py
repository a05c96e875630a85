# SPDX-License-Identifier: MIT
"""Instructions a sample, counted by the processor: all that a sample adds in user mode (handler and
return), and in the kernel (interrupt, delivery). A budget is the present figure and a tenth."""

import json

import pytest

from conftest import PYTHON, ROOT, report, run

USER = {"functions": 15500, "recursion": 8400}
KERNEL = 7200
PERIOD = 20_011


@pytest.mark.parametrize("kind", USER)
def test_instructions__of_a_sample(record, figure, kind):
    def added(loops):
        """(samples, instructions more in user mode, in the kernel) of a run of that length."""
        command = [PYTHON, "-I", ROOT / "tests/hardware/measured.py", kind, loops]
        plain = json.loads(run(*command).stdout)
        done, recording = record(command, "-e", "cycles:u", "-c", PERIOD, name=f"r{loops}")
        sampled = json.loads(done.stdout)
        return (report(recording)["samples"], sampled["user"] - plain["user"],
                sampled["kernel"] - plain["kernel"])

    short, long = added(200_000), added(600_000)
    user, kernel = ((long[i] - short[i]) / (long[0] - short[0]) for i in (1, 2))
    figure("user", round(user))
    figure("kernel", round(kernel))
    assert 0.5 * USER[kind] < user <= USER[kind]
    assert 0.5 * KERNEL < kernel <= KERNEL
