# SPDX-License-Identifier: MIT
"""PERF_EVENT_IOC_REFRESH on a software clock freezes whole machines on Linux 6.16 and 6.17: no way to ask for a clock
may come to it. Everything runs under a filter that kills whoever makes that call, on any event."""

import json

import pytest
from refused import needs_seccomp, old_kernel  # noqa: F401 (a fixture)
from refused import rule, seccomp

pytestmark = needs_seccomp

IOC_REFRESH = 0x2402
SIGSYS = 31
WORK = ["/usr/bin/python3", "-S", "-c", "import threading\nwork = lambda: sum(range(2000000))\n"
        "thread = threading.Thread(target=work)\nthread.start(); work(); thread.join()"]
NAMES = ["cpu-clock", "task-clock", "cpu-clock:u", "task-clock:u", "cpu-clock:k", "PERF_COUNT_SW_CPU_CLOCK",
         "PERF_COUNT_SW_TASK_CLOCK", "perf::CPU-CLOCK", "perf::TASK-CLOCK:u", "software/config=0/",
         "software/config=1/", "software/config=0/u", "software/config=0,period=1000000/", "cpu-clock/freq=500/",
         "task-clock/period=999983/u"]
ASYNC = "--trigger=perf-async"


def killing():
    return seccomp(rule("ioctl", None, argument=1, value=IOC_REFRESH))


def test_refresh__the_filter_kills(record):
    """Else the rest of this file could not fail."""
    done, _ = record(WORK, ASYNC, "-e", "page-faults/period=1/", preexec_fn=killing())
    if done.returncode == 125 and "Cannot sample" in done.stderr:
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 128 + SIGSYS


@pytest.mark.parametrize("name", NAMES)
def test_refresh__never_for_a_clock_by_its_name(record, report, name):
    """Forced, it is refused and says why; not forced, it comes in another way."""
    for forced in ["-e", name, ASYNC], ["-e", f"page-faults:u,{name}", ASYNC], ["-e", name, ASYNC, "--inherit"]:
        done, directory = record(WORK, *forced, preexec_fn=killing())
        assert done.returncode == 2 and not directory.exists(), done.stderr
        bare = name.split("/")[0] if "config" not in name and "/" in name else name
        assert done.stderr.startswith(f"pathprof record: Cannot sample {bare.split(',')[0]}")
        assert "by perf-async: re-arming a software clock freezes Linux 6.16 and 6.17; perf-sigtrap" in done.stderr \
            or ":k" in name
    for options in [], ["--inherit"], ["--trigger=perf-sigtrap"], ["--trigger=cpu-clock"], ["--wall"]:
        done, directory = record(WORK, "-e", name, *options, name="other", preexec_fn=killing())
        if done.returncode in (2, 125) and ("not permitted" in done.stderr or ":k" in name or ":u" in name):
            continue
        assert done.returncode == 0, (options, done.stderr)
        assert {row["trigger"] for row in report(directory)["events"]} <= {"perf-sigtrap", "cpu-timer"}


@pytest.mark.parametrize("options", [
    [], ["-F", "500"], ["-e", "cycles"], ["-e", "cycles:u"], ["-e", "cpu-time"], ["--trigger=cpu-clock"],
    ["--trigger=cpu-clock", "-F", "500"], ["-e", "cpu-clock,task-clock,cpu-time"], ["--wall", "-e", "cpu-clock"]])
def test_refresh__never_for_what_stands_in_place_of_a_clock(record, report, pathprof, options):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if any(row["available"] for row in rows if row["name"] == "cycles"):
        pytest.skip("SKIPPED: a PMU's counters are re-armed rightly")
    done, directory = record(WORK, *options, preexec_fn=killing())
    if done.returncode == 125 and "cpu-clock" in " ".join(options):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert report(directory)["samples"] > 0


@pytest.mark.plain_only
@pytest.mark.parametrize("name", [name for name in NAMES if ":k" not in name])
def test_refresh__never_where_a_kernel_has_no_sigtrap(record, report, old_kernel, name):  # noqa: F811
    """There the ladder would come to the asynchronous signal, did it take clocks."""
    done, directory = record(WORK, "-e", name, env=old_kernel, preexec_fn=killing())
    assert done.returncode == 0, done.stderr
    assert "In its place cpu-time is, by cpu-timer" in done.stderr.splitlines()[0]
    event, = report(directory)["events"]
    assert (event["name"], event["trigger"]) == ("cpu-time", "cpu-timer") and event["samples"] > 0
    for options in ["--trigger=cpu-clock"], ["--trigger=perf-sigtrap"], [ASYNC]:
        done, _ = record(WORK, "-e", name, *options, name="forced", env=old_kernel, preexec_fn=killing())
        assert done.returncode in (2, 125), done.stderr
