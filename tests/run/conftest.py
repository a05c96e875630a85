# SPDX-License-Identifier: MIT
"""What whole-program tests share: the built program, the interpreters at hand, a recording.

PATHPROF_BUILD names the build tree (default: build), PATHPROF_PYTHONS interpreters to test beside
Debian's, separated by colons.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PATHPROF_BUILD", "build")
PATHPROF = BUILD / "pathprof"
AGENT = BUILD / "src" / "agent" / "libpathprof-agent.so"
SECONDS = 120  # a command that takes longer hangs


MADE = Path("~/.cache/pathprof/interpreters").expanduser()  # by `make interpreters`
NEWEST = (3, 15)  # CPython from 3.11 to this one can be read


def pythons():
    """Every CPython at hand that can be read, once each."""
    named = [p for p in os.environ.get("PATHPROF_PYTHONS", "").split(":") if p]
    made = [str(path.parent / json.loads(path.read_text())["python"])
            for path in sorted(MADE.glob("*/interpreter.json"))]
    candidates = ["/usr/bin/python3", *named, *made,
                  *map(str, sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3")))]
    found = {}
    for python in candidates:
        if os.access(python, os.X_OK):
            asked = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"],
                                   capture_output=True, text=True, check=False)
            if (3, 11) <= tuple(map(int, asked.stdout.split())) <= NEWEST:
                found.setdefault(os.path.realpath(python), python)
    return list(found.values())


def pytest_configure(config):
    config.addinivalue_line("markers", "plain_only: not under a sanitizer")


class Program:
    """The built program: a path, and a function that runs it with arguments."""

    def __fspath__(self):
        return str(PATHPROF)

    def __call__(self, *arguments, **options):
        """The finished process, output as text."""
        options = {"capture_output": True, "text": True, "timeout": SECONDS,
                   "stdin": subprocess.DEVNULL, "check": False, **options}
        return subprocess.run([str(PATHPROF), *map(str, arguments)], **options)


@pytest.fixture(scope="session")
def pathprof():
    return Program()


@pytest.fixture(scope="session")
def agent():
    return AGENT


@pytest.fixture(params=pythons() or [sys.executable])
def python(request):
    """The path of an interpreter; the test runs once with each."""
    return request.param


@pytest.fixture
def record(pathprof, tmp_path):
    """Record COMMAND (a list) into a directory of its own; (finished process, directory)."""
    def run(command, *options, name="recording", **more):
        directory = tmp_path / name
        done = pathprof("record", "-o", directory, *options, "--", *command, **more)
        return done, directory
    return run


@pytest.fixture
def report(pathprof):
    """`report --json` of a recording, parsed."""
    def run(directory, *options):
        done = pathprof("report", directory, "--json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


@pytest.fixture
def babeltrace():
    """What babeltrace2 reads from a recording, as lines; it must have nothing to complain about."""
    def run(directory, *options):
        done = subprocess.run(["babeltrace2", *options, str(directory / "ust")], text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()
    return run
