# SPDX-License-Identifier: MIT
"""pathprof export: whole documents, where they go, and what is left when that fails."""

import json
import os
import re
import shutil
import stat
import subprocess

import pytest
from conftest import BUILD, PATHPROF

HOSTILE = '</script>?[31m;"\\?\u202e&?'  # as a recording's reader passes it on
TEXT_FORMATS = ["collapsed", "speedscope", "jsonl"]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    directory = tmp_path_factory.mktemp("example") / "recording"
    subprocess.run([BUILD / "tests/support/example-recording", directory], check=True)
    return directory


@pytest.fixture
def export(pathprof, example):
    def run(name, *options, **more):
        return pathprof("export", "-q", f"--format={name}", *options, example, **more)
    return run


def test_collapsed(export):
    done = export("collapsed")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "<module> (work.py:1);main (work.py:5) 1\n"
        "<module> (work.py:1);main (work.py:5);burn (work.py:1) 5\n"
        '<module> (work.py:1);main (work.py:5);</script>?[31m:"\\?\\u202e&? (x:y:1) 2\n')


def test_jsonl(export):
    done = export("jsonl")
    frames = [{"function": name, "file": file, "line": line, "kind": "python"}
              for name, file, line in [("<module>", "work.py", 9), ("main", "work.py", 6),
                                       ("burn", "work.py", 2), (HOSTILE, "x;y", 3)]]
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"event": "cpu-time", "pid": 7, "tid": tid, "frames": stack, "samples": samples,
         "count": samples * 10**7}
        for tid, stack, samples in [(7, frames[:3], 5), (7, frames[:2], 1),
                                    (8, [*frames[:2], frames[3]], 2)]]


def test_speedscope(export):
    done = export("speedscope")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    names = [frame["name"] for frame in found["shared"]["frames"]]
    profiles = [{**profile, "samples": [[names[frame] for frame in stack]
                                        for stack in profile["samples"]]}
                for profile in found["profiles"]]
    burn, main = ["<module>", "main", "burn"], ["<module>", "main"]
    assert profiles == [
        {"type": "sampled", "name": "cpu-time: python3 (7)", "unit": "nanoseconds",
         "startValue": 0, "endValue": 60000000, "samples": [burn, main, burn],
         "weights": [20000000, 10000000, 30000000]},
        {"type": "sampled", "name": "cpu-time: worker (8)", "unit": "nanoseconds",
         "startValue": 0, "endValue": 20000000, "samples": [[*main, HOSTILE]],
         "weights": [20000000]}]


def test_speedscope_has_what_its_schema_requires(export):
    found = json.loads(export("speedscope").stdout)
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(found) <= {"$schema", "exporter", "name", "activeProfileIndex", "shared",
                          "profiles"}
    for frame in found["shared"]["frames"]:
        assert isinstance(frame["name"], str)
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("line", 1), int) and isinstance(frame.get("file", ""), str)
    for profile in found["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples",
                                "weights"}
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds",
                                   "seconds", "bytes")
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        assert all(0 <= frame < len(found["shared"]["frames"])
                   for stack in profile["samples"] for frame in stack)


@pytest.fixture
def installed(tmp_path):
    """A pathprof below a prefix of its own, and where its page template is to be."""
    program = tmp_path / "prefix/bin/pathprof"
    program.parent.mkdir(parents=True)
    shutil.copy(PATHPROF, program)
    template = tmp_path / "prefix/share/pathprof/flamegraph.html"
    template.parent.mkdir(parents=True)
    return program, template


def run_installed(program, example, output):
    return subprocess.run([program, "export", "--format=flamegraph", "-o", output, example],
                          capture_output=True, text=True, check=False)


def test_the_page_is_the_template_with_the_profile_in_its_place(installed, example, tmp_path):
    program, template = installed
    template.write_text("<html><script>let d = /*PATHPROF_DATA*/null;</script>\nend")
    done = run_installed(program, example, tmp_path / "page.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    start, end = "<html><script>let d = ", ";</script>\nend"
    assert page.startswith(start) and page.endswith(end)
    data = page[len(start):-len(end)]
    assert not re.search("[<>&\u2028\u2029]", data)
    found = json.loads(data)
    assert found == {
        "version": 1, "title": "python3 work.py",
        "recording": found["recording"],
        "notices": ["2 of 10 overflows (20.0%) left no sample.",
                    "2 lost: no free packet: the recorder did not keep up (buffer_full)."],
        "events": [{"name": "cpu-time", "unit": "ns", "period": 10000000}],
        "threads": [{"pid": 7, "tid": 7, "name": "python3"},
                    {"pid": 7, "tid": 8, "name": "worker"}],
        "frames": [["<module>", "work.py", 9, "python"], ["main", "work.py", 6, "python"],
                   ["burn", "work.py", 2, "python"], [HOSTILE, "x;y", 3, "python"]],
        "nodes": [[-1, 0], [0, 1], [1, 2], [1, 3]],
        "stacks": [[0, 0, 2, 5, 50000000], [0, 0, 1, 1, 10000000], [0, 1, 3, 2, 20000000]]}


@pytest.mark.parametrize("text", ["", "nothing", "/*PATHPROF_DATA*/null" * 2])
def test_a_damaged_template_is_said_and_leaves_no_file(installed, example, tmp_path, text):
    program, template = installed
    template.write_text(text)
    done = run_installed(program, example, tmp_path / "page.html")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        "pathprof export: The page template flamegraph.html is damaged: it does not hold "
        "/*PATHPROF_DATA*/null exactly once; install pathprof again\n")
    assert sorted(os.listdir(tmp_path)) == ["prefix"]


def test_a_missing_template_is_said_with_its_reason(installed, example, tmp_path):
    program, template = installed
    done = run_installed(program, example, tmp_path / "page.html")
    assert (done.returncode, done.stdout) == (125, "")
    where = program.parent / "../share/pathprof" / template.name
    assert done.stderr == (
        f"pathprof export: The page template '{where}' is not installed: this pathprof was built "
        "without its web part, which needs npm; the other formats work without it\n")
    assert sorted(os.listdir(tmp_path)) == ["prefix"]


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_file_holds_what_stdout_would(export, tmp_path, name):
    done = export(name, "-o", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "out").read_text() == export(name).stdout == export(name, "-o-").stdout
    assert os.listdir(tmp_path) == ["out"]


def test_losses_are_said_where_the_format_cannot(pathprof, example):
    done = pathprof("export", "--format=collapsed", example)
    assert (done.returncode, done.stderr) == (
        0, "pathprof export: the recording is not whole, which this format does not show: "
           "see pathprof report\n")


def test_modes_and_links_are_kept(export, tmp_path):
    target, link, new = tmp_path / "target", tmp_path / "link", tmp_path / "new"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert export("collapsed", "-o", link).returncode == 0
    assert link.is_symlink() and target.read_text().startswith("<module>")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert export("collapsed", "-o", new, umask=0o027).returncode == 0
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_what_is_no_regular_file_is_written_straight(export, tmp_path):
    assert export("collapsed", "-o", "/dev/null").returncode == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert export("collapsed", "-o", pipe).returncode == 0
        assert reader.communicate()[0] == export("collapsed").stdout


def test_failures_to_write_are_one_sentence_and_leave_what_was(export, tmp_path):
    done = export("collapsed", "-o", tmp_path / "no/where")
    assert (done.returncode, done.stderr) == (
        125, f"pathprof export: Cannot create '{tmp_path}/no/where': No such file or directory\n")
    done = export("collapsed", "-o", "/dev/full")
    assert (done.returncode, done.stderr) == (
        125, "pathprof export: Cannot write to '/dev/full': No space left on device\n")


def test_a_limit_on_file_size_leaves_the_old_file(example, tmp_path):
    old = tmp_path / "out"
    old.write_text("old")
    done = subprocess.run(
        ["bash", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "-", PATHPROF, "export", "-q",
         "--format=jsonl", "-o", old, example], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        125, f"pathprof export: Cannot write to '{old}': File too large\n")
    assert old.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_usage(pathprof):
    formats = "flamegraph, collapsed, speedscope, jsonl"
    for arguments, sentence in [
            ([], f"which format? --format=FORMAT with one of {formats}; "
                 "see pathprof export --help"),
            (["--format=svg"], f"unknown format 'svg'; the formats are {formats}")]:
        done = pathprof("export", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"pathprof export: {sentence}\n"
    done = pathprof("archive")
    assert (done.returncode, done.stderr) == (
        2, "pathprof archive: which file? -o FILE; see pathprof archive --help\n")
