#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy, with the checks of .clang-tidy, over every source that build-clang compiles."""

import concurrent.futures
import json
import os
import subprocess

import gate

BUILD = "build-clang"
NOT_OURS_TO_TIDY = ("_test.c", "_fuzz.c")


def sources(root):
    """The sources below src/ that are compiled, once each, tests left out."""
    commands = json.loads((root / BUILD / "compile_commands.json").read_text())
    paths = {(root / BUILD / c["file"]).resolve() for c in commands}
    return sorted(p for p in paths
                  if (root / "src") in p.parents and not p.name.endswith(NOT_OURS_TO_TIDY))


def tidy(root, path):
    done = subprocess.run(["clang-tidy", "--quiet", "-p", BUILD, str(path)], cwd=root, check=False,
                          capture_output=True, text=True)
    lines = done.stdout.replace(f"{root}/{BUILD}/../", "").replace(f"{root}/", "").splitlines()
    return lines or ([f"{path}: clang-tidy failed"] if done.returncode else [])


def check(root):
    if not (root / BUILD / "compile_commands.json").exists():
        return [f"{BUILD}: not built"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda path: tidy(root, path), sources(root))
        return [line for lines in found for line in lines]


if __name__ == "__main__":
    gate.main(check)
