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
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "check"
SHOWN_LINES = 40  # of a failed step's log
STEP_SECONDS = 1500  # a step that takes longer hangs
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5"]

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
    """What came of a step."""

    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = int(passed), int(failed), int(skipped)

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


def interpreters(log):
    """What the tests will read: PATHPROF_LEAST_INTERPRETERS says how many there must be."""
    least = int(os.environ.get("PATHPROF_LEAST_INTERPRETERS", "1"))
    done = subprocess.run([sys.executable, "-c", "import pythons; print(*(one.name for one in "
                           "pythons.supported()))"], cwd=ROOT / "tests" / "run", text=True,
                          capture_output=True, check=False)
    names = done.stdout.split()
    with open(log, "a") as out:
        print(done.stderr, f"{least} wanted, found: {' '.join(names)}", file=out)
    print(f"{' '.join(names)}\n{'':15}", end="", flush=True)
    ok = len(names) >= least
    return Result(ok, not ok)


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
