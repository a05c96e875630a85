# SPDX-License-Identifier: MIT
"""What is in the files while the program runs: after a flush, and when --duration is over."""

import json
import shutil
import subprocess
import time

import pytest

from conftest import PATHPROF, SECONDS

PYTHON = "/usr/bin/python3"

needs_babeltrace = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="no babeltrace2")

# A little work five times a second, until the file `end` is there; a line of `log` each time.
WORKER = """
import os, sys, time
with open(sys.argv[1] + "/log", "w", buffering=1) as log:
    while not os.path.exists(sys.argv[1] + "/end"):
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        print(time.time(), time.process_time(), file=log)
        time.sleep(0.18)
"""


def wait_until(condition):
    """Wait for something that must come; it is the deadline alone that is a time."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def worker(tmp_path):
    """A function that starts the recorder with WORKER; both have ended when the test has."""
    started = []

    def run(*options):
        process = subprocess.Popen(
            [PATHPROF, "record", "-e", "cpu-time", "-o", tmp_path / "r", *options, "--", PYTHON,
             "-c", WORKER, tmp_path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process, tmp_path / "r"

    yield run
    (tmp_path / "end").touch()
    for process in started:
        process.communicate(timeout=SECONDS)


def test_flush__a_recording_that_goes_on_is_let_alone_and_says_so(worker, pathprof, tmp_path):
    process, directory = worker()
    wait_until(lambda: (tmp_path / "log").exists())
    second = pathprof("record", "-o", directory, "--", "touch", tmp_path / "ran")
    assert second.returncode == 125
    assert second.stderr == (f"pathprof record: {directory} is being recorded: wait for its end, or name "
                             "another place with -o\n")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "r.old").exists()
    text = pathprof("report", directory).stdout
    assert " by now\n" in text
    assert "It is being recorded" in text
    live = json.loads(pathprof("report", "--json", directory).stdout)["recording"]
    assert live["live"] and not live["complete"]
    assert live["end_ns"] > live["start_ns"]
    process.kill()  # its lock goes with it
    process.wait(SECONDS)
    killed = pathprof("report", directory).stdout
    assert "or its recorder was killed" in killed.replace("\n  ", " ")
    assert " by now" not in killed
    assert pathprof("record", "-o", directory, "--", "true").returncode == 0
    assert (tmp_path / "r.old").exists()


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def stream_bytes(directory):
    stream = directory / "ust" / "slot_0000"
    return stream.stat().st_size if stream.exists() else 0


def read_back(directory, babeltrace):
    return sum(" sample:cpu-time:" in line or " sample_wide:cpu-time:" in line
               for line in babeltrace(directory))


@needs_babeltrace
def test_flush__a_killed_recorder_leaves_the_samples_until_the_last_flush(worker, report,
                                                                        babeltrace, tmp_path):
    process, directory = worker()
    sizes = {0}
    # Two flushes: the second one's packet goes on where the first one's ended.
    wait_until(lambda: sizes.add(stream_bytes(directory)) or len(sizes) == 3)
    process.kill()
    process.wait(SECONDS)
    flushed = (directory / "ust" / "slot_0000").stat().st_mtime
    worked = [cpu for at, cpu in (map(float, line.split())
                                  for line in (tmp_path / "log").read_text().splitlines())
              if at < flushed]
    got = report(directory)
    samples = sum(thread["samples"] for thread in got["threads"])
    assert samples == read_back(directory, babeltrace)
    assert len(worked) > 10
    # Every tick of its CPU time but few: those of its start and those that fell into a wait.
    assert samples > 0.5 * worked[-1] / (manifest(directory)["tick_ns"] / 1e9)
    text = subprocess.run([PATHPROF, "report", directory], capture_output=True, text=True,
                          timeout=SECONDS, check=True).stdout
    assert "not complete" in text and "packets are missing" not in text


def is_over(process, directory):
    return (directory / "manifest.json").exists() and manifest(directory)["complete"] and \
        process.poll() is None


@needs_babeltrace
def test_duration__the_recording_stands_while_the_program_runs_on(worker, report, babeltrace,
                                                                  tmp_path):
    process, directory = worker("--duration", "1s")
    wait_until(lambda: is_over(process, directory))
    early, between = report(directory), manifest(directory)
    samples = sum(thread["samples"] for thread in early["threads"])
    assert samples > 0 and samples == read_back(directory, babeltrace)
    assert 1e9 <= between["end_ns"] - between["start_ns"]
    # One thread cannot have more CPU time than the window is long.
    count = between["events"][0]["count"]
    assert samples * between["tick_ns"] / 2 < count < between["end_ns"] - between["start_ns"]
    text = subprocess.run([PATHPROF, "report", directory], capture_output=True, text=True,
                          timeout=SECONDS, check=True).stdout
    assert "not complete" not in text and "missing" not in text and "of 1 process" in text
    assert process.poll() is None
    (tmp_path / "end").touch()
    assert process.wait(SECONDS) == 0
    after = manifest(directory)
    assert after["complete"] and after["end_ns"] > between["end_ns"]
    assert after["events"][0]["count"] == count
    got = report(directory)
    assert sum(thread["samples"] for thread in got["threads"]) == read_back(directory, babeltrace)
    assert [p["recorded"] for p in got["processes"]] == [True]


def test_duration__a_recorder_killed_after_it_leaves_a_complete_recording(worker, report):
    process, directory = worker("--duration", "300ms")
    wait_until(lambda: is_over(process, directory))
    process.kill()
    process.wait(SECONDS)
    assert manifest(directory)["complete"]
    assert sum(thread["samples"] for thread in report(directory)["threads"]) > 0


# Faults without a pause, for longer than any window below.
FAULTS = """
import mmap, time
until = time.monotonic() + 1.2
while time.monotonic() < until:
    with mmap.mmap(-1, 200 * 4096) as pages:
        for i in range(200):
            pages[i * 4096] = 1
"""


@pytest.mark.parametrize("options", [["--delay", "300ms"], ["--duration", "300ms"],
                                     ["--delay", "300ms", "--duration", "300ms"]])
def test_window__a_perf_event_counts_in_the_window_alone(record, pathprof, options):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not {r["name"]: r["available"] for r in rows}["page-faults"]:
        pytest.skip("page-faults cannot be counted here")
    done, directory = record([PYTHON, "-S", "-c", FAULTS], "-e", "page-faults", "-c", "50",
                             *options)
    assert done.returncode == 0, done.stderr
    got = manifest(directory)
    samples = int(done.stderr.split("pathprof: ")[-1].split()[0])
    assert samples > 20
    assert "merged" not in got["lost"], got["lost"]
    # Overflows at the edges, and what the exit's faults may hold.
    lost = sum(got["lost"].values())
    assert abs(got["events"][0]["count"] / 50 - samples - lost) <= 3 + samples / 20


@pytest.mark.parametrize("event", ["cpu-time", "page-faults"])
def test_window__that_never_begins_holds_nothing(record, pathprof, event):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not {r["name"]: r["available"] for r in rows}[event]:
        pytest.skip(f"{event} cannot be counted here")
    done, directory = record([PYTHON, "-c", "sum(range(2000000))"], "-e", event, "--delay", "1h")
    assert "pathprof: 0 samples" in done.stderr
    assert manifest(directory)["events"][0]["count"] == 0
    assert manifest(directory)["lost"] == {}
    assert "Nothing was sampled: " in done.stderr and "3600 s after the start (--delay)" in done.stderr
    text = pathprof("report", directory).stdout
    assert "\nWindow     none: sampling was to begin 3600 s after the start (--delay)\n" in text
    assert text.endswith("There are no samples: record with a shorter --delay.\n")
    assert "Record for longer" not in text
    window = json.loads(pathprof("report", "--json", directory).stdout)["recording"]["window"]
    assert window == {"delay_ns": 3600 * 10**9, "duration_ns": 0, "begin_ns": 0, "end_ns": 0}


def test_window__stands_in_the_report(record, pathprof):
    code = "import time\nwhile time.process_time() < 0.6: pass"
    _, directory = record([PYTHON, "-S", "-c", code], "-e", "cpu-time", "--delay=100ms", "--duration=200ms")
    got = json.loads(pathprof("report", "--json", directory).stdout)["recording"]
    window = got["window"]
    assert (window["delay_ns"], window["duration_ns"]) == (100_000_000, 200_000_000)
    assert got["start_ns"] + 100_000_000 <= window["begin_ns"]
    assert window["begin_ns"] + 200_000_000 <= window["end_ns"] <= got["end_ns"]
    assert "\nWindow     from " in pathprof("report", directory).stdout
    _, directory = record([PYTHON, "-S", "-c", code], "-e", "cpu-time", name="whole")
    assert "window" not in json.loads(pathprof("report", "--json", directory).stdout)["recording"]
    assert "\nWindow" not in pathprof("report", directory).stdout


def test_window__the_count_of_cpu_time_begins_after_the_delay(record):
    code = "import time\nwhile time.process_time() < 0.9: pass"
    done, directory = record([PYTHON, "-S", "-c", code], "-e", "cpu-time", "--delay", "100ms")
    got = manifest(directory)
    samples = int(done.stderr.split("pathprof: ")[-1].split()[0])
    count = got["events"][0]["count"]
    # The window may begin late, never early: the upper bound is the sharp one.
    assert 0.9e9 - 0.2e9 <= count < got["end_ns"] - got["start_ns"] - 0.1e9 + got["tick_ns"]
    assert 0.5 * count < samples * got["tick_ns"] < count + 3 * got["tick_ns"]
