# SPDX-License-Identifier: MIT
"""The bash completion offers what fits where the cursor is."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "completion" / "pathprof.bash"

COMPLETE = """
compopt() { :; }
pathprof() { printf '%s\\n' 'EVENT UNIT TRIGGER PERIOD HERE' 'cpu-time ns cpu-timer 4000000 yes' \
	'page-faults events perf-sigtrap 1 yes' 'cycles events - - no (1)' 'mem:ADDR events x 1 yes' '' 'no one'; }
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_pathprof
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(*words, cwd=None):
    """What is offered for the last of the words, as readline splits them."""
    done = subprocess.run([shutil.which("bash"), "-c", COMPLETE, "bash", SCRIPT, *words], cwd=cwd,
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("words, offered", [
    (("re",), {"record", "report"}),
    (("record", "--du"), {"--duration"}),
    (("report", "--i"), {"--inverted"}),
    (("export", "--format", "c"), {"collapsed"}),
    (("export", "--format", "=", "sp"), {"speedscope"}),
    (("export", "--format", "="), {"collapsed", "speedscope", "flamegraph", "jsonl"}),
    (("report", "--color", "a"), {"auto", "always"}),
    (("record", "-e", ""), {"cpu-time", "page-faults"}),
])
def test_completion__offers(words, offered):
    assert complete("pathprof", *words) == offered


def test_completion__common_options_everywhere():
    assert {"--quiet", "--help", "--no-pager"} <= complete("pathprof", "list", "-")


@pytest.mark.parametrize("before", [
    ("record", "--"), ("record", "-o", "x", "--"), ("record", "-o", "x"), ("record", "-q")])
def test_completion__command_of_record(before):
    assert "printf" in complete("pathprof", *before, "printf")


def test_completion__arguments_of_command_are_files(tmp_path):
    (tmp_path / "app.py").touch()
    assert complete("pathprof", "record", "--", "python3", "a", cwd=tmp_path) == {"app.py"}
    assert complete("pathprof", "record", "--", "python3", "--fre", cwd=tmp_path) == set()
