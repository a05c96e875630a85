# SPDX-License-Identifier: MIT
"""report --state and --split-state, whole, over a recording with waits made by hand: a thread that runs with the
interpreter lock and without, waits for it, for a CPU and otherwise, and one that waits when the recording ends."""

import json
import subprocess

import pytest
from conftest import BUILD

HEADER = """\
Kernel time is not included.

Command    python3 work.py
Host       box, Linux 6.1, A CPU, 2 CPUs
When       2026-11-30 00:00:00 +0000, 250 ms
Event      wall-time, a sample every 20 ms, by cpu-timer: 5 samples and 4 waits, ~450 ms of 500 ms counted
           page-faults, a sample every 10, by perf-sigtrap: 2 samples, ~20 of 27 counted
Samples    7 in 2 threads of 1 process, 1 lost
Waits      400 ms in 8; 4 were looked at, which took 87.5% of it and stand for the others
States     running ~20.0 ms (4.4%), gil ~80.0 ms (17.8%), gil-wait ~30.0 ms (6.7%), runnable ~10.0 ms (2.2%), \
waiting ~310 ms (68.9%)
Overhead   80.0 us in the program (0.1% of its CPU time), 2.00 ms in the recorder

Lost or not seen
  1 of 8 overflows (12.5%) left no sample.
  1 lost: delivered late, after a blocked signal: stack not the event's (delayed).
"""

COLUMNS = " Self%     ~Self  Total%    ~Total  Function  File:Line\n"

WALL = f"""
wall-time: 5 samples and 4 waits, ~450 ms

{COLUMNS}\
 55.6%    250 ms   55.6%    250 ms  hang      work.py:1
 31.1%    140 ms   31.1%    140 ms  burn      work.py:1
 13.3%   60.0 ms  100.0%    450 ms  main      work.py:5
  0.0%         0  100.0%    450 ms  <module>  work.py:1
"""

WAITING = f"""
wall-time, waiting: 2 waits, ~310 ms

{COLUMNS}\
 80.6%    250 ms   80.6%    250 ms  hang      work.py:1
 19.4%   60.0 ms  100.0%    310 ms  main      work.py:5
  0.0%         0  100.0%    310 ms  <module>  work.py:1
"""


def alone(event, states, samples, count, places=(1, 1, 5), function=" Function  File:Line"):
    """A section in which burn() is the leaf of all."""
    burn, module, main = places
    return f"""
{event}{states}: {samples}, ~{count}

 Self%     ~Self  Total%    ~Total {function}
100.0%{count:>10}  100.0%{count:>10}  burn      work.py:{burn}
  0.0%         0  100.0%{count:>10}  <module>  work.py:{module}
  0.0%         0  100.0%{count:>10}  main      work.py:{main}
"""


FAULTS = alone("page-faults", "", "2 samples", "20")


GIL = """\
Command    python3 work.py
Host       box, Linux 6.1, A CPU, 2 CPUs
When       2026-11-30 00:00:00 +0000, 250 ms
Event      cpu-time, a sample every 10 ms, by cpu-timer: 8 samples, ~80.0 ms
Samples    8 in 2 threads of 1 process, 2 lost
Overhead   80.0 us in the program (0.1% of its CPU time), 2.00 ms in the recorder

Lost or not seen
  2 of 10 overflows (20.0%) left no sample.
  2 lost: no free packet: the recorder did not keep up (buffer_full).
  Only samples of threads that held the interpreter lock were kept (--gil): 12 without it were left out.

cpu-time: 8 samples, ~80.0 ms

 Self%     ~Self  Total%    ~Total  Function  File:Line
 62.5%   50.0 ms   62.5%   50.0 ms  burn      work.py:1
3 more rows (--limit=0 shows all)

cpu-time, gil: 8 samples, ~80.0 ms

 Self%     ~Self  Total%    ~Total  Function  File:Line
 62.5%   50.0 ms   62.5%   50.0 ms  burn      work.py:1
3 more rows (--limit=0 shows all)
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    directory = tmp_path_factory.mktemp("states") / "pathprof.data"
    subprocess.run([BUILD / "tests/support/example-recording", directory, "wall"], check=True)
    return directory


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    for name in ("NO_COLOR", "PAGER", "PATHPROF_PAGER", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("options, sections", [
    ([], [WALL, FAULTS]),
    (["--state=waiting"], [WAITING]),
    (["--state=gil,gil-wait"], [alone("wall-time", ", gil+gil-wait", "4 samples and 1 wait", "110 ms"),
                                alone("page-faults", ", gil+gil-wait", "2 samples", "20")]),
    (["--state=gil-wait"], [alone("wall-time", ", gil-wait", "1 wait", "30.0 ms")]),
    (["--state=running", "--by=line"], [
        alone("wall-time", ", running+gil", "5 samples", "100 ms", (2, 9, 6)),
        alone("page-faults", ", running+gil", "2 samples", "20", (2, 9, 6))]),
    (["--state=runnable", "--threads"], [
        alone("wall-time", ", runnable", "1 wait", "10.0 ms"),
        alone("wall-time", ", thread 7 python3 (2.2% of the event), runnable", "1 wait", "10.0 ms")]),
    (["--split-state"], [
        WALL, alone("wall-time", ", running", "1 sample", "20.0 ms"), alone("wall-time", ", gil", "4 samples", "80.0 ms"),
        alone("wall-time", ", gil-wait", "1 wait", "30.0 ms"), alone("wall-time", ", runnable", "1 wait", "10.0 ms"),
        WAITING, FAULTS, alone("page-faults", ", gil", "2 samples", "20")]),
    (["--split-state", "--event=page-faults"], [FAULTS, alone("page-faults", ", gil", "2 samples", "20")]),
    (["--tree", "--state=waiting"], ["""
wall-time, waiting: 2 waits, ~310 ms

 Self%     ~Self  Total%    ~Total  Call path
  0.0%         0  100.0%    310 ms  <module>  work.py:1
  0.0%         0  100.0%    310 ms  main  work.py:5
  0.0%         0   80.6%    250 ms  ├─ hang  work.py:1
 80.6%    250 ms   80.6%    250 ms  │  [waiting]
 19.4%   60.0 ms   19.4%   60.0 ms  └─ [waiting]
"""])], ids=lambda value: " ".join(value) if value and value[0].startswith("-") else "")
def test_state__the_whole_text(pathprof, example, options, sections):
    done = pathprof("report", example, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == HEADER + "".join(sections)


def row(place, state, self_ns, total_ns, *samples, event="wall-time"):
    """A row of functions and one of lines."""
    name, first, line = place
    keys = ("self", "total", "self_count", "total_count")
    values = dict(zip(keys, (*samples, self_ns, total_ns)))
    more = {"state": state} if state else {}
    return ({"event": event, **more, "name": name, "file": "work.py", "line": first, "kind": "python", **values},
            {"event": event, **more, "file": "work.py", "line": line, "function": name, "kind": "python", **values})


MS = 10**6
HANG, BURN, MAIN, MODULE = ("hang", 1, 3), ("burn", 1, 2), ("main", 5, 6), ("<module>", 1, 9)


def waiting(state):
    return [row(HANG, state, 250 * MS, 250 * MS, 1, 1), row(MAIN, state, 60 * MS, 310 * MS, 1, 2),
            row(MODULE, state, 0, 310 * MS, 0, 2)]


def burning(state, count, samples, event="wall-time"):
    return [row(BURN, state, count, count, samples, samples, event=event),
            row(MODULE, state, 0, count, 0, samples, event=event), row(MAIN, state, 0, count, 0, samples, event=event)]


def test_state__the_json(pathprof, example):
    def document(*options):
        done = pathprof("report", example, "--json", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)
    whole = document()
    assert whole["samples"] == 7 and whole["lost"] == {"total": 1, "delayed": 1}
    assert whole["waits"] == {"event": "wall-time", "period_ns": 10 * MS, "waits": 8, "waited_ns": 400 * MS, "seen": 4,
                              "seen_ns": 350 * MS, "rejected": 1}
    assert whole["states"] == [
        {"event": event, "state": state, "samples": samples, "count": count} for event, state, samples, count in (
            ("wall-time", "running", 1, 20 * MS), ("wall-time", "gil", 4, 80 * MS),
            ("wall-time", "gil-wait", 1, 30 * MS), ("wall-time", "runnable", 1, 10 * MS),
            ("wall-time", "waiting", 2, 310 * MS), ("page-faults", "gil", 2, 20))]
    assert [(thread["tid"], thread["waits"], thread["waited_ns"], thread["states"])
            for thread in whole["threads"]] == [
        (7, 7, 150 * MS, {"running": 20 * MS, "gil": 80 * MS, "gil-wait": 30 * MS, "runnable": 10 * MS,
                          "waiting": 60 * MS}),
        (8, 1, 250 * MS, {"waiting": 250 * MS})]
    assert whole["notices"][0] == "Kernel time is not included."
    assert [event["user_only"] for event in whole["events"]] == [False, True]
    rest = {key: value for key, value in whole.items() if key not in ("functions", "lines")}
    for options, rows in (
            (["--state=waiting"], waiting(None)),
            (["--split-state"], [
                *burning("running", 20 * MS, 1), *burning("gil", 80 * MS, 4), *burning("gil-wait", 30 * MS, 1),
                *burning("runnable", 10 * MS, 1), *waiting("waiting"),
                *burning("gil", 20, 2, "page-faults")]),
            (["--split-state", "--state=waiting,gil-wait"], [*burning("gil-wait", 30 * MS, 1), *waiting("waiting")])):
        found = document(*options)
        assert {key: value for key, value in found.items() if key not in ("functions", "lines")} == rest

        def by_key(rows):
            return sorted(rows, key=lambda one: (one["event"], one.get("state", ""), -one["self_count"],
                                                 -one["total_count"], one["line"]))
        assert by_key(found["functions"]) == by_key([function for function, _ in rows])
        assert by_key(found["lines"]) == by_key([line for _, line in rows])


def test_gil__the_whole_text_of_what_was_kept(pathprof, example, tmp_path):
    """A recording with --gil: all that runs had the lock, and how many were left out is said first of the losses."""
    directory = tmp_path / "gil"
    subprocess.run([BUILD / "tests/support/example-recording", directory], check=True)
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "left_out": 12}))
    done = pathprof("report", directory, "--split-state", "--limit=1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == GIL
    found = json.loads(pathprof("report", directory, "--json").stdout)
    assert found["states"] == [{"event": "cpu-time", "state": "gil", "samples": 8, "count": 80 * MS}]


@pytest.mark.parametrize("words", ["idle", "gil,,waiting", "", "Waiting"])
def test_state__of_another_name_is_usage(pathprof, example, words):
    done = pathprof("report", example, f"--state={words}")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("pathprof report: --state takes ")
