# SPDX-License-Identifier: MIT
"""The kernel stops events that overflow too often: told as what it is, with the knob.

The limit is the whole machine's: it is lowered for about a second, and put back in all cases. On a
machine without a PMU only software clocks can be throttled; counters are in tests/hardware.
"""

import json
from pathlib import Path

import pytest

LIMIT = Path("/proc/sys/kernel/perf_event_max_sample_rate")
LOW = 1000  # overflows a second
PERIOD_NS = 250_000  # four times as often
KEY = "kernel_throttled"
SPIN = """
import threading
def spin():
    for _ in range(3000000):
        pass
thread = threading.Thread(target=spin)
thread.start()
spin()
thread.join()
"""


@pytest.fixture
def limit():
    """limit(rate): overflows a second that the kernel takes, until the test ends."""
    before = LIMIT.read_text()

    def lower(rate):
        try:
            LIMIT.write_text(str(rate))
        except OSError as error:
            pytest.skip(f"SKIPPED: {LIMIT} cannot be written: {error.strerror}")
    yield lower
    if LIMIT.read_text() != before:
        LIMIT.write_text(before)


@pytest.mark.plain_only
@pytest.mark.parametrize("more", [[], ["--inherit"]], ids=["thread", "inherit"])
@pytest.mark.parametrize("event", ["cpu-clock", "task-clock"])
def test_throttled__clock_is_told(record, report, pathprof, python, limit, event, more):
    limit(LOW)
    done, recording = record([python, "-c", SPIN], "-e", event, "-c", PERIOD_NS, *more)
    if "cannot be opened" in done.stderr or "Cannot sample" in done.stderr:
        pytest.skip(f"SKIPPED: no software clock here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    told = report(recording)
    lost, overflows = told["lost"], told["events"][0]["count"] / PERIOD_NS
    assert lost[KEY] > 0.4 * overflows
    assert lost.get("merged", 0) < 0.02 * overflows
    assert abs(told["samples"] + lost["total"] - overflows) < 4 + 0.05 * overflows
    manifest = json.loads((recording / "manifest.json").read_text())
    assert manifest["lost"][KEY] == lost[KEY]
    assert not any("% of what was counted" in note for note in manifest["notes"])
    text = pathprof("report", recording).stdout
    for place in (done.stderr, " ".join(text.split())):
        assert f"{lost[KEY]} " in place and "kernel.perf_event_max_sample_rate" in place
        assert "kernel.perf_cpu_time_max_percent" in place


def test_throttled__a_rate_below_the_limit_is_not(record, report, python, limit):
    limit(20 * LOW)
    done, recording = record([python, "-c", SPIN], "-e", "cpu-clock", "-c", 1_000_000)
    assert done.returncode == 0, done.stderr
    assert KEY not in report(recording)["lost"]


def test_throttled__page_faults_are_never(record, report, python, limit):
    """The kernel looks at the rate only where one occurrence overflows several times."""
    limit(LOW)
    done, recording = record([python, "-c", "held = [bytearray(1 << 18) for _ in range(100)]"],
                             "-e", "page-faults", "-c", 1)
    assert done.returncode == 0, done.stderr
    told = report(recording)
    assert told["samples"] > 4000 and KEY not in told["lost"]
