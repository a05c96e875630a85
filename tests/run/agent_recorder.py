# SPDX-License-Identifier: MIT
"""Runs a program under the agent and the test recorder (tests/programs/agent/recorder.c)."""

import json
import os
import subprocess

from conftest import AGENT, BUILD, SECONDS

PROGRAMS = BUILD / "tests" / "programs" / "agent"
PYTHON = "/usr/bin/python3"

FORKED, EXECED, SPAWNED = 1, 2, 3  # enum process_how


def program(name):
    return str(PROGRAMS / f"agent-{name}")


def library(name):
    return str(PROGRAMS / f"libagent-{name}.so")


class Recorded:
    """What a run left: its output, its status, and the recorder's result."""

    def __init__(self, done, result):
        self.out, self.err, self.status = done.stdout, done.stderr, done.returncode
        self.result = result

    def lines(self, prefix):
        return [line[len(prefix):] for line in self.out.splitlines() if line.startswith(prefix)]


def record(tmp_path, *command, options=(), env=None):
    result = tmp_path / "result.json"
    argv = [program("recorder"), "-r", str(result), *options, str(AGENT), "--", *command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False,
                          env={**os.environ, **(env or {})})
    return Recorded(done, json.loads(result.read_text()) if result.exists() else None)


TRIGGERS = ("cpu", "perf", "async", "inherit")


def trigger_options(trigger):
    return ("-t", trigger, "-c", "5")
