# SPDX-License-Identifier: MIT
"""What whole-program tests share: the built program, the interpreters at hand, a recording.

PATHPROF_BUILD names the build tree (default: build), PATHPROF_PYTHONS interpreters to test beside
Debian's and those that are found (pythons.py), separated by colons.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from pythons import supported, unsupported

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PATHPROF_BUILD", "build")
PATHPROF = BUILD / "pathprof"
AGENT = BUILD / "src" / "agent" / "libpathprof-agent.so"
SECONDS = 120  # a command that takes longer hangs


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


def pytest_generate_tests(metafunc):
    """`python`: an interpreter. Tests of reading interpreters run once with each that is supported,
    those of the pipe behind it with the system's alone. `other`: one that is not supported."""
    every = metafunc.module.__name__.startswith(("test_cpython", "test_interpreters"))
    found = {"python": supported() if every else supported()[:1], "other": unsupported()}
    for name, interpreters in found.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, interpreters or [pytest.param(None, marks=pytest.mark.skip(
                reason="SKIPPED: no such interpreter here"))], ids=lambda one: getattr(
                    one, "name", "none"))


@pytest.fixture(autouse=True)
def matrix(request, record_property, monkeypatch):
    """What tools/check.py makes its matrix of; and the environment that the interpreter needs."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    one = parameters.get("python") or parameters.get("other")
    if one:
        name = request.node.originalname.removeprefix("test_")
        more = [str(value) for key, value in parameters.items() if key == "case"]
        record_property("interpreter", one.name)
        record_property("version", one.version)
        record_property("build", one.kind if one.supported else "refused")
        record_property("case", " ".join([name, *more]))
        for key, value in one.environment.items():
            monkeypatch.setenv(key, value)


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
