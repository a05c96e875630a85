# SPDX-License-Identifier: MIT
"""`record --wall`: waits with their stacks, read from outside, against what the program did."""

import errno
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import PATHPROF, ROOT, SECONDS
from refused import CALLS, forbid

PROGRAM = ROOT / "tests/programs/wall/waits.py"

# Installs a filter that answers perf_event_open with EPERM, as container runtimes do, then execs.
NO_PERF = r"""
import ctypes, os, platform, struct, sys
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
filter = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(filter), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


BESIDE = """
import mmap, time
def touch():
    memory = mmap.mmap(-1, 4096 * 3000)
    for page in range(3000):
        memory[page * 4096] = 1
def work():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
def waits():
    time.sleep(1)
touch()
work()
waits()
"""


def line_of(kind):
    """The number of the line marked HERE in the function of a kind."""
    text = PROGRAM.read_text().splitlines()
    first = text.index(f"def wait_{kind}():")
    return next(i + 1 for i in range(first, len(text)) if "# HERE" in text[i])


def wall(record, report, python, kind, seconds="1", status=0, options=()):
    done, directory = record([python, PROGRAM, kind, seconds], "--wall", *options)
    assert done.returncode == status, done.stderr
    return report(directory), json.loads(done.stdout), directory


def share_at(document, kind, state="waiting"):
    """ns of a state on the line where a kind waits."""
    return sum(row["total_count"] for row in document["lines"]
               if row["file"] == str(PROGRAM) and row["line"] == line_of(kind)
               and row.get("state", state) == state)


@pytest.mark.parametrize("kind", ["sleep", "lock", "queue", "socket", "child"])
def test_wall__a_wait_is_on_its_line_for_as_long_as_it_lasted(record, report, python, kind):
    document, truth, _ = wall(record, report, python, kind)
    found = share_at(document, kind)
    assert 0.9e9 < found < 1.05 * truth["wall_ns"], document["waits"]
    assert document["events"][0]["name"] == "wall-time"
    assert document["waits"]["seen"] > 0


def test_wall__shares_of_running_and_waiting_are_right_and_sum_to_the_life(record, report, python):
    document, truth, _ = wall(record, report, python, "mixed", "3")
    main = next(thread for thread in document["threads"] if thread["tid"] == thread["pid"])
    states, life = main["states"], truth["wall_ns"]
    # The start-up is there as well; what is stated is the program's own.
    running = states.get("running", 0) + states.get("gil", 0)
    assert share_at(document, "mixed") == pytest.approx(1.8e9, rel=0.15)
    assert 1.0e9 < running < 1.6e9
    assert sum(states.values()) == pytest.approx(life, rel=0.15)
    # To the nanosecond but for the ends: CPU time and waits are all of the life.
    recorded = document["recording"]["end_ns"] - document["recording"]["start_ns"]
    assert document["events"][0]["count"] == pytest.approx(recorded, rel=0.05)


@pytest.mark.parametrize("polled", [False, True], ids=["records", "polled"])
def test_wall__a_hung_worker_is_there_when_the_program_is_killed(record, report, python, polled):
    """A wait that has not ended when the recording does lasts to its end: by switch records and by polling."""
    if polled and not CALLS:
        pytest.skip("SKIPPED: unknown system call numbers")
    how = {"preexec_fn": forbid(errno.EPERM)} if polled else {}
    done, directory = record([python, PROGRAM, "forever", "1"], "--wall", **how)
    assert done.returncode == 128 + 9
    document = report(directory)
    assert any("polling /proc" in notice for notice in document["notices"]) == polled
    assert share_at(document, "forever") == pytest.approx(1e9, rel=0.2)
    # Named although it never samples and never comes to its end; and no thread is made up.
    assert [row["name"] for row in document["threads"] if row["tid"] != row["pid"]] == ["hung"]
    # It is one wait, and ends with the recording.
    worker, = [thread for thread in document["threads"] if thread["tid"] != thread["pid"]]
    assert 0.8e9 < worker["waited_ns"] < 1.2e9


def test_wall__a_wait_longer_than_the_window_is_cut_at_both_ends(record, report, python):
    document, _, directory = wall(record, report, python, "sleep", "1.5",
                                  options=("--delay=0.3", "--duration=0.4"))
    main, = document["threads"]
    # A busy machine ends the window late, but not after the second that it leaves.
    assert 0.35e9 < share_at(document, "sleep") < 1.15e9
    assert share_at(document, "sleep") <= main["waited_ns"] < 1.15e9


def test_wall__waits_for_the_interpreter_lock_are_told_apart(record, report, python):
    asked = subprocess.run([python, "-c", "import sysconfig as s; "
                            "print(s.get_config_var('Py_GIL_DISABLED'))"],
                           capture_output=True, text=True, check=True)
    if asked.stdout.strip() == "1":
        pytest.skip("no interpreter lock")
    document, truth, directory = wall(record, report, python, "gil", "2")
    states = {row["state"]: row["count"] for row in document["states"]}
    # One of three has the lock; the two others wait for it, or for a CPU when they get it.
    assert 0.8e9 < states["gil-wait"] < 4.5e9
    # Of a busy machine they have what they get, and the timer merges ticks of it.
    assert 0.4 * truth["cpu_ns"] < states["gil"] < 1.5 * truth["cpu_ns"]
    assert states.get("running", 0) < 0.1 * states["gil"]
    split = report(directory, "--split-state")
    rows = [row for row in split["lines"] if row["state"] == "gil-wait"]
    assert all("state" in row for row in split["functions"] + split["lines"])
    assert sum(row["self_count"] for row in rows) == states["gil-wait"]
    only = report(directory, "--state=gil-wait")
    assert sum(row["self_count"] for row in only["functions"]) == states["gil-wait"]
    assert all("state" not in row for row in only["functions"])
    assert truth["wall_ns"] > 0
    # Nothing in a worker waits but for the lock or a CPU, however busy the machine is.
    workers = [row["states"] for row in document["threads"] if row["tid"] != row["pid"]]
    assert len(workers) == 3
    lock = sum(states.get("gil-wait", 0) for states in workers)
    plain = sum(states.get("waiting", 0) for states in workers)
    unseen = sum(states.get("unseen", 0) for states in workers)
    assert plain < 0.05 * lock and unseen < 0.25 * lock, workers


def test_wall__short_waits_count_in_full(record, report, python):
    document, truth, _ = wall(record, report, python, "naps", "3")
    main = next(thread for thread in document["threads"] if thread["tid"] == thread["pid"])
    waited = sum(main["states"].get(state, 0)
                 for state in ("gil-wait", "runnable", "waiting", "unseen"))
    assert waited == main["waited_ns"]  # to the nanosecond
    found = {row["name"].split(".")[-1]: row["total_count"] for row in document["functions"]}
    assert found["rest"] == pytest.approx(truth["rest_ns"], rel=0.1)
    # A sleep and what follows it until there is a CPU: the program saw both.
    assert found["nap"] + main["states"].get("unseen", 0) > 0.85 * truth["nap_ns"]
    assert found["nap"] < 1.15 * truth["nap_ns"]


def test_wall__many_threads_are_seen_within_the_readers_share(record, report, python):
    document, truth, directory = wall(record, report, python, "many", "3")
    waits, life = document["waits"], truth["wall_ns"]
    assert waits["waited_ns"] > 0.9 * 100 * life
    # Not every wait is looked at; those that are stand for all.
    estimated = sum(row["count"] for row in document["states"] if row["state"] == "waiting")
    assert estimated == pytest.approx(waits["waited_ns"], rel=5 / waits["seen"] ** 0.5)
    workers = [thread for thread in document["threads"] if thread["tid"] != thread["pid"]]
    assert len(workers) == 100
    assert all(0.8 * life < thread["waited_ns"] < 1.1 * life for thread in workers)


def test_wall__without_perf_events_proc_is_polled_and_it_is_said(tmp_path, report, python):
    directory = tmp_path / "recording"
    done = subprocess.run(
        [sys.executable, "-c", NO_PERF, PATHPROF, "record", "--wall", "-e", "cpu-time", "-o",
         directory, "--", python, PROGRAM, "sleep", "1"],
        capture_output=True, text=True, timeout=SECONDS, check=False)
    if "AssertionError" in done.stderr:
        pytest.skip("no seccomp filter can be made here")
    assert done.returncode == 0, done.stderr
    assert "polling /proc" in done.stderr
    document = report(directory)
    assert share_at(document, "sleep") == pytest.approx(1e9, rel=0.2)


def test_wall__babeltrace_archives_and_exports_have_the_waits(pathprof, record, report, babeltrace,
                                                              python, tmp_path):
    document, _, directory = wall(record, report, python, "sleep", "0.5")
    lines = [line for line in babeltrace(directory) if re.search(r"[ )]wait: ", line)]
    of_its_own = [line for line in lines if not re.search(r"duration_ns = 0\b", line)]
    assert len(of_its_own) == document["waits"]["seen"]
    assert sum(" thread_waits: " in line for line in babeltrace(directory)) >= 1
    archive = tmp_path / "recording.pp"
    assert pathprof("archive", directory, "-o", archive).returncode == 0
    assert report(archive) == document
    stacks = pathprof("export", directory, "--format=collapsed").stdout
    weights = [int(line.rsplit(" ", 1)[1]) for line in stacks.splitlines()
               if re.search(r"wait_sleep \([^;]*\);\[waiting\] \d+$", line)]
    assert sum(weights) == pytest.approx(0.5e9, rel=0.2)
    whole = sum(row["count"] for row in document["states"])
    assert sum(int(line.rsplit(" ", 1)[1]) for line in stacks.splitlines()) == whole
    scope = json.loads(pathprof("export", directory, "--format=speedscope").stdout)
    assert sum(sum(profile["weights"]) for profile in scope["profiles"]) == whole
    rows = [json.loads(row) for row in
            pathprof("export", directory, "--format=jsonl").stdout.splitlines()]
    slept = [row for row in rows if row["state"] == "waiting" and
             row["frames"][-1]["function"] == "wait_sleep"]
    assert sum(row["count"] for row in slept) == pytest.approx(0.5e9, rel=0.2)
    page = tmp_path / "page.html"
    assert pathprof("export", directory, "--format=flamegraph", "-o", page).returncode == 0
    assert "[waiting]" in page.read_text()


def test_wall__delay_and_duration_cut_waits(record, report, python):
    document, _, directory = wall(record, report, python, "sleep", "2",
                                  options=("--delay=0.5", "--duration=0.5"))
    assert share_at(document, "sleep") == pytest.approx(0.5e9, rel=0.15)
    assert json.loads((directory / "manifest.json").read_text())["complete"]


@pytest.mark.parametrize("options", [("--delay=1",), ("--delay=1", "--duration=0.5")])
def test_wall__waits_of_the_delay_are_not_counted(record, report, python, options):
    document, truth, _ = wall(record, report, python, "naps", "2", options=options)
    window = 0.5e9 if len(options) > 1 else truth["wall_ns"] - 0.9e9
    assert 0.3e9 < document["waits"]["waited_ns"] < 1.1 * window
    assert document["events"][0]["count"] < 1.1 * window
    assert sum(row["count"] for row in document["states"]) < 1.1 * window


@pytest.mark.parametrize("events, clock", [
    (["cpu-time,page-faults/period=1/"], 0), (["page-faults/period=1/", "cpu-clock"], 1),
    (["page-faults/period=1/,cpu-clock:k,task-clock,cpu-time"], 2)])
def test_wall__waits_are_the_clocks_and_other_events_stand_beside_it(
        record, report, pathprof, python, tmp_path, events, clock):
    """A second of waiting, 0.3 s of work and 3,000 page faults: each is of its own event alone."""
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not all(row["available"] for row in rows if row["name"] in ("page-faults", "cpu-clock")):
        pytest.skip("SKIPPED: no perf events here")
    if ":k" in "".join(events) and os.geteuid():
        pytest.skip("SKIPPED: the kernel's side is root's")
    script = tmp_path / "beside.py"
    script.write_text(BESIDE)
    options = [word for event in events for word in ("-e", event)]
    done, directory = record([python, "-S", script], "--wall", *options)
    assert done.returncode == 0, done.stderr
    document = report(directory)
    names = [name.split("/")[0] for name in ",".join(events).split(",")]
    names[clock] = "wall-time"
    assert [row["name"] for row in document["events"]] == names
    manifest = json.loads((directory / "manifest.json").read_text())
    assert (manifest["wall"]["event"], document["waits"]["event"]) == ("wall-time", "wall-time")
    assert {row["event"] for row in document["states"] if row["state"] == "waiting"} == {"wall-time"}

    def count(event, function, key="self_count"):
        return sum(row[key] for row in document["functions"]
                   if (row["event"], row["name"]) == (event, function))
    assert 0.95e9 < count("wall-time", "waits") < 1.5e9
    on_cpu = sum(row["self_count"] for row in report(directory, "--split-state")["functions"]
                 if row["name"] == "work" and row["event"] == "wall-time"
                 and row["state"] in ("running", "gil"))
    # What it was preempted is beside it, and a busy machine's timer merges ticks.
    assert 0.05e9 < on_cpu < 0.6e9
    assert 2900 <= count("page-faults", "touch") <= 3100  # and what the lines before and behind do
    assert count("page-faults", "waits") < 30
    assert [row["waits"] > 0 for row in document["events"]] == [name == "wall-time" for name in names]
    assert sum(row["samples"] - row["waits"] for row in document["events"]) == document["samples"]
    for row in document["events"]:
        assert row["samples"] == sum(each["self"] for each in document["functions"]
                                     if each["event"] == row["name"])
    wall_time = document["events"][clock]
    recorded = document["recording"]["end_ns"] - document["recording"]["start_ns"]
    assert wall_time["count"] == pytest.approx(recorded, rel=0.05)
    folded = pathprof("export", directory, "--format=collapsed", "--event=page-faults").stdout
    assert folded and "[waiting]" not in folded
    text = pathprof("report", directory).stdout
    assert "\nwall-time: " in text and "\npage-faults: " in text


def test_wall__needs_a_clock_and_no_gil(pathprof):
    for events in ["page-faults", *["page-faults,cpu-clock:k"] * (os.geteuid() == 0)]:
        done = pathprof("record", "--wall", "-e", events, "--", "true")
        assert done.returncode == 2
        assert "--wall needs a clock for threads that run, among the events" in done.stderr
    done = pathprof("record", "--wall", "--gil", "--", "true")
    assert done.returncode == 2 and "--gil" in done.stderr


def test_wall__takes_the_clock_of_the_trigger(record, report, pathprof, python):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not all(row["available"] for row in rows if row["name"] == "cpu-clock"):
        pytest.skip("SKIPPED: no perf events here")
    document, _, _ = wall(record, report, python, "sleep", "0.3", options=("--trigger=cpu-clock",))
    assert document["events"][0]["name"] == "wall-time"
    assert document["events"][0]["trigger"] == "perf-sigtrap"
    assert share_at(document, "sleep") > 0.25e9


@pytest.mark.parametrize("options", [["-e", "cpu-time"], ["--wall"]])
def test_inherit__is_refused_where_nothing_is_inherited(pathprof, tmp_path, options):
    done = pathprof("record", "--inherit", *options, "-o", tmp_path / "none", "--", "true")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "--inherit is for perf events" in done.stderr
    assert not (tmp_path / "none").exists()


def test_waits__a_report_without_them_says_what_records_them(record, report, pathprof, python):
    events = json.loads(pathprof("list", "--json").stdout)["events"]
    two = any(row["name"] == "cpu-clock" and row["available"] for row in events)
    done, directory = record([python, "-c", "sum(range(3000000))"], "-e",
                             "cpu-time,cpu-clock" if two else "cpu-time")
    assert done.returncode == 0, done.stderr
    notices = [notice for notice in report(directory)["notices"] if "Waiting" in notice]
    assert len(notices) == 1 and "--wall" in notices[0]
    text = pathprof("report", directory, "--state=waiting")
    assert text.returncode == 0 and "Nothing was in that state" in text.stdout
    document = report(directory, "--state=waiting")
    assert document["functions"] == document["lines"] == []


def test_gil__keeps_only_samples_with_the_lock(record, report, python):
    program = ("import threading, time, zlib\n"
               "data = bytes(1 << 24)\n"
               "def native():\n"
               "    end = time.monotonic() + 1\n"
               "    while time.monotonic() < end: zlib.crc32(data)\n"
               "thread = threading.Thread(target=native); thread.start()\n"
               "end = time.monotonic() + 1\n"
               "while time.monotonic() < end: pass\n"
               "thread.join()\n")
    done, directory = record([python, "-c", program], "--gil", "-e", "cpu-time")
    assert done.returncode == 0, done.stderr
    document = report(directory)
    by_file = {row["name"]: row["self"] for row in document["functions"]
               if row["file"] == "<string>"}
    assert by_file["<module>"] > 20
    assert by_file.get("native", 0) < 0.2 * by_file["<module>"]
    assert [row["state"] for row in document["states"]] == ["gil"]
    assert any("--gil" in notice for notice in document["notices"])
    done, directory = record([python, "-c", program], "-e", "cpu-time", name="all")
    states = {row["state"]: row["samples"] for row in report(directory)["states"]}
    assert states["gil"] > 20 and states["running"] > 20
