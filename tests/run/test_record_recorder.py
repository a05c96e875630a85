# SPDX-License-Identifier: MIT
"""The recorder's side of a recording, with an agent that ticks by hand."""

import json
import os
import re
import resource
import shutil
import subprocess

import pytest

from conftest import BUILD, PATHPROF, SECONDS

FAKE = BUILD / "tests" / "programs" / "recorder" / "libfake-agent.so"
SAMPLE = re.compile(r"sample(_wide)?:cpu-time: .*count = (\d+)")

needs_babeltrace = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="no babeltrace2")


def record_by_hand(directory, command, *options, **settings):
    """Record with the fake agent; `settings` become FAKE_ variables."""
    environment = os.environ | {"PATHPROF_AGENT": str(FAKE)}
    environment |= {f"FAKE_{name.upper()}": str(value) for name, value in settings.items()}
    return subprocess.run([PATHPROF, "record", "-e", "cpu-time", "-o", directory, *options, "--",
                           *command], env=environment, capture_output=True, text=True,
                          timeout=SECONDS, stdin=subprocess.DEVNULL, check=False)


def counts(directory):
    """The counts of all samples, in order; a word on stderr fails."""
    done = subprocess.run(["babeltrace2", directory / "ust"], capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [(bool(wide), int(count)) for wide, count in SAMPLE.findall(done.stdout)]


def expected(samples):
    return [(i % 10 == 0, 1000 + i + (0 if i % 10 else 1 << 40)) for i in range(samples)]


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


@needs_babeltrace
@pytest.mark.parametrize("samples", [0, 1, 1011, 10000])
@pytest.mark.parametrize("left_open", [0, 1])
def test_record__every_sample_is_read_back(tmp_path, samples, left_open):
    done = record_by_hand(tmp_path / "r", ["true"], samples=samples, open=left_open)
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "r") == expected(samples)
    assert f"pathprof: {samples} sample" in done.stderr
    assert manifest(tmp_path / "r")["complete"]


@needs_babeltrace
def test_record__many_threads_share_few_streams(tmp_path):
    done = record_by_hand(tmp_path / "r", ["true"], "--memory", "8M", samples=3, slots=2000)
    assert done.returncode == 0, done.stderr
    # The recorder frees slots while threads come and go; who found none is counted.
    assert "2000 threads" in done.stderr
    assert len(counts(tmp_path / "r")) == 6000
    assert len(list((tmp_path / "r" / "ust").glob("slot_*"))) <= 32


def test_record__a_wrong_secret_is_hung_up_on(tmp_path):
    done = record_by_hand(tmp_path / "r", ["true"], secret=1, samples=5)
    assert done.returncode == 0
    assert "did not load the agent" in done.stderr
    assert not list((tmp_path / "r" / "ust").glob("slot_*"))


def test_record__a_child_is_refused(tmp_path):
    done = record_by_hand(tmp_path / "r", ["true"], child=1, samples=5)
    assert done.returncode == 0
    assert not list((tmp_path / "r" / "ust").glob("slot_*"))


def test_record__an_interpreter_that_cannot_be_read_is_said(tmp_path):
    done = record_by_hand(tmp_path / "r", ["true"], samples=1)
    assert "/fake/python3 are not recorded: 3.13 is not known" in done.stderr
    assert manifest(tmp_path / "r")["interpreters"] == [
        {"pid": manifest(tmp_path / "r")["root_pid"], "name": "CPython 3.13.0",
         "path": "/fake/python3", "problem": "3.13 is not known",
         "has_no_lock": False}]


def test_record__a_full_disk_is_counted_and_said(tmp_path):
    """A file size limit cuts writes as a full disk does; the program must not feel it."""
    command = 'ulimit -S -f 24; exec "$@"'
    environment = os.environ | {"PATHPROF_AGENT": str(FAKE), "FAKE_SAMPLES": "10000"}
    done = subprocess.run(["sh", "-c", command, "sh", PATHPROF, "record", "-e", "cpu-time", "-o",
                           tmp_path / "r", "--", "sh", "-c", "exit 3"], env=environment,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 3, done.stderr
    lost = manifest(tmp_path / "r")["lost"]["disk"]
    assert lost > 0 and not manifest(tmp_path / "r")["complete"]
    assert re.search(r"lost +\d+ disk", done.stderr)
    if shutil.which("babeltrace2"):
        assert len(counts(tmp_path / "r")) == 10000 - lost


def test_record__the_manifest_has_its_keys(tmp_path):
    record_by_hand(tmp_path / "r", ["sh", "-c", "exit 7"], samples=10)
    got = manifest(tmp_path / "r")
    assert got["version"] == 1 and got["complete"] is True and got["exit_status"] == 7
    assert got["command"] == ["sh", "-c", "exit 7"]
    assert got["clock"]["name"] == "monotonic" and got["start_ns"] < got["end_ns"]
    assert got["trigger"] == "cpu-timer" and got["lost"] == {} and got["degraded"] == {}
    event, = got["events"]
    assert event["name"] == "cpu-time" and event["unit"] == "ns"
    assert event["period"] == got["tick_ns"]
    assert got["overhead"]["recorder_ns"] > 0


def test_record__nothing_of_ours_is_left_in_the_directory(tmp_path):
    record_by_hand(tmp_path / "r", ["true"], samples=1)
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == ["manifest.json", "ust"]


def test_record__recordings_of_every_sort_make_way(record, tmp_path):
    """What --wall and the others leave is moved, and removed, again and again."""
    for options in (["--wall"], [], ["--wall"], ["-e", "cpu-time"], []):
        done, directory = record(["true"], *options, name="again")
        assert done.returncode == 0, done.stderr
        assert manifest(directory)["complete"]
    assert manifest(tmp_path / "again.old")["complete"]


@pytest.mark.plain_only  # sanitizers have an address space of their own
def test_record__what_cannot_start_costs_no_recording(record, tmp_path):
    for name in ("first", "second"):
        assert record(["true", name], name="r")[0].returncode == 0
    assert record(["true"], "-e", "page-faultz", name="r")[0].returncode == 2
    done, _ = record(["true"], name="r", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_AS, (200 << 20, 200 << 20)))
    assert done.returncode == 125
    assert "(ulimit -v)" in done.stderr and "--memory" in done.stderr
    assert record(["/nonexistent"], name="r")[0].returncode == 127
    assert manifest(tmp_path / "r")["command"] == ["true", "second"]
    assert manifest(tmp_path / "r.old")["command"] == ["true", "first"]
