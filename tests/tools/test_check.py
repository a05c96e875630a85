# SPDX-License-Identifier: MIT
"""make check counts what ran, and fails when a step does."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import check  # pylint: disable=wrong-import-position

PASSED = "[  PASSED  ] 3 test(s).\n"
FAILED = "[  PASSED  ] 2 test(s).\n[  FAILED  ] tests: 1 test(s), listed below:\n"
SKIPPED = "[  PASSED  ] 1 test(s).\n[  SKIPPED ] tests: 2 test(s), listed below:\n"


@pytest.mark.parametrize("result, output, counted", [
    ("OK", PASSED, "3 passed, 0 failed"),
    ("OK", "", "1 passed, 0 failed"),
    ("OK", SKIPPED, "1 passed, 0 failed, 2 skipped"),
    ("FAIL", FAILED, "2 passed, 1 failed"),
    ("FAIL", "", "0 passed, 1 failed"),
    ("ERROR", PASSED, "3 passed, 1 failed"),
    ("TIMEOUT", "", "0 passed, 1 failed"),
    ("SKIP", "", "0 passed, 0 failed, 1 skipped"),
])
def test_count_cases(result, output, counted):
    assert str(check.count_cases({"result": result, "stdout": output})) == counted


def test_meson_log__sums_and_misses(tmp_path):
    log = tmp_path / "testlog.json"
    assert check.meson_log(log).failed == 1
    log.write_text("\n".join(json.dumps({"result": r, "stderr": o})
                             for r, o in [("OK", PASSED), ("FAIL", FAILED)]))
    assert str(check.meson_log(log)) == "5 passed, 1 failed"


def test_junit_log__sums_and_misses(tmp_path):
    log = tmp_path / "junit.xml"
    assert check.junit_log(log).failed == 1
    log.write_text('<testsuites><testsuite tests="9" errors="1" failures="2" skipped="3"/>'
                   '</testsuites>')
    assert str(check.junit_log(log)) == "3 passed, 3 failed, 3 skipped"


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Run main() over these steps; its status and the last line."""
    def run(capsys, *listed):
        monkeypatch.setattr(check, "STEPS", list(listed))
        monkeypatch.setattr(check, "LOGS", tmp_path)
        monkeypatch.setattr(check, "ROOT", tmp_path)
        monkeypatch.setattr(sys, "argv", ["check.py"])
        status = check.main()
        last = capsys.readouterr().out.splitlines()[-1]
        assert (tmp_path / "summary").read_text() == last + "\n"
        return status, last
    return run


def result(*numbers):
    return lambda log: check.Result(*numbers)


def test_main__all_pass(steps, capsys):
    assert steps(capsys, ("a", None, result(2)), ("b", "a", result(3, 0, 1))) == \
        (0, "5 passed, 0 failed, 1 skipped")


def test_main__failure_runs_the_rest_and_not_what_needs_it(steps, capsys):
    listed = [("a", None, result(1, 1)), ("b", "a", result(100)), ("c", None, result(3))]
    assert steps(capsys, *listed) == (1, "4 passed, 2 failed")


def test_run__status_and_log(tmp_path):
    log = tmp_path / "log"
    code = "import sys; print(sys.stdin.read() + 'said')"
    assert check.run(log, [sys.executable, "-c", code]) == 0
    assert check.run(log, ["false"]) == 1
    assert check.run(log, ["/nonexistent/command"]) == 127
    assert "said" in log.read_text() and "No such file" in log.read_text()
