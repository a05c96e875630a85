# SPDX-License-Identifier: MIT
"""Broken recordings: a clear error or a partial report that says so; never a crash, never a hang."""

import random
import re
import shutil
import subprocess

import pytest

from conftest import PATHPROF

CODE = ("import threading\ndef f(n):\n    return f(n - 1) if n else sum(range(200000))\n"
        "t = [threading.Thread(target=f, args=(i,)) for i in range(5)]\n"
        "[x.start() for x in t]\n[f(i) for i in range(20)]\n[x.join() for x in t]\n")
COMMANDS = [["report", "--no-pager"], ["report", "--json"], ["export", "--format", "jsonl"]]
SECONDS_EACH = 20
RAN = {0, 125}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole") / "r"
    done = subprocess.run([PATHPROF, "record", "-e", "page-faults", "-c", "1", "-o", directory, "--",
                           "/usr/bin/python3", "-c", CODE], capture_output=True, check=False)
    assert done.returncode == 0
    return directory


def run(command, path, *more):
    """The status, 0 or 125; what was said. A crash, a sanitizer's word or a hang fails."""
    done = subprocess.run([PATHPROF, command[0], path, *command[1:], *more], capture_output=True,
                          text=True, errors="replace", timeout=SECONDS_EACH, check=False,
                          stdin=subprocess.DEVNULL)
    words = done.stdout + done.stderr
    assert done.returncode in RAN, (done.returncode, command, words[-2000:])
    assert "ERROR: AddressSanitizer" not in words and "runtime error:" not in words
    if done.returncode == 125:
        assert done.stderr.startswith("pathprof") and len(done.stderr.splitlines()) == 1, words
    return done


def files(directory):
    return sorted(p for p in directory.rglob("*") if p.is_file())


@pytest.fixture
def broken(whole, tmp_path):
    """A copy, to be broken: broken() is a fresh one."""
    def copy():
        directory = tmp_path / "r"
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(whole, directory)
        return directory
    return copy


def test_recording__the_whole_one_reads_without_a_word(whole):
    for command in COMMANDS:
        assert run(command, whole).returncode == 0


@pytest.mark.parametrize("name", ["metadata", "definitions", "slot_0000", "manifest.json"])
@pytest.mark.parametrize("how", ["missing", "empty", "directory", "unreadable link"])
def test_recording__without_one_of_its_files_is_said(whole, broken, name, how):
    directory = broken()
    path, = [p for p in files(directory) if p.name == name]
    path.unlink()
    if how == "empty":
        path.touch()
    elif how == "directory":
        path.mkdir()
    elif how == "unreadable link":
        path.symlink_to("nowhere")
    text = run(COMMANDS[0], directory)
    if name == "metadata":  # for other readers; ours needs it not
        assert text.stdout == run(COMMANDS[0], whole).stdout
    elif text.returncode == 0 and (name, how) not in [("slot_0000", "missing"),
                                                      ("slot_0000", "empty")]:
        head = "\n".join((text.stderr + text.stdout).splitlines()[:12])
        assert re.search(r"damaged|broken|incomplete|not complete|cannot|missing|unreadable|no "
                         r"manifest|without a definition", head, re.I), head
    run(COMMANDS[2], directory)


@pytest.mark.parametrize("seed", range(3))
def test_recording__cut_anywhere(broken, seed):
    draw = random.Random(seed)
    for path in files(broken()):
        for _ in range(4):
            directory = broken()
            victim = directory / path.relative_to(directory)
            length = victim.stat().st_size
            with open(victim, "r+b") as file:
                file.truncate(draw.randrange(length) if length else 0)
            run(draw.choice(COMMANDS), directory)


@pytest.mark.parametrize("seed", range(4))
def test_recording__bytes_changed_anywhere(broken, seed):
    draw = random.Random(seed)
    for path in files(broken()):
        for _ in range(4):
            directory = broken()
            victim = directory / path.relative_to(directory)
            content = bytearray(victim.read_bytes())
            for _ in range(draw.choice([1, 1, 5, 50])):
                at = draw.randrange(len(content))
                huge = draw.choice([b"\xff" * 8, b"\xff" * 4, bytes([draw.randrange(256)]), b"\0" * 8])
                content[at:at + len(huge)] = huge
            victim.write_bytes(content)
            run(draw.choice(COMMANDS), directory)


def test_recording__numbers_of_the_manifest_gone_huge(broken):
    text = (broken() / "manifest.json").read_text()
    for number in ["-1", "1e400", "99999999999999999999999999", "null", '"x"', "[]", "{}"]:
        directory = broken()
        (directory / "manifest.json").write_text(
            re.sub(r'("(?!version)\w+": )\d+', lambda m, n=number: m.group(1) + n, text))
        run(COMMANDS[0], directory)


def test_archive__cut_or_changed_anywhere(whole, tmp_path):
    archive = tmp_path / "a.pathprof"
    run(["archive"], whole, "-o", archive)
    content, draw = archive.read_bytes(), random.Random(0)
    for i in range(24):
        damaged = bytearray(content)
        if i % 2:
            del damaged[draw.randrange(len(damaged)):]
        else:
            for _ in range(draw.choice([1, 20])):
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        archive.write_bytes(damaged)
        run(draw.choice(COMMANDS), archive)


@pytest.mark.parametrize("path", ["/", "/dev/null", "/etc/passwd", "/proc/self/mem", "/nonexistent"])
def test_recording__that_is_none_is_one_sentence(path):
    for command in COMMANDS:
        assert run(command, path).returncode == 125
