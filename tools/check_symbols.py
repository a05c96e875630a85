#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The built agent against its version script: what it exports, and that it needs libc alone."""

import re
import subprocess

import gate

AGENT = "build/src/agent/libpathprof-agent.so"
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2"}


def listed_symbols(script):
    """The names below global: in a version script."""
    text = gate.c_code(script.replace("#", "//"))
    return set(re.findall(r"([\w*]+)\s*;", " ".join(re.findall(r"global:(.*?)(?:local:|\})", text,
                                                               re.DOTALL))))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported_symbols(library):
    return {line.split()[-1].split("@")[0]
            for line in output("nm", "-D", "--defined-only", str(library)).splitlines()
            if line.split()[-2] != "A"}


def needed_libraries(library):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", str(library))))


def check(root):
    library = root / AGENT
    scripts = gate.tree_files(root / "src/agent", ".map") if not (root / ".git").exists() else \
        [p for p in gate.tree_files(root, ".map") if "src/agent" in p.as_posix()]
    if not library.exists():
        return [f"{AGENT}: not built"]
    if len(scripts) != 1:
        return [f"src/agent: {len(scripts)} version scripts (*.map), expected one"]
    listed = listed_symbols(scripts[0].read_text())
    exported = exported_symbols(library)
    where = gate.place(root, scripts[0])
    complaints = [f"{where}: lists {name}, which the agent does not export"
                  for name in sorted(listed - exported)]
    complaints += [f"{where}: does not list {name}, which the agent exports"
                   for name in sorted(exported - listed)]
    complaints += [f"{AGENT}: needs {name}, but may need libc alone"
                   for name in sorted(needed_libraries(library) - NEEDED)]
    return complaints


if __name__ == "__main__":
    gate.main(check)
