# SPDX-License-Identifier: MIT
"""A sample never takes the name of other code, however often addresses come back."""

import json
import subprocess
import sys

import pytest

from conftest import PATHPROF, ROOT, SECONDS

PROGRAMS = ROOT / "tests" / "programs" / "hostile"
sys.path.insert(0, str(PROGRAMS))

from recycled_code import PART, look_of  # noqa: E402

NUMBER = 100000


def recycled(directory):
    """[(number of the code object that its caller says, leaf as (file, function, line))]"""
    found = []
    with subprocess.Popen([PATHPROF, "export", directory, "--format", "jsonl"],
                          stdout=subprocess.PIPE, text=True) as export:
        for line in export.stdout:
            frames = json.loads(line)["frames"]
            for i, frame in enumerate(frames[:-2]):
                if frame["file"] != "<dispatch>" or not frame["function"].startswith("dispatch_"):
                    continue
                leaf = frames[i + 2]
                if frames[i + 1]["function"].endswith("run") and leaf["file"][0] == "<":
                    number = int(frame["function"][9:]) * PART + frame["line"] - 2
                    found.append((number, (leaf["file"], leaf["function"], leaf["line"])))
        assert export.wait(SECONDS) == 0
    return found


def wrong(found):
    """Those that have the name, the file or the line of other code. The line before the body is
    the def: the interpreter resumes there."""
    return [(number, leaf) for number, leaf in found
            if leaf[:2] != look_of(number)[:2] or
            leaf[2] not in (look_of(number)[2], first_line(number))]


def first_line(number):
    return look_of(number)[2] - 1 if number % 4 != 3 else 1


@pytest.mark.parametrize("options,least", [(["-e", "page-faults", "-c", "1"], NUMBER // 2),
                                           (["-e", "cpu-time"], 5)])
def test_names__of_recycled_code_objects_are_their_own(record, options, least):
    program = [sys.executable, PROGRAMS / "recycled_code.py", NUMBER]
    done, directory = record(map(str, program), *options, "--memory", "512M")
    assert done.returncode == 0, done.stderr
    number, addresses = map(int, done.stdout.split())
    assert number == NUMBER and addresses < NUMBER // 100
    found = recycled(directory)
    assert len(found) >= least
    assert not wrong(found)[:10]
    # It would be seen: each sample with the name of the code that ran before at this address.
    shifted = [(n, leaf) for (n, _), (_, leaf) in zip(found[1:], found)]
    assert len(wrong(shifted)) > 0.9 * len(shifted)
