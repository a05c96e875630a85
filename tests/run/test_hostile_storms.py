# SPDX-License-Identifier: MIT
"""Too much of everything: periods of 10 us, every page fault, ten thousand short threads."""

import json
import math
import os
import resource
import time

import pytest

from conftest import BUILD
from hostile import nr_samples

PROGRAMS = BUILD / "tests" / "programs" / "hostile"
STORM = """
import mmap, re, time
def queued():
    return re.search(r"SigQ:\\s*(\\d+)", open("/proc/self/status").read()).group(1)
before, pages = queued(), 0
end = time.process_time() + 1
while time.process_time() < end:
    with mmap.mmap(-1, 64 * 4096) as block:
        for at in range(0, len(block), 4096):
            block[at] = 1
            pages += 1
    [str(i) for i in range(300)]
print(before, queued(), pages)
"""
# The user's signal queue is compared: it must be nobody else's.
USER = 64123


def as_somebody(tmp_path):
    if os.geteuid() != 0:
        return {}
    os.chmod(tmp_path, 0o777)
    for parent in tmp_path.parents[:3]:
        if parent.name.startswith("pytest"):
            os.chmod(parent, 0o755)
    return {"user": USER, "group": USER, "extra_groups": []}


def accessible():
    """May the other user execute what was built?"""
    return os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in (BUILD, *BUILD.parents))


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


@pytest.mark.parametrize("options", [["-e", "cpu-clock", "-c", "10000"],
                                     ["-e", "page-faults", "-c", "1"]])
def test_storm__slows_counts_and_ends(record, tmp_path, options):
    if not accessible():
        pytest.skip("SKIPPED: another user cannot reach the build tree")
    done, directory = record(["/usr/bin/python3", "-c", STORM], *options, **as_somebody(tmp_path))
    assert done.returncode == 0, done.stderr
    before, after, pages = map(int, done.stdout.split())
    # Of our signals none waits: at most the one that the moment of the look holds.
    assert after <= before + 1
    got = manifest(directory)
    lost = got["lost"]
    samples = nr_samples(directory)
    assert samples > 100
    if "page-faults" in options:
        seen = samples + sum(lost.values())
        assert seen >= pages
        assert abs(got["events"][0]["count"] - seen) <= 0.01 * seen + 2
    else:  # a clock: what did not come to a sample is counted, or the period was raised and said
        assert set(lost) & {"throttled", "merged", "delayed"} or \
            got["events"][0]["period"] > 10000 and any("starve" in note for note in got["notes"])


def test_threads__ten_thousand_short_ones_have_their_share(record, report, tmp_path):
    if not accessible():
        pytest.skip("SKIPPED: another user cannot reach the build tree")
    program = [str(PROGRAMS / "short-threads"), "10000", "50"]
    started = time.monotonic()
    done, directory = record(program, "-e", "cpu-time", **as_somebody(tmp_path))
    took = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    cpu_ns, timers, timers_after, queued, queued_after, kib = map(int, done.stdout.split())
    assert timers_after == timers and queued_after <= queued + 1
    threads = report(directory)["threads"]
    longest = max(threads, key=lambda thread: thread["samples"])["tid"]
    main = manifest(directory)["root_pid"]
    short = sum(t["samples"] for t in threads if t["tid"] not in (longest, main))
    due = cpu_ns / manifest(directory)["tick_ns"]
    print(f"{short} samples of {due:.0f} due, {took:.1f} s, target {kib} KiB")
    # The tick is the draw: Poisson; the ends of the threads, after the timer, are in the truth.
    assert 0.5 * due - 4.5 * math.sqrt(due) <= short <= due + 4.5 * math.sqrt(due) + 3
    assert len(list((directory / "ust").iterdir())) < 200
    # Shared memory is the bound: 256 MiB, of which little is touched.
    assert kib < 96 * 1024
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400 * 1024
