# SPDX-License-Identifier: MIT
"""The tables of offsets against the headers of every interpreter at hand."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[2] / "src" / "core" / "cpython"
QUESTION = "import sysconfig as s; print(s.get_path('include'), s.get_path('platinclude'))"
FIELD = re.compile(r"\t\.(\w+) = (0x[0-9a-f]+),")


def printed(python, tmp_path):
    """What print_layout.c prints when compiled against the headers of @python."""
    compiler = os.environ.get("CC", "cc").split()
    asked = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, check=True)
    includes = asked.stdout.split()
    if not all((Path(path) / "Python.h").exists() for path in includes[:1]):
        pytest.skip(f"SKIPPED: {python} has no headers in {includes[0]}")
    if not shutil.which(compiler[0]):
        pytest.skip(f"SKIPPED: no compiler {compiler[0]}")
    program = tmp_path / "print_layout"
    subprocess.run([*compiler, *(f"-I{path}" for path in includes), str(ROOM / "print_layout.c"),
                    "-o", str(program)], check=True, timeout=120)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def test_layout__is_what_the_headers_say(python, tmp_path):
    table = FIELD.findall((ROOM / "layout_311.h").read_text())
    assert FIELD.findall(printed(python, tmp_path)) == table
    fields = set(re.findall(r"uint\d+_t (\w+);", (ROOM / "layout.h").read_text()))
    assert fields == {name for name, _ in table} | {"line_table_kind"}
