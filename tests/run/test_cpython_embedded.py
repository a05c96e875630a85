# SPDX-License-Identifier: MIT
"""Python that a program loads when it runs: found late, and read like any other."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

QUESTION = r"""
import sys, sysconfig
v = sysconfig.get_config_vars()
print(sys.base_prefix, v["LIBDIR"], v.get("MULTIARCH", ""), v["INSTSONAME"], sep="\n")
"""
SCRIPT = """
def innermost(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def outermost():
    for _ in range(200):
        innermost(30_000)

outermost()
"""


def library_of(python):
    """The shared libpython beside an interpreter, and its home."""
    asked = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, check=True)
    home, directory, architecture, name = asked.stdout.splitlines()
    around = Path(python).resolve().parents[1] / "lib"
    for path in (around / name, around / architecture / name, Path(directory) / name,
                 Path(directory) / architecture / name):
        if ".so" in name and path.exists():
            return path, home
    pytest.skip(f"SKIPPED: {python} has no shared library")
    return None


@pytest.fixture(scope="module")
def embeds(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("SKIPPED: no compiler")
    program = tmp_path_factory.mktemp("embeds") / "embeds"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", ROOT / "tests" / "programs" / "embeds.c", "-o",
                    program, "-ldl", "-lpthread"], check=True)
    return program


@pytest.mark.parametrize("where", [[], ["in a thread"]], ids=["main", "thread"])
def test_embedded__loaded_for_itself_alone(python, embeds, record, report, where):
    library, home = library_of(python)
    done, recording = record([embeds, library, SCRIPT, *where], "-e", "cpu-time",
                             env={**os.environ, "PYTHONHOME": home})
    if "GLIBC_" in done.stderr:
        pytest.skip(f"SKIPPED: {library} wants a newer libc")
    assert done.returncode == 0, done.stderr
    result = report(recording)
    shares = {row["name"]: row["total"] for row in result["functions"]}
    assert shares["outermost"] == shares["innermost"] + sum(
        row["self"] for row in result["functions"] if row["name"] == "outermost")
    assert shares["innermost"] > result["samples"] / 2
    assert result["degraded"] == {}
