# SPDX-License-Identifier: MIT
"""The tables of offsets against the headers of every interpreter at hand."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[2] / "src" / "core" / "cpython"
QUESTION = """
import sys, sysconfig
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(f"{sys.version_info[0]}{sys.version_info[1]}{'t' if free_threaded else ''}")
for where in ("include", "platinclude"):
    path = sysconfig.get_path(where)
    print(path, path.rsplit("/", 1)[0], sep="\\n")
"""
FIELD = re.compile(r"\t\.(\w+) = (0x[0-9a-f]+),")


def printed(python, tmp_path):
    """The interpreter's table's name, and what print_layout.c prints when compiled against its
    headers."""
    compiler = os.environ.get("CC", "cc").split()
    asked = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, check=True)
    name, *includes = asked.stdout.split()
    if not (Path(includes[0]) / "Python.h").exists():
        pytest.skip(f"SKIPPED: {python} has no headers in {includes[0]}")
    if not shutil.which(compiler[0]):
        pytest.skip(f"SKIPPED: no compiler {compiler[0]}")
    program = tmp_path / "print_layout"
    subprocess.run([*compiler, *(f"-I{path}" for path in includes), str(ROOM / "print_layout.c"),
                    "-o", str(program)], check=True, timeout=120)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    return name, done.stdout


def test_layout__is_what_the_headers_say(python, tmp_path):
    name, fields = printed(python, tmp_path)
    table = FIELD.findall((ROOM / f"layout_{name}.h").read_text())
    assert FIELD.findall(fields) == table


def test_layout__has_no_field_that_no_table_fills():
    fields = set(re.findall(r"uint\d+_t (\w+);", (ROOM / "layout.h").read_text()))
    tables = [path.read_text() for path in ROOM.glob("layout_3*.h")]
    assert len(tables) == 8
    assert fields == {name for table in tables for name, _ in FIELD.findall(table)} | {
        "line_table_kind"}
