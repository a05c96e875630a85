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


def ran(interpreter, outcome="", build="gil", case="walk"):
    """As pytest writes it: what the matrix fixture of tests/run records, and what came of it."""
    properties = {"interpreter": interpreter, "version": "3.13.5", "build": build, "case": case}
    said = "".join(f'<property name="{k}" value="{v}"/>' for k, v in properties.items())
    return f"<testcase><properties>{said}</properties>{outcome}</testcase>"


SKIP = '<skipped message="SKIPPED: no greenlet"/>'
FAILURE = '<failure message="no"/>'


@pytest.fixture
def matrix(tmp_path, monkeypatch):
    """The step over these cases, and its log."""
    def run(least, *cases):
        monkeypatch.setattr(check, "LOGS", tmp_path)
        monkeypatch.setenv("PATHPROF_LEAST_INTERPRETERS", str(least))
        (tmp_path / "run.xml").write_text(
            f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        log = tmp_path / "matrix.log"
        return check.matrix(log), log.read_text()
    return run


def test_matrix__counts_what_ran(matrix):
    done, log = matrix(1, ran("3.13t"), ran("3.13t"), ran("3.13t", SKIP),
                       ran("3.13t", FAILURE, case="stack deep"), "<testcase/>")
    assert (done.passed, done.failed) == (1, 0)
    rows = [line.split() for line in log.splitlines()]
    assert ["3.13t", "3.13.5", "gil", "2", "1", "1"] in rows
    assert "failed on 3.13t: stack deep" in log
    assert "SKIPPED: no greenlet: 3.13t 1" in log
    assert done.shown == log.splitlines()[:-1]
    assert max(len(line) for line in done.shown) <= check.SHOWN_WIDTH


@pytest.mark.parametrize("other", [
    [ran("b", SKIP)], [ran("b", FAILURE)], [ran("b", build="refused")], []])
def test_matrix__fails_where_too_few_were_really_tried(matrix, other):
    assert matrix(2, ran("a"), ran("b"))[0].failed == 0
    done, log = matrix(2, ran("a"), ran("a"), *other)
    assert (done.passed, done.failed) == (0, 1)
    assert "1 interpreters were read by a case that passed, 2 must be" in log


def test_matrix__fails_without_a_log(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "LOGS", tmp_path)
    assert check.matrix(tmp_path / "matrix.log").failed == 1


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


def test_run_step__shows_what_the_step_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(check, "LOGS", tmp_path)
    check.run_step("a", lambda log: check.Result(1, shown=["a row"]))
    assert capsys.readouterr().out.splitlines()[-1].strip() == "a row"
