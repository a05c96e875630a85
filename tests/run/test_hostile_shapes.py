# SPDX-License-Identifier: MIT
"""Stacks of every shape, end to end: record, then export."""

import json
import subprocess

from conftest import BUILD, ROOT

PROGRAM = ROOT / "tests" / "programs" / "hostile" / "shapes.py"
LIBRARY = BUILD / "tests" / "programs" / "hostile" / "libdeep-c.so"
CHAINS = [
    ["main", "generator", "burn"],
    ["main", "run", "asynchronous", "coroutine", "burn"],
    ["main", "run", "asynchronous", "agenerator", "burn"],
    ["<module>", "Class", "burn"],
    ["main", "decorated.<locals>.wrapper", "Class.method", "burn"],
    ["main", "Class.größe_名前", "burn"],
    ["main", "main.<locals>.<listcomp>", "burn"],
    ["main", "<module>", "made", "burn"],
    ["Thread.run", "waits_for_the_lock", "burn"],
    ["<module>", "inside"],
]


def is_within(chain, names):
    rest = iter(names)
    return all(name in rest for name in chain)


def test_shapes__each_shows_with_its_callers(record, pathprof, report, python):
    done, directory = record([python, PROGRAM, LIBRARY], "-e", "cpu-time")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in
            pathprof("export", directory, "--format", "jsonl").stdout.splitlines()]
    stacks = [[frame["function"] for frame in row["frames"]] for row in rows]
    asked = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 12))"],
                           capture_output=True, text=True, check=True)
    for chain in CHAINS:
        if asked.stdout == "True\n":  # comprehensions have no frames from 3.12 on
            chain = [name for name in chain if not name.endswith("<listcomp>")]
        assert any(is_within(chain, names) for names in stacks), chain
    made = [f for row in rows for f in row["frames"] if f["function"] == "made"]
    assert {(f["file"], f["line"]) for f in made} == {("<made of text>", 2)}
    # Thousands deep: bounded, and the cut stands visibly at the root, leaf kept.
    deep = [row["frames"] for row in rows
            if any(f["kind"] == "marker" and "truncated" in f["function"] for f in row["frames"])]
    assert deep
    for frames in deep:
        assert frames[0]["kind"] == "marker" and len(frames) <= 1025
        assert [f["kind"] for f in frames[1:]] == ["python"] * (len(frames) - 1)
    assert any(is_within(["deep", "burn"], [f["function"] for f in frames]) for frames in deep)
    assert report(directory)["degraded"]["truncated"] >= len(deep)
    # The thread that never ran Python was sampled, without Python frames.
    assert any(not [f for f in row["frames"] if f["kind"] == "python"] and row["samples"] > 5
               for row in rows)
