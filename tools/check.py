#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make check: every step in order, each with its time, and the sum of what passed and failed.

Usage: tools/check.py [STEP...]     "gates": the checks of the text; --list names the steps

Fast steps come first. A step that fails does not keep the later ones from running, unless they
need what it builds; its last lines are shown, all of it is in build/check/STEP.log. The last line
is "N passed, N failed" (and ", N skipped"), the status 0 where nothing failed. A gate or a build
counts one; a test program counts its cases.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "check"
SHOWN_LINES = 40  # of a failed step's log
SHOWN_WIDTH = 96  # with the indent: 100
STEP_SECONDS = 1500  # a step that takes longer hangs
# xunit1: what a case says of itself (tests/run/conftest.py) is no part of xunit2.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5",
          "-o", "junit_family=xunit1"]

# The agent is never built with a sanitizer (src/agent/meson.build).
ASAN = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
TSAN = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}


# What cmocka says at the end of a test program: passed, failed, skipped.
CMOCKA = (r"^\[  PASSED  \] (\d+) test\(s\)\.", r"^\[  FAILED  \].*?: (\d+) test\(s\)",
          r"^\[  SKIPPED \].*?: (\d+) test\(s\)")


# Not under a sanitizer: shares of CPU time, and tests of the agent with a recorder of their own,
# which run in the plain build. The agent and the programs never have one: its runtime must come
# before every preload.
PLAIN_ONLY = [f"--ignore-glob=*/test_{name}.py" for name in ("agent_*", "accuracy")]


class Result:
    """What came of a step; @shown: lines that are printed under it in any case."""

    def __init__(self, passed=0, failed=0, skipped=0, shown=()):
        self.passed, self.failed, self.skipped = int(passed), int(failed), int(skipped)
        self.shown = shown

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def run(log, command, **environment):
    """Run a command, output to the log; its status, 124 where it hung."""
    with open(log, "a") as out:
        print("$", " ".join(map(str, command)), file=out, flush=True)
        try:
            return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=STEP_SECONDS,
                                  env=os.environ | environment, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"stopped: took longer than {STEP_SECONDS} s", file=out)
            return 124
        except OSError as error:
            print(error, file=out)
            return 127


def fixed_addresses():
    """Words before a command that switch address randomisation off, where that is allowed: the
    sanitizers of these compilers do not find their shadow memory under much of it."""
    words = ["setarch", os.uname().machine, "-R"]
    try:
        allowed = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    return words if allowed else []


def sanitized(environment):
    """Is this the environment of a sanitizer's build?"""
    return environment.keys() & {"ASAN_OPTIONS", "TSAN_OPTIONS"}


def gate(name):
    def step(log):
        ok = run(log, [sys.executable, ROOT / "tools" / f"check_{name}.py"]) == 0
        return Result(ok, not ok)
    return step


def over_files(command, listed):
    """A gate: a command over the files that git knows by these patterns."""
    def step(log):
        listing = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "--cached",
                                  "--others", "--exclude-standard", *listed],
                                 cwd=ROOT, check=True, capture_output=True, text=True)
        ok = run(log, command + listing.stdout.split()) == 0
        return Result(ok, not ok)
    return step


def build(directory, compiler, *options):
    def step(log):
        tree = ROOT / directory
        ok = (tree / "build.ninja").exists() or \
            run(log, ["meson", "setup", directory, *options], CC=compiler) == 0
        ok = ok and run(log, ["ninja", "-C", directory]) == 0
        return Result(ok, not ok)
    return step


def count_cases(test):
    """One test of meson's log: the cases that cmocka counted, or itself."""
    output = test.get("stdout", "") + test.get("stderr", "")
    passed, failed, skipped = (sum(map(int, re.findall(pattern, output, re.MULTILINE)))
                               for pattern in CMOCKA)
    if test["result"] == "SKIP":
        return Result(skipped=max(1, skipped))
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        return Result(max(1 if not skipped else 0, passed), 0, skipped)
    return Result(passed, max(1, failed), skipped)


def meson_log(path):
    total = Result()
    if not path.exists():
        return Result(failed=1)
    for line in path.read_text().splitlines():
        total.add(count_cases(json.loads(line)))
    return total


def meson_tests(directory, *names, **environment):
    """The tests that meson knows; NAMES choose, as `meson test` takes them."""
    def step(log):
        testlog = ROOT / directory / "meson-logs" / "testlog.json"
        testlog.unlink(missing_ok=True)
        first = fixed_addresses() if sanitized(environment) else []
        status = run(log, [*first, "meson", "test", "-C", directory, "--no-rebuild",
                           "--print-errorlogs", "--num-processes", str(os.cpu_count()), *names],
                     **environment)
        result = meson_log(testlog)
        if result.passed + result.failed == 0 or (status and not result.failed):
            result.failed += 1
        return result
    return step


def chosen_meson_tests(directory, pattern, **environment):
    """The tests of a build whose names match, for a build that not everything runs under."""
    def step(log):
        listing = subprocess.run(["meson", "introspect", "--tests", directory], cwd=ROOT,
                                 check=True, capture_output=True, text=True)
        names = [t["name"] for t in json.loads(listing.stdout) if re.match(pattern, t["name"])]
        if not names:
            print(f"no test is named like {pattern}", file=open(log, "a"))
            return Result(failed=1)
        return meson_tests(directory, *names, **environment)(log)
    return step


def junit_log(path):
    if not path.exists():
        return Result(failed=1)
    suite = ET.parse(path).getroot().find("testsuite")
    total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
    failed = int(suite.get("failures")) + int(suite.get("errors"))
    return Result(total - failed - skipped, failed, skipped)


def pytests(folder, *options, **environment):
    def step(log):
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        first = fixed_addresses() if sanitized(environment) else []
        status = run(log, [*first, *PYTEST, f"--junit-xml={report}", *options, folder],
                     PYTHONDONTWRITEBYTECODE="1", **environment)
        result = junit_log(report)
        if status and not result.failed:
            result.failed += 1
        return result
    return step


def least_interpreters():
    return int(os.environ.get("PATHPROF_LEAST_INTERPRETERS", "1"))


def interpreters(log):
    """What the tests will read: PATHPROF_LEAST_INTERPRETERS says how many there must be."""
    least = least_interpreters()
    done = subprocess.run([sys.executable, "-c", "import pythons; print(*(one.name for one in "
                           "pythons.supported()))"], cwd=ROOT / "tests" / "run", text=True,
                          capture_output=True, check=False)
    names = done.stdout.split()
    with open(log, "a") as out:
        print(done.stderr, f"{least} wanted, found: {' '.join(names)}", file=out)
    ok = len(names) >= least
    return Result(ok, not ok, shown=[" ".join(names)])


class Tried:
    """What the whole-program tests did with one interpreter."""

    def __init__(self, properties):
        self.name, self.version = properties["interpreter"], properties["version"]
        self.build = properties["build"]  # "refused": tested only for being refused
        self.counts = {"passed": 0, "skipped": 0, "failed": 0}
        self.skipped, self.failed = {}, []  # cases, those skipped by reason

    def add(self, testcase, name):
        skipped = testcase.find("skipped")
        bad = testcase.find("failure") is not None or testcase.find("error") is not None
        self.counts["failed" if bad else "passed" if skipped is None else "skipped"] += 1
        if bad:
            self.failed.append(name)
        elif skipped is not None:
            self.skipped.setdefault(skipped.get("message"), []).append(name)

    @property
    def read(self):
        """Did a case that reads it pass?"""
        return self.build != "refused" and self.counts["passed"] > 0


def tried_interpreters(path):
    """From a log of pytest's, in the order in which they were first tried."""
    found = {}
    for testcase in ET.parse(path).getroot().iter("testcase"):
        properties = {p.get("name"): p.get("value") for p in testcase.iter("property")}
        if "interpreter" in properties:
            one = found.setdefault(properties["interpreter"], Tried(properties))
            one.add(testcase, properties["case"])
    return list(found.values())


def matrix_lines(tried):
    """A line an interpreter; below, what was skipped and why, and what failed."""
    lines = [f"{'interpreter':16} {'version':10} {'build':14} {'passed':>7} {'skipped':>7} "
             f"{'failed':>7}"]
    lines += [f"{one.name:16} {one.version:10} {one.build:14} "
              + " ".join(f"{count:7}" for count in one.counts.values()) for one in tried]
    reasons = {}
    for one in tried:
        for reason, cases in one.skipped.items():
            reasons.setdefault(reason, []).append(f"{one.name} {len(cases)}")
        lines += [f"failed on {one.name}: {case}" for case in one.failed]
    for reason, where in reasons.items():
        lines += textwrap.wrap(f"{reason}: {', '.join(where)}", SHOWN_WIDTH,
                               subsequent_indent="    ")
    return lines


def matrix(log):
    """What the step "run" did with each interpreter. Passes where PATHPROF_LEAST_INTERPRETERS have
    been read by a case that passed: one that was found may have been skipped by every case."""
    report, least = LOGS / "run.xml", least_interpreters()
    tried = tried_interpreters(report) if report.exists() else []
    read = [one.name for one in tried if one.read]
    lines = matrix_lines(tried)
    ok = len(read) >= least
    said = f"{len(read)} interpreters were read by a case that passed, {least} must be"
    log.write_text("\n".join([*lines, said]) + "\n")
    return Result(ok, not ok, shown=lines if ok else [])


def fuzz(seconds):
    def step(log):
        status = run(log, [sys.executable, ROOT / "tools/fuzz.py", "--seconds", str(seconds)])
        results = ROOT / "build-fuzz" / "results.json"
        if not results.exists():
            return Result(failed=1)
        crashed = [r["crashed"] for r in json.loads(results.read_text())]
        return Result(crashed.count(False), max(crashed.count(True), int(status != 0)))
    return step


# name, what it needs to have passed, the step
STEPS = [
    ("gate-format", None,
     over_files(["clang-format", "--dry-run", "-Werror"],
                ["src/*.[ch]", "tests/*.[ch]", "bench/*.[ch]", "demo/*.c"])),
    ("gate-layers", None, gate("layers")),
    ("gate-size", None, gate("size")),
    ("gate-words", None, gate("words")),
    ("gate-docs", None, gate("docs")),
    ("gate-man", None, gate("man")),
    ("gate-shell", None,
     over_files(["shellcheck"], ["*.sh", ".ci/run", "tools/install-packages", "demo/run",
                                 "docs/completion/pathprof.bash"])),
    ("gates-fail", None, pytests("tests/tools")),
    ("interpreters", None, interpreters),
    ("build-gcc", None, build("build", "gcc")),
    ("gate-symbols", "build-gcc", gate("symbols")),
    ("unit", "build-gcc", meson_tests("build")),
    ("run", "build-gcc", pytests("tests/run")),
    ("matrix", "build-gcc", matrix),
    ("build-clang", None, build("build-clang", "clang")),
    ("gate-tidy", "build-clang", gate("tidy")),
    ("build-asan", None, build("build-asan", "gcc", "-Db_sanitize=address,undefined")),
    ("unit-asan", "build-asan", meson_tests("build-asan", "--suite", "unit", **ASAN)),
    ("run-asan", "build-asan",
     pytests("tests/run", "-m", "not plain_only", *PLAIN_ONLY, PATHPROF_BUILD="build-asan",
             **ASAN)),
    ("build-tsan", None, build("build-tsan", "gcc", "-Db_sanitize=thread")),
    ("unit-tsan", "build-tsan",
     chosen_meson_tests("build-tsan", "(memory|capture)", **TSAN)),
    ("fuzz", None, fuzz(20)),
]


def chosen_steps(arguments):
    if not arguments:
        return STEPS
    known = {name for name, _, _ in STEPS}
    unknown = [a for a in arguments if a != "gates" and a not in known]
    if unknown:
        raise SystemExit(f"no step {', '.join(unknown)}; there are: {' '.join(sorted(known))}")
    return [s for s in STEPS if s[0] in arguments
            or ("gates" in arguments and s[0].startswith("gate") and s[1] is None)]


def show_failure(log):
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    print("\n".join(f"    {line}" for line in lines[-SHOWN_LINES:]))
    print(f"    (all of it: {log.relative_to(ROOT)})", flush=True)


def run_step(name, step):
    log = LOGS / f"{name}.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    print(f"{name:14} ", end="", flush=True)
    result = step(log)
    print(f"{time.monotonic() - start:6.1f} s  {result}", flush=True)
    for line in result.shown:
        print(f"    {line}", flush=True)
    if result.failed:
        show_failure(log)
    return result


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(name for name, _, _ in STEPS))
        return 0
    steps = chosen_steps(sys.argv[1:])
    LOGS.mkdir(parents=True, exist_ok=True)
    failed, total, start = set(), Result(), time.monotonic()
    for name, needs, step in steps:
        if needs in failed:
            print(f"{name:14}    not run: {needs} failed")
            total.failed += 1
            continue
        result = run_step(name, step)
        total.add(result)
        if result.failed:
            failed.add(name)
    print(f"in {time.monotonic() - start:.0f} s" + (f"; failed: {' '.join(sorted(failed))}"
                                                    if failed else ""))
    (LOGS / "summary").write_text(f"{total}\n")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
