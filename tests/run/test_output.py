# SPDX-License-Identifier: MIT
"""Where results go: every command's standard output, and what -o takes."""

import json
import os
import pty
import re
import subprocess

import pytest
from conftest import BUILD, PATHPROF, SECONDS


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    directory = tmp_path_factory.mktemp("example") / "recording"
    subprocess.run([BUILD / "tests/support/example-recording", directory], check=True)
    return directory


@pytest.mark.parametrize("arguments", [
    ["list"], ["list", "--json"], ["doctor"], ["doctor", "--json"], ["--help"], ["help"], ["--version"],
    ["help", "record"], ["record", "--help"], ["list", "--version"], ["report"], ["report", "--json"],
    ["export", "-q", "--format=jsonl"], ["archive", "-o", "-"]], ids=" ".join)
def test_output__what_cannot_be_written_is_a_failure(pathprof, example, arguments):
    reads = arguments[0] in ("report", "export", "archive")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = pathprof(*arguments, *([example] if reads else []), capture_output=False, stdout=full,
                        stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert done.stderr.startswith("pathprof")
    assert done.stderr.endswith(": No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_output__an_archive_on_standard_output_is_that_of_a_file(pathprof, example, tmp_path):
    done = pathprof("archive", "-o", "-", example, text=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not list(tmp_path.iterdir())
    assert pathprof("archive", "-o", tmp_path / "file", example).returncode == 0
    assert (tmp_path / "file").read_bytes() == done.stdout
    assert pathprof("report", tmp_path / "file").returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_output__an_archive_replaces_no_pipe_and_no_link(pathprof, example, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen([PATHPROF, "archive", "-o", tmp_path / "pipe", example]) as writer:
        with open(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
            assert writer.wait(SECONDS) == 0
            assert reader.read().startswith(b"PPROFAR1")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_text("older")
    assert pathprof("archive", "-o", tmp_path / "link", example).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert pathprof("report", tmp_path / "target").returncode == 0


def test_output__an_archive_that_fails_leaves_the_older_file(pathprof, tmp_path):
    (tmp_path / "file").write_text("older")
    done = pathprof("archive", "-o", tmp_path / "file", tmp_path / "nothing")
    assert done.returncode == 125
    assert (tmp_path / "file").read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 1


def test_output__no_archive_goes_to_a_terminal(example):
    controller, screen = pty.openpty()
    done = subprocess.run([PATHPROF, "archive", "-o", "-", example], stdin=screen, stdout=screen,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
    os.close(screen)
    os.close(controller)
    assert (done.returncode, done.stderr) == (
        2, "pathprof archive: an archive is not for a terminal: name a file with -o\n")


def test_output__a_recording_is_no_stream(pathprof, tmp_path):
    done = pathprof("record", "-o", "-", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "standard output" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["record", "report", "export", "archive", "list", "doctor"])
def test_help__has_one_form(pathprof, command):
    """Every option's text begins with a capital, and nothing ends in an empty line."""
    text = pathprof(command, "--help").stdout
    assert text.endswith("\n") and not text.endswith("\n\n")
    options = re.findall(r"^  (?:-\w, |    )--[\w-]+(?:=\w+)?\s+(\S)", text, re.MULTILINE)
    assert len(options) > 5
    assert all(letter.isupper() for letter in options), options


def test_verbose__record_tells_what_it_ran(record, tmp_path):
    plain, _ = record(["/usr/bin/python3", "-S", "-c", "pass"])
    done, directory = record(["/usr/bin/python3", "-S", "-c", "pass"], "-v")
    assert done.returncode == 0
    more = {line.split()[0]: line for line in done.stderr.splitlines()}
    assert {"command", "agent", "python", "memory", "seed"} <= set(more)
    assert not {"agent", "python"} & {line.split()[0] for line in plain.stderr.splitlines()}
    assert "libpathprof-agent.so" in more["agent"] and "CPython 3" in more["python"]
    assert "exit status 0" in more["command"]
    assert json.loads((directory / "manifest.json").read_text())["seed"] == int(more["seed"].split()[1])
