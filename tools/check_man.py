#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man pages, formatted with every warning on: groff has nothing to say."""

import subprocess

import gate

GROFF = ["groff", "-man", "-Tutf8", "-ww", "-z", "-K", "utf8", "-rLL=78n"]


def check(root):
    complaints = []
    for path in sorted((root / "docs/man").glob("*.[1-9]")):
        done = subprocess.run([*GROFF, str(path)], capture_output=True, text=True, check=False)
        complaints += [line.replace(f"{root}/", "") for line in done.stderr.splitlines()]
        if done.returncode and not done.stderr:
            complaints.append(f"{gate.place(root, path)}: groff failed")
    return complaints


if __name__ == "__main__":
    gate.main(check)
