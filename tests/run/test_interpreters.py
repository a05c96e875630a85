# SPDX-License-Identifier: MIT
"""Cases times interpreters: each stack that the walk sees is the one that the program itself sees.

One process for each interpreter runs every case (programs/interpreters/truth.py); a mismatch
prints both stacks side by side.
"""

import functools
import json
import re

import pytest

from conftest import BUILD, ROOT
from looks import PROBE, check

PROGRAM = ROOT / "tests" / "programs" / "interpreters" / "truth.py"
TICK = BUILD / "tests" / "programs" / "interpreters" / "libinterpreters-tick.so"
CASES = [name for file in ("calls", "suspended", "observed", "elsewhere") for name in re.findall(
    r"^@case\ndef (\w+)", (PROGRAM.parent / f"truth_{file}.py").read_text(), re.MULTILINE)]


@functools.cache
def run_all(python):
    done = python.run(PROGRAM, PROBE, TICK, *CASES)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {result["case"]: result for result in results}, done.returncode, done.stderr


@pytest.mark.plain_only
@pytest.mark.parametrize("case", CASES)
def test_stack__is_the_truth(python, case):
    results, status, said = run_all(python)
    assert case in results, f"the program ended with {status} before: {said[-2000:]}"
    result = results[case]
    if result["skipped"]:
        pytest.skip(f"SKIPPED: {result['skipped']}")
    assert not result["failed"], result["failed"]
    # A thread that waits has no lock.
    check(result["looks"], held={0} if case == "waiting" else {0, 1})
