# SPDX-License-Identifier: MIT
"""What bash completion offers: the function is called as bash calls it."""

import os
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, SECONDS

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="SKIPPED: no bash")

ASK = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pathprof
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words, cwd=None):
    """What may stand for the last word."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", ROOT / "docs/completion/pathprof.bash", "pathprof", *words], cwd=cwd,
        env=os.environ | {"PATH": f"{BUILD}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=SECONDS,
        check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [word for word in done.stdout.split("\n") if word]


def test_completion__commands():
    assert offered("re") == ["record", "report"]
    assert offered("help", "re") == ["record", "report"]


@pytest.mark.parametrize("command", ["record", "report", "export", "archive", "list", "doctor"])
def test_completion__two_dashes_begin_an_option(pathprof, command):
    options = offered(command, "--")
    assert "--help" in options
    assert all(option.startswith("--") and option in pathprof(command, "--help").stdout for option in options)


def test_completion__two_dashes_that_are_whole_are_followed_by_a_command():
    assert "env" in offered("record", "-o", "x", "--", "env")
    assert "--wall" not in offered("record", "--", "env", "--w")


@pytest.mark.parametrize("words", [["-e", ""], ["--event", ""], ["--event", "="]])
def test_completion__events_are_names_of_events_that_work_here(pathprof, words):
    events = offered("record", *words)
    assert "cpu-time" in events
    rows = {line.split()[0]: line for line in pathprof("list").stdout.splitlines()[1:] if line}
    for event in events:
        assert "no (" not in rows[event]
        assert not set(event) & set("(:/*")
    assert not {"EVENT", "rCODE"} & set(events)


def test_completion__lists_go_on_behind_a_comma():
    assert offered("record", "-e", "cpu-time,cpu-cl") in (["cpu-time,cpu-clock"], [])
    assert offered("report", "--by", "line,fi") == ["line,file"]
    assert offered("report", "--state", "=", "gil-") == ["gil-wait"]


def test_completion__values_are_those_of_the_command(tmp_path):
    assert offered("export", "--format", "=", "sp") == ["speedscope"]
    assert offered("record", "--trigger", "perf-a") == ["perf-async"]
    (tmp_path / "a-recording").mkdir()
    assert offered("report", "a-", cwd=tmp_path) == ["a-recording"]
    assert offered("report", "--event", "cpu-t", cwd=tmp_path) == []
