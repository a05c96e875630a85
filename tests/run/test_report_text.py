# SPDX-License-Identifier: MIT
"""pathprof report: whole texts, the JSON, usage and failures, over a recording made by hand."""

import json
import subprocess

import pytest
from conftest import BUILD

HOSTILE = '</script>?[31m;"\\?\u202e&?'  # as a recording's reader passes it on

HEADER = """\
Command    python3 work.py
Host       box, Linux 6.1, A CPU, 2 CPUs
When       2026-11-30 00:00:00 +0000, 250 ms
Event      cpu-time, a sample every 10 ms, by cpu-timer: 8 samples, ~80.0 ms
Samples    8 in 2 threads of 1 process, 2 lost
Overhead   80.0 us in the program (0.1% of its CPU time), 2.00 ms in the recorder

Lost or not seen
  2 of 10 overflows (20.0%) left no sample.
  2 lost: no free packet: the recorder did not keep up (buffer_full).

cpu-time: 8 samples, ~80.0 ms

"""

TABLE = """\
 Self%     ~Self  Total%    ~Total  Function                    File:Line
 62.5%   50.0 ms   62.5%   50.0 ms  burn                        work.py:1
 25.0%   20.0 ms   25.0%   20.0 ms  </script>?[31m;"\\?\\u202e&?  x;y:1
 12.5%   10.0 ms  100.0%   80.0 ms  main                        work.py:5
  0.0%         0  100.0%   80.0 ms  <module>                    work.py:1
"""

TREE = """\
 Self%     ~Self  Total%    ~Total  Call path
  0.0%         0  100.0%   80.0 ms  <module>  work.py:1
 12.5%   10.0 ms  100.0%   80.0 ms  main  work.py:5
 62.5%   50.0 ms   62.5%   50.0 ms  ├─ burn  work.py:1
 25.0%   20.0 ms   25.0%   20.0 ms  └─ </script>?[31m;"\\?\\u202e&?  x;y:1
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    directory = tmp_path_factory.mktemp("example") / "pathprof.data"
    subprocess.run([BUILD / "tests/support/example-recording", directory], check=True)
    return directory


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    for name in ("NO_COLOR", "PAGER", "PATHPROF_PAGER", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def test_the_default_report_is_a_table_of_functions(pathprof, example):
    done = pathprof("report", example)
    assert (done.returncode, done.stdout, done.stderr) == (0, HEADER + TABLE, "")


def test_the_default_recording_is_pathprof_data(pathprof, example):
    done = pathprof("report", cwd=example.parent)
    assert (done.returncode, done.stdout) == (0, HEADER + TABLE)


@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE.UTF-8"])
def test_the_locale_changes_nothing(pathprof, example, monkeypatch, locale):
    monkeypatch.setenv("LC_ALL", locale)
    assert pathprof("report", example).stdout == HEADER + TABLE


def test_a_tree(pathprof, example):
    assert pathprof("report", "--tree", example).stdout == HEADER + TREE


def test_an_inverted_tree_with_folded_branches(pathprof, example):
    done = pathprof("report", "--inverted", "--min-share=30%", example)
    assert done.stdout == HEADER + """\
Total%    ~Total  Function, called by
 62.5%   50.0 ms  ├─ burn  work.py:1
 62.5%   50.0 ms  │  main  work.py:5
 62.5%   50.0 ms  │  <module>  work.py:1
 37.5%   30.0 ms  └─ (2 branches below --min-share)
"""


def test_lines_and_files(pathprof, example):
    done = pathprof("report", "--by=line,file", "--limit=2", example)
    assert done.stdout == HEADER + """\
 Self%     ~Self  Total%    ~Total  Function                    File:Line
 62.5%   50.0 ms   62.5%   50.0 ms  burn                        work.py:2
 25.0%   20.0 ms   25.0%   20.0 ms  </script>?[31m;"\\?\\u202e&?  x;y:3
2 more rows (--limit=0 shows all)

 Self%     ~Self  Total%    ~Total  File
 75.0%   60.0 ms  100.0%   80.0 ms  work.py
 25.0%   20.0 ms   25.0%   20.0 ms  x;y
"""


def test_threads_follow_the_whole(pathprof, example):
    done = pathprof("report", "--threads", example)
    assert done.stdout == HEADER + TABLE + """\

cpu-time, thread 7 python3 (75.0% of the event): 6 samples, ~60.0 ms

 Self%     ~Self  Total%    ~Total  Function  File:Line
 83.3%   50.0 ms   83.3%   50.0 ms  burn      work.py:1
 16.7%   10.0 ms  100.0%   60.0 ms  main      work.py:5
  0.0%         0  100.0%   60.0 ms  <module>  work.py:1

cpu-time, thread 8 worker (25.0% of the event): 2 samples, ~20.0 ms

 Self%     ~Self  Total%    ~Total  Function                    File:Line
100.0%   20.0 ms  100.0%   20.0 ms  </script>?[31m;"\\?\\u202e&?  x;y:1
  0.0%         0  100.0%   20.0 ms  <module>                    work.py:1
  0.0%         0  100.0%   20.0 ms  main                        work.py:5
"""


def test_an_empty_recording_says_why(pathprof, tmp_path):
    directory = tmp_path / "empty"
    subprocess.run([BUILD / "tests/support/example-recording", directory, "empty"], check=True)
    done = pathprof("report", directory)
    assert done.returncode == 0
    assert done.stdout.endswith(
        "\n\nThere are no samples. Either the program ended before it had used one period of CPU "
        "time (or caused one period of the event), or it hardly ran: waiting, for disks, locks or "
        "other programs, uses none. Record for longer, or with a shorter period.\n")


def test_json_has_the_keys_and_sums_that_scripts_rely_on(pathprof, example):
    done = pathprof("report", "--json", example)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["version"] == 1
    assert found["recording"] == {
        "command": ["python3", "work.py"], "host": "box", "start_ns": 1000000000,
        "end_ns": 1250000000, "clock": "monotonic", "trigger": "cpu-timer",
        "interpreter": ["CPython 3.11.2"], "complete": True, "live": False}
    assert found["samples"] == 8
    assert found["lost"] == {"total": 2, "buffer_full": 2}
    assert found["degraded"] == {}
    assert found["overhead"] == {"handler_ns": 80000, "recorder_ns": 2000000, "share": 0.001}
    assert found["events"] == [
        {"name": "cpu-time", "unit": "ns", "period": 10000000, "samples": 8, "count": 80000000,
         "count_is_exact": False, "trigger": "cpu-timer", "user_only": False, "jitter": 0}]
    assert found["processes"] == [
        {"pid": 7, "ppid": 1, "command": "python3 work.py", "samples": 8, "recorded": True,
         "reason": None}]
    assert found["threads"] == [{"pid": 7, "tid": 7, "name": "python3", "samples": 6},
                                {"pid": 7, "tid": 8, "name": "worker", "samples": 2}]
    assert found["functions"] == [
        {"event": "cpu-time", "name": name, "file": file, "line": line, "kind": "python",
         "self": self, "total": total, "self_count": self * 10**7, "total_count": total * 10**7}
        for name, file, line, self, total in [
            ("burn", "work.py", 1, 5, 5), (HOSTILE, "x;y", 1, 2, 2), ("main", "work.py", 5, 1, 8),
            ("<module>", "work.py", 1, 0, 8)]]
    assert [(row["file"], row["line"], row["function"], row["self"], row["total"])
            for row in found["lines"]] == [
                ("work.py", 2, "burn", 5, 5), ("x;y", 3, HOSTILE, 2, 2),
                ("work.py", 6, "main", 1, 8), ("work.py", 9, "<module>", 0, 8)]


def test_an_archive_is_read_in_the_recordings_place(pathprof, example, tmp_path):
    archive = tmp_path / "archive"
    done = pathprof("archive", "-o", archive, example)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pathprof("report", archive).stdout == HEADER + TABLE
    assert pathprof("report", "--json", archive).stdout == pathprof(
        "report", "--json", example).stdout


@pytest.mark.parametrize("arguments, sentence", [
    (["--by=lines"], "--by takes function, line, file, or several with commas"),
    (["--by="], "--by takes function, line, file, or several with commas"),
    (["--json", "--tree"], "--json is always the whole document: no choice goes with it but --state and "
     "--split-state"),
    (["--source=x", "--tree"], "--source goes neither with --by nor with a tree"),
    (["--tree", "--by=file"], "a tree is by function or by line, not by file"),
    (["--min-share=101", "--tree"], "--min-share takes at most 100%"),
    (["--min-share=2"], "--min-share goes with --tree or --inverted; tables are cut by --limit"),
    (["--limit=2", "--tree"],
     "--limit is for tables: a tree is cut by --min-share, a source is whole"),
    (["--limit=2", "--source=x"],
     "--limit is for tables: a tree is cut by --min-share, a source is whole"),
    (["--source=x", "--source=y"], "--source is given twice, with 'x' and 'y': one at a time"),
    (["--foo"], "unknown option '--foo'"),
    (["--limt=3"], "unknown option '--limt' (did you mean '--limit'?)"),
    (["one", "two"], "one recording at a time: 'two' is one too many"),
])
def test_usage_errors_are_sentences_and_end_with_2(pathprof, arguments, sentence):
    done = pathprof("report", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"pathprof report: {sentence}; see pathprof report --help\n"


def test_what_is_not_in_the_recording_is_said_with_what_is(pathprof, example):
    done = pathprof("report", "--event=cycles", example)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("pathprof report: The recording has no event 'cycles'; "
                           "it has: cpu-time\n")
    done = pathprof("report", "--source=other.py", example)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pathprof report: The recording has no file named 'other.py'\n"


def test_a_missing_recording_is_a_failure(pathprof, tmp_path):
    done = pathprof("report", tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (f"pathprof report: Cannot read the recording '{tmp_path}/nothing': "
                           "No such file or directory\n")


@pytest.mark.parametrize("arguments", [["report"], ["export", "--format=jsonl"],
                                       ["archive", "-o", "file"], ["report", "pathprof.data"]])
def test_without_a_recording_the_first_step_is_said(pathprof, tmp_path, arguments):
    done = pathprof(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (f"pathprof {arguments[0]}: There is no recording 'pathprof.data' here: "
                           "run 'pathprof record -- COMMAND' first, or name a recording\n")
    assert not list(tmp_path.iterdir())


def test_an_archive_of_an_archive_is_one_sentence(pathprof, example, tmp_path):
    archive = tmp_path / "archive"
    pathprof("archive", "-o", archive, example)
    done = pathprof("archive", "-o", tmp_path / "again", archive)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (f"pathprof archive: '{archive}' is an archive already: "
                           "copy it as it is\n")


def test_a_full_disk_is_one_sentence(pathprof, example):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = pathprof("report", example, capture_output=False, stdout=full,
                        stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        125, "pathprof report: Cannot write to 'standard output': No space left on device\n")


def test_help_names_every_option(pathprof):
    done = pathprof("report", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: pathprof report [OPTION...] [DIR]\n\n")
    for option in ("--by", "--tree", "--inverted", "--threads", "--event", "--source", "--limit",
                   "--min-share", "--json", "--quiet", "--verbose", "--color", "--no-pager",
                   "--help", "--version"):
        assert f" {option}" in done.stdout
    assert pathprof("help", "report").stdout == done.stdout


def test_the_program_itself(pathprof):
    assert pathprof("--version").stdout == "pathprof 0.1.0\n"
    helped, asked, bare = pathprof("--help"), pathprof("help"), pathprof()
    assert helped.returncode == asked.returncode == 0
    assert helped.stdout == asked.stdout == bare.stderr
    assert (bare.returncode, bare.stdout) == (2, "")
    for command in ("record", "report", "export", "archive", "list", "doctor"):
        assert f"\n  {command} " in helped.stdout
    unknown = pathprof("reprot")
    assert (unknown.returncode, unknown.stderr) == (
        2, "pathprof: unknown command 'reprot' (did you mean 'report'?); see pathprof --help\n")
