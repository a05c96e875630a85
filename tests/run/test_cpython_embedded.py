# SPDX-License-Identifier: MIT
"""Python in a program of another's: loaded when it runs, or linked into it statically."""

import json
import os
import re
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
STATIC = r"""
import sys, sysconfig
v = sysconfig.get_config_vars()
print(sys.base_prefix, v["LIBPL"], v["LIBDIR"], v["LIBRARY"],
      " ".join(v[key] or "" for key in ("MODLIBS", "LIBS", "SYSLIBS")), sep="\n")
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


@pytest.fixture
def embeds(python, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("SKIPPED: no compiler")
    program = tmp_path / "embeds"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", ROOT / "tests" / "programs" / "embeds.c", "-o",
                    program, "-ldl", "-lpthread", *python.linker()], check=True)
    return program


def flags_of(python, words):
    """A linker's options for the libraries that Python wants, those beside it before the system's:
    it may be built for another C library. What only its hashes want may be missing."""
    linker = python.linker()
    near = [Path(d) for option in linker if "-rpath," in option
            for d in option.rpartition(",")[2].split(":") if (Path(d) / "libc.so.6").exists()]
    flags = []
    for name in dict.fromkeys(["c", "m", *re.findall(r"(?:^|\s)-l(\S+)", words)]):
        found = next((path for d in near for path in d.glob(f"lib{name}.so.[0-9]*")), None)
        flags.append(str(found) if found else f"-l{name}")
    return [*flags, "-Wl,--unresolved-symbols=ignore-all", *linker]


def link(python, program, *options):
    """Link the interpreter's static library into a program; its home, for PYTHONHOME."""
    home, *places, name, words = python.run("-c", STATIC).stdout.splitlines()
    libraries = [Path(place) / name for place in places]
    libraries += [Path(python.path).parents[2] / str(path).lstrip("/") for path in libraries]
    library = next((path for path in libraries if path.suffix == ".a" and path.exists()), None)
    if not library or not shutil.which("cc"):
        pytest.skip(f"SKIPPED: no static library of {python}, or no compiler")
    words = ["cc", "-O1", "-o", program, ROOT / "tests" / "programs" / "linked.c", library, *options,
             *flags_of(python, words)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:  # a library that is no position-independent code
        done = subprocess.run([*words, "-no-pie"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"SKIPPED: {library} does not link here: {done.stderr[-200:]}")
    return home


HOW = {"exported": ["-rdynamic"], "hidden": [], "stripped": ["-s"], "no-pie": ["-no-pie"]}


@pytest.mark.parametrize("how", HOW)
def test_embedded__linked_in(python, how, tmp_path, record, report):
    program = tmp_path / "linked"
    home = link(python, program, *HOW[how])
    done, recording = record([program, SCRIPT], "-e", "cpu-time",
                             env={**os.environ, "PYTHONHOME": home})
    assert done.returncode == 0, done.stderr
    result = report(recording)
    shares = {row["name"]: row["total"] for row in result["functions"]}
    assert "stacks of the interpreter" not in done.stderr
    assert shares["innermost"] > result["samples"] / 2
    assert set(result["degraded"]) <= {"jit_position"}


@pytest.mark.parametrize("where", [[], ["in a thread"]], ids=["main", "thread"])
def test_embedded__loaded_for_itself_alone(python, embeds, record, report, where):
    library, home = library_of(python)
    done, recording = record([embeds, library, SCRIPT, *where], "-e", "cpu-time",
                             env={**os.environ, "PYTHONHOME": home})
    assert done.returncode == 0, done.stderr
    assert "no Python interpreter" not in done.stderr
    manifest = json.loads((recording / "manifest.json").read_text())
    loaded, = manifest["interpreters"]
    assert loaded["name"] == f"CPython {python.version}"
    assert os.path.samefile(loaded["path"], library)
    assert loaded["problem"] is None
    result = report(recording)
    shares = {row["name"]: row["total"] for row in result["functions"]}
    assert shares["outermost"] == shares["innermost"] + sum(
        row["self"] for row in result["functions"] if row["name"] == "outermost")
    assert shares["innermost"] > result["samples"] / 2
    assert set(result["degraded"]) <= {"jit_position"}
