# SPDX-License-Identifier: MIT
"""Periods drawn at random: what samples stand for adds up, and a seed draws the same again.

By page faults, which happen one at a time: what a sample stands for is exactly the drawn period.
"""

import json
import re

import pytest

PERIOD, JITTER = 40, 20
FAULTS = "held = [bytearray(1 << 18) for _ in range(300)]"  # 64 pages each
SAMPLE = re.compile(r" sample:page-faults:u: .*, count = (\d+)")


@pytest.fixture
def drawn(record, report, pathprof, python):
    """drawn(OPTION...): (the report, what each sample stands for in order) of page faults."""
    def run(*options, name="recording"):
        done, recording = record([python, "-I", "-c", FAULTS], "-e", "page-faults:u",
                                 "--trigger", "perf-async", *options, name=name)
        if "Cannot sample" in done.stderr:
            pytest.skip(f"SKIPPED: no events by signal here: {done.stderr}")
        assert done.returncode == 0, done.stderr
        return report(recording), recording
    return run


def weights(babeltrace, recording):
    return [int(found[1]) for found in map(SAMPLE.search, babeltrace(recording)) if found]


def test_jitter__periods_are_drawn_and_add_up(drawn, babeltrace):
    told, recording = drawn("-c", PERIOD, "--jitter=yes", "--seed", "5")
    found, event = weights(babeltrace, recording), told["events"][0]
    manifest = json.loads((recording / "manifest.json").read_text())
    assert event["jitter"] == manifest["events"][0]["jitter"] == JITTER
    assert manifest["seed"] == 5
    assert len(found) == told["samples"] > 400 and told["lost"]["total"] == 0
    assert set(found) <= set(range(PERIOD - JITTER, PERIOD + JITTER + 1))
    assert len(set(found)) > JITTER  # evenly: 400 draws of 41 numbers
    # But for the first, that stands for the mean, and the last period.
    assert abs(sum(found) - event["count"]) <= 2 * PERIOD
    # Evenly drawn the mean is the period: 5 standard errors of JITTER / sqrt(3 n).
    mean = sum(found) / len(found)
    assert abs(mean - PERIOD) < 5 * JITTER / (3 * len(found)) ** 0.5
    assert sum(f["self_count"] for f in told["functions"]) == sum(found)


def test_jitter__a_seed_draws_the_same_again(drawn, babeltrace):
    one, again, other = (
        weights(babeltrace, drawn("-c", PERIOD, "--jitter=yes", "--seed", seed, name=name)[1])
        for name, seed in (("one", "5"), ("again", "5"), ("other", "6")))
    common = min(map(len, (one, again, other)))
    assert common > 400 and one[:common] == again[:common] != other[:common]


def test_jitter__is_the_default_where_no_period_was_asked_for(drawn, babeltrace):
    told, recording = drawn()
    assert told["events"][0]["period"] == 101 and told["events"][0]["jitter"] == 50
    assert len(set(weights(babeltrace, recording))) > 10
    for options in (["-c", PERIOD], ["--jitter=no"], ["-c", PERIOD, "--jitter=no"]):
        told, recording = drawn(*options)
        assert told["events"][0]["jitter"] == 0
        assert set(weights(babeltrace, recording)) == {told["events"][0]["period"]}


def test_jitter__what_cannot_draw_says_so(record, report, pathprof, python):
    done, recording = record([python, "-I", "-c", FAULTS], "-e", "page-faults:u", "--jitter=yes",
                             "--trigger", "perf-sigtrap")
    if "Cannot sample" in done.stderr:
        pytest.skip(f"SKIPPED: no sigtrap here: {done.stderr}")
    assert "page-faults:u has one period: only perf-async draws periods" in done.stderr
    assert report(recording)["events"][0]["jitter"] == 0
    done = pathprof("record", "--jitter=maybe", "--", python)
    assert done.returncode == 2 and "--jitter takes yes or no, not 'maybe'" in done.stderr
