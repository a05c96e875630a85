# SPDX-License-Identifier: MIT
"""The shares of a program that knows its own, on every interpreter and on every way to start one:
test_accuracy.py in short."""

import json
import shutil
import subprocess

import pytest

from conftest import ROOT, SECONDS
from pythons import supported
from test_accuracy import check

PROGRAM = ROOT / "tests" / "programs" / "calibrated.py"
CPU_SECONDS, THREADS = "0.6", "2"
CLOCK = ["-e", "cpu-clock", "-c", "499979"]  # 1,200 samples are due, whatever the interpreter


def shares(done, report):
    """(what was sampled, what the program says) by function."""
    found = {row["name"]: row["total"] for row in report["functions"]
             if row["name"].startswith("f_")}
    return found, json.loads(done.stdout)


@pytest.fixture
def found(record, report):
    """Record a command that ends in the program; its shares."""
    def run(*command):
        done, directory = record([*command, CPU_SECONDS, THREADS], "-q", *CLOCK)
        if done.returncode == 125:
            pytest.skip(f"SKIPPED: no software clock here: {done.stderr.strip()}")
        assert (done.returncode, done.stderr) == (0, "")
        return shares(done, report(directory))
    return run


@pytest.mark.plain_only
def test_shares__of_every_interpreter(found, python):
    sampled, truth = found(python, PROGRAM)
    check(sampled, truth)
    assert sum(sampled.values()) > 600
    with pytest.raises(AssertionError):
        check({**sampled, "f_01": 2 * sampled["f_01"]}, truth)
    with pytest.raises(AssertionError):
        check({**sampled, "other": 1}, truth)


def virtual(directory, *options):
    """A virtual environment's interpreter."""
    subprocess.run([supported()[0], "-m", "venv", "--without-pip", *options, directory], check=True,
                   timeout=SECONDS)
    return directory / "bin" / "python"


def shebang(directory, *options):
    script = directory / "program"
    script.write_text(f"#!{' '.join([str(supported()[0]), *options])}\n{PROGRAM.read_text()}")
    script.chmod(0o755)
    return script


# How the system's interpreter is started, by the directory where that may leave files.
WAYS = {
    "optimised": lambda directory: [supported()[0], "-O", PROGRAM],
    "development mode": lambda directory: [supported()[0], "-X", "dev", PROGRAM],
    "virtual environment": lambda directory: [virtual(directory / "links", "--symlinks"), PROGRAM],
    "copied into one": lambda directory: [virtual(directory / "copies", "--copies"), PROGRAM],
    "shebang": lambda directory: [shebang(directory)],
    "shebang with an option": lambda directory: [shebang(directory, "-I")],
    "through a shell": lambda directory: [
        "sh", "-c", 'exec "$0" "$@"', supported()[0], PROGRAM],
    "from a file of bytecode": lambda directory: [supported()[0], bytecode(directory)],
}


def bytecode(directory):
    source = shutil.copy(PROGRAM, directory / "source.py")
    supported()[0].run("-c", f"import py_compile; py_compile.compile({str(source)!r}, "
                             f"{str(directory / 'program.pyc')!r}, doraise=True)")
    (directory / "source.py").unlink()
    return directory / "program.pyc"


@pytest.mark.plain_only
@pytest.mark.parametrize("way", WAYS)
def test_shares__on_every_way_to_start(found, tmp_path, way):
    check(*found(*WAYS[way](tmp_path)))
