# SPDX-License-Identifier: MIT
"""Interpreters that cannot be read run as without us and are named; all ways to one are recorded."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import SECONDS

VERSIONS = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
SHIM = Path.home() / ".pyenv" / "shims" / "python3"
CODE = "import sys\nx = 0\nfor i in range(1000000): x += i\nprint(x)\nsys.exit(3)\n"


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def functions(pathprof, directory):
    text = pathprof("export", directory, "--format", "jsonl").stdout
    return {f["function"] for row in map(json.loads, text.splitlines()) for f in row["frames"]}


@pytest.mark.parametrize("options", [["-e", "cpu-time"], ["-e", "page-faults", "-c", "1"]],
                         ids=["cpu-time", "page-faults"])
def test_interpreter__that_cannot_be_read_is_unharmed_and_named(record, report, other, options):
    done, directory = record([other, "-c", CODE], *options)
    assert (done.returncode, done.stdout) == (3, "499999500000\n"), done.stderr
    found, = manifest(directory)["interpreters"]
    assert found["problem"] and "0.0.0" not in found["name"]
    assert f"{found['path']} are not recorded" in done.stderr
    got = report(directory)
    assert got["samples"] > 5 and got["degraded"]["no_interpreter"] == got["samples"]
    # Never the layout of another version: no Python frame at all.
    assert not [f for f in got["functions"] if f["kind"] == "python"]


@pytest.mark.parametrize("flags", [["-I"], ["-O"], ["-X", "importtime"], ["-S", "-E"], ["-X", "dev"]],
                         ids=" ".join)
def test_interpreter__with_flags_is_recorded(record, pathprof, python, flags):
    done, directory = record([python, *flags, "-c", f"def hot():\n  x = 0\n  for i in range(3000000)"
                              ": x += i\nhot()"])
    assert done.returncode == 0 and "hot" in functions(pathprof, directory)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("def hot():\n    x = 0\n    for i in range(3000000): x += i\nhot()\n"
                    "raise SystemExit(7)\n")
    return path


def ways(tmp_path, python, program):
    script = tmp_path / "start.sh"
    script.write_text(f"#!/bin/sh\nexport MARK=1\nexec {python} {program}\n")
    script.chmod(0o755)
    nested = tmp_path / "nested.sh"
    nested.write_text(f"#!/bin/sh\nexec {script}\n")
    nested.chmod(0o755)
    shebang = tmp_path / "shebang.py"
    shebang.write_text(f"#!{python}\n" + program.read_text())
    shebang.chmod(0o755)
    stripped = tmp_path / "stripped"
    shutil.copy(Path(python).resolve(), stripped)
    subprocess.run(["strip", stripped], check=True, timeout=SECONDS)
    return {"script": [script], "nested": [nested], "env": ["env", "A=1", python, program],
            "shebang": [shebang], "nice": ["nice", python, program],
            "stripped": ["env", f"PYTHONHOME={Path(python).resolve().parent.parent}", stripped,
                         program]}


@pytest.mark.parametrize("way", ["script", "nested", "env", "shebang", "nice", "stripped"])
def test_interpreter__is_recorded_on_every_way_to_it(record, pathprof, tmp_path, python, program,
                                                     way):
    command = ways(tmp_path, python, program)[way]
    if way == "stripped" and subprocess.run([*command[:-1], "-c", ""], capture_output=True,
                                            check=False).stderr:
        pytest.skip(f"SKIPPED: this strip makes a copy of {python} that complains")
    done, directory = record(command)
    assert done.returncode == 7, done.stderr
    assert [i["problem"] for i in manifest(directory)["interpreters"]] == [None]
    assert "hot" in functions(pathprof, directory)


def test_interpreter__of_a_virtual_environment(record, pathprof, tmp_path, python, program):
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True,
                   timeout=SECONDS)
    done, directory = record([tmp_path / "venv" / "bin" / "python", program])
    assert done.returncode == 7 and "hot" in functions(pathprof, directory)


@pytest.mark.skipif(not SHIM.exists(), reason="SKIPPED: no version manager here")
def test_interpreter__behind_a_version_managers_shim(record, pathprof, program, monkeypatch):
    versions = [p.parts[-3] for p in VERSIONS if p.parts[-3].startswith("3.11.")]
    if not versions:
        pytest.skip("SKIPPED: the version manager has no 3.11")
    monkeypatch.setenv("PYENV_VERSION", versions[0])
    done, directory = record([SHIM, program])
    assert done.returncode == 7, done.stderr
    assert "hot" in functions(pathprof, directory)
