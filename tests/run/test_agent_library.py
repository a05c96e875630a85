# SPDX-License-Identifier: MIT
"""What the agent's file is: its needs, its exports, its place in the order of constructors."""

import re
import subprocess

from conftest import AGENT, ROOT


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, str(AGENT)], capture_output=True, text=True,
                          check=True).stdout


def test_library__needs_only_libc():
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d"))
    assert set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert "libc.so.6" in needed


def test_library__runs_first_and_binds_at_once():
    dynamic = readelf("-d")
    assert "INITFIRST" in dynamic and "NOW" in dynamic
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic


def test_library__exports_the_listed_wrappers_and_nothing_else():
    listed = re.findall(r"^\t(\w+);", (ROOT / "src/agent/agent.map").read_text(), re.MULTILINE)
    symbols = [line.split() for line in readelf("--dyn-syms").splitlines()]
    exported = {s[7] for s in symbols if len(s) == 8 and s[6] != "UND" and s[0] != "Num:"}
    assert exported == set(listed)


def test_library__has_no_executable_stack_and_small_thread_storage():
    headers = readelf("-l")
    assert re.search(r"GNU_STACK.*RW ", headers)
    (size,) = re.findall(r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)", headers, re.MULTILINE)
    assert int(size, 16) <= 16
