#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make check-hardware: pathprof on real counter overflows, in a virtual Arm machine.

Usage: tools/hardware/check.py [--suite=SUITE] [PYTEST WORD...]

Fetches what the machine is made of (packages.py), builds pathprof for it (cross.py), runs
tests/hardware in it (machine.py) twice, and compares what must be the same every time; then once
with the kernel and Python of NEWER, a later release of Debian. With words, runs those tests alone and
once, with --suite= on that suite of Debian. All that the machine said is in
build-aarch64/hardware/. The last line is "N passed, N failed", the status 0 where nothing failed.
"""

import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

import cross
import machine
import packages

ROOT = cross.ROOT
TESTS = "tests/hardware"
PYTHON = sys.executable
NEWER = "trixie"

# Of the packages, what the machine does without.
UNUSED = ["usr/include", "usr/share/[!pm]*", "usr/share/man", "usr/share/perl*", "*.a", "*.o",
          "usr/lib/python3.*/test", "usr/lib/python3.*/lib2to3", "usr/lib/python3.*/idlelib",
          "usr/lib/aarch64-linux-gnu/gconv", "usr/lib/aarch64-linux-gnu/audit", "usr/games", "var",
          "usr/lib/python3.*/pydoc_data", "usr/lib/python3.*/ensurepip"]
# Of the repository, what the tests need beside what was built.
NEEDED = ["tests", "bench/capture.py"]


class Count:
    """What came of the tests of one or more runs."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.figures = {}  # {test: {figure: value}} of the run at hand

    def __call__(self, message):
        """A message of the machine."""
        if "end" in message:
            if message["end"] and not self.failed:
                self.fail(f"the tests' runner ended with status {message['end']}")
            return
        outcome, figures = message["outcome"], message["figures"]
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.figures[message["test"]] = figures
        shown = ", ".join(f"{name.lstrip('=')} {value}" for name, value in figures.items())
        print(f"  {outcome:7} {message['seconds']:6.1f} s  {message['test']}"
              f"{': ' + shown if shown else ''}", flush=True)
        if outcome != "passed":
            print("\n".join("    " + line for line in message["text"].splitlines()), flush=True)

    def fail(self, what):
        self.failed += 1
        print(f"  failed  {what}", flush=True)

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def say(text):
    print(text, flush=True)


def is_program(path):
    """Something to run or load, no intermediate of the build."""
    if path.is_symlink() or path.is_dir():
        return True
    if path.suffix in (".o", ".a", ".ninja", ".json", ".html"):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def make_initramfs(place, build, to):
    """The machine's files: the packages, the built programs, the tests, and its first process."""
    image = machine.Initramfs(to)
    image.add_tree(place / "root", "",
                   lambda _, name: not any(fnmatch(name, unused) for unused in UNUSED))
    image.add_tree(build, f"pathprof/{build.name}", lambda path, name:
                   name.split("/")[0] in ("src", "tests", "bench", "pathprof") and is_program(path))
    for needed in NEEDED:
        if (ROOT / needed).is_dir():
            image.add_tree(ROOT / needed, f"pathprof/{needed}",
                           lambda path, _: path.name != "__pycache__")
        else:
            image.add(ROOT / needed, f"pathprof/{needed}")
    image.add(ROOT / TESTS / "init", "init")
    image.close()


def exact(figures):
    """{(test, figure): value} of what must not change."""
    return {(test, name): value for test, of_test in figures.items()
            for name, value in of_test.items() if name.startswith("=")}


def compare(count, first, second):
    """What must be the same in both runs: one passed or failed."""
    differ = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    for test, name in sorted(differ):
        count.fail(f"{test}: {name[1:]} was {first.get((test, name))} and then "
                   f"{second.get((test, name))}")
    if not second:
        count.fail("the second run has no figure to compare")
    elif not differ:
        count.passed += 1
        say(f"  passed          both runs of the machine gave the same {len(second)} figures")


def run_machine(guest, folder, name, words, count):
    start = time.monotonic()
    make_initramfs(guest, folder.parent, folder / "initramfs.cpio")
    say(f"{name}: booting the machine")
    count.figures = {}
    try:
        machine.boot(guest / "vmlinuz", folder / "initramfs.cpio",
                     ["pathprof.tests=" + ",".join(words)], folder / f"{name}.log", count)
    except machine.MachineError as error:
        count.fail(f"{name}: {error}")
    say(f"{name}: {time.monotonic() - start:.0f} s")
    return exact(count.figures)


def run_all(place, newer, folder, count):
    first = run_machine(place, folder, "first", [TESTS], count)
    # Word for word: the kernel's command line goes into its random numbers.
    compare(count, first, run_machine(place, folder, "second", [TESTS], count))
    run_machine(newer, folder, NEWER, [TESTS], count)


def main():
    start, count = time.monotonic(), Count()
    suite = [word.split("=")[1] for word in sys.argv[1:] if word.startswith("--suite=")]
    words = [word for word in sys.argv[1:] if not word.startswith("--suite=")]
    try:
        place = packages.ready(PYTHON, say)
        other = packages.ready(PYTHON, say, *suite) if words or suite else \
            packages.ready(PYTHON, say, NEWER)
        say("building pathprof for aarch64")
        build = cross.build(place)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(str(error.cmd[0])).name} failed: {' '.join(map(str, error.cmd))}")
    folder = build / "hardware"
    folder.mkdir(exist_ok=True)
    if words or suite:
        run_machine(other, folder, "chosen", words or [TESTS], count)
    else:
        run_all(place, other, folder, count)
    say(f"in {time.monotonic() - start:.0f} s")
    say(str(count))
    return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
    sys.exit(main())
