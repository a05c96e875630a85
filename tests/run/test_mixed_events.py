# SPDX-License-Identifier: MIT
"""Events of several triggers in one recording: CPU timers beside perf events, one for each thread, by signal,
or inherited. Each sample says of which event and thread it is, and what is exact is counted exactly."""

import json
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="SKIPPED: no compiler")

THREADS, PAGES, WRITES = 4, 600, 250

# Each thread touches fresh pages one after the other, writes a watched word, and computes for a while.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

volatile int target __attribute__((aligned(8)));
static long tids[%(threads)d];

static void *work(void *argument)
{
	size_t bytes = %(pages)d * 4096;
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rusage before, after;
	struct timespec now;

	*(long *)argument = syscall(SYS_gettid);
	getrusage(RUSAGE_THREAD, &before);
	for (size_t i = 0; i < bytes; i += 4096)
		pages[i] = 1;
	getrusage(RUSAGE_THREAD, &after);
	if (after.ru_minflt - before.ru_minflt < %(pages)d)
		_exit(3);
	for (int i = 0; i < %(writes)d; i++)
		target = i;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < 120);
	return NULL;
}

int main(void)
{
	pthread_t threads[%(threads)d];

	for (int i = 0; i < %(threads)d; i++)
		pthread_create(&threads[i], NULL, work, &tids[i]);
	for (int i = 0; i < %(threads)d; i++) {
		pthread_join(threads[i], NULL);
		printf("%%ld\\n", tids[i]);
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """The program, and the name of the breakpoint on its word."""
    program = tmp_path_factory.mktemp("mixed") / "mixed"
    program.with_suffix(".c").write_text(
        PROGRAM % {"threads": THREADS, "pages": PAGES, "writes": WRITES})
    subprocess.run(["gcc", "-O1", "-no-pie", "-pthread", "-o", program,
                    program.with_suffix(".c")], check=True)
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    address, = [line.split()[0] for line in symbols.splitlines() if line.split()[2:] == ["target"]]
    return program, f"mem:0x{address.lstrip('0')}/4:w"


def refused(done):
    """Does this machine lack what the test is about?"""
    return done.returncode == 125 and any(words in done.stderr for words in (
        "no hardware", "forbidden", "closed to this user", "no overflow reached"))


def samples(pathprof, directory):
    """{(event, tid): samples}"""
    found = {}
    for line in pathprof("export", directory, "--format=jsonl").stdout.splitlines():
        row = json.loads(line)
        key = row["event"], row["tid"]
        found[key] = found.get(key, 0) + row["samples"]
    return found


FAULTS = "page-faults/period=1/"


@pytest.mark.parametrize("how, watched", [
    (["--trigger=perf-async", "-e", f"cpu-time,{FAULTS}"], False),
    (["--trigger=perf-async", "-e", f"{FAULTS}", "-e", "cpu-time,minor-faults/period=3/"], False),
    (["--inherit", "-e", f"cpu-time,{FAULTS}"], True),
    (["-e", f"{FAULTS},cpu-time"], True)])
def test_mixed__each_sample_is_of_its_event_and_thread(record, report, pathprof, mixed, how,
                                                       watched):
    program, breakpoint_name = mixed
    done, directory = record([program], *how, *["-e", breakpoint_name] * watched)
    if refused(done):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 0, done.stderr
    tids = list(map(int, done.stdout.split()))
    got = report(directory)
    events = {row["name"]: row for row in got["events"]}
    found = samples(pathprof, directory)
    assert sum(found.values()) == got["samples"] == sum(r["samples"] for r in got["events"])
    assert set(tids) | {got["processes"][0]["pid"]} >= {tid for _, tid in found}
    forced = how[0] == "--trigger=perf-async"
    beyond = 0 if forced else lost(got)
    for tid in tids:
        # A CPU timer merges ticks where the machine is busy, but never all of 120 ms.
        assert found["cpu-time", tid] * events["cpu-time"]["period"] <= 0.2e9
        assert found["cpu-time", tid] > 0
        # The stack and what is the thread's own besides.
        assert PAGES - beyond <= found["page-faults", tid] <= PAGES + 60
    assert {name: row["trigger"] for name, row in events.items()} == {
        name: "cpu-timer" if name == "cpu-time" else "perf-async" if forced else "perf-sigtrap"
        for name in events}
    # What each counted is in its own samples or lost; one overflow a thread at its very end.
    for name, row in events.items():
        if name != "cpu-time":
            assert abs(row["count"] - row["samples"] * row["period"]) <= \
                (len(got["threads"]) + beyond) * row["period"], (name, got["lost"])
    if watched:
        of_word = {tid: number for (name, tid), number in found.items() if name == breakpoint_name}
        assert of_word == dict.fromkeys(tids, WRITES)
        assert events[breakpoint_name]["count"] == THREADS * WRITES


SCRIPT = """
import mmap, threading, time
def touch(memory):
    for page in range(%(pages)d):
        memory[page * 4096] = 1
def compute():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
def worker():
    touch(mmap.mmap(-1, 4096 * %(pages)d))
    compute()
threads = [threading.Thread(target=worker) for _ in range(%(threads)d)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("how", ["--trigger=perf-async", "--inherit", None])
def test_mixed__each_sample_has_the_place_of_its_event(record, report, python, tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT % {"pages": PAGES, "threads": THREADS})
    done, directory = record([python, "-S", script], *[how] * bool(how),
                             "-e", f"{FAULTS},cpu-time")
    if refused(done):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 0, done.stderr
    got = report(directory)

    def count(event, function):
        return sum(row["self"] for row in got["functions"]
                   if (row["event"], row["name"]) == (event, function))
    beyond = 0 if how == "--trigger=perf-async" else lost(got)
    assert THREADS * PAGES - beyond <= count("page-faults", "touch") <= THREADS * PAGES + 100
    assert count("page-faults", "compute") < 60
    assert count("cpu-time", "compute") > count("cpu-time", "touch")


STORM = """
import ctypes, mmap, platform, time
SIGTRAP, SIGSETXID = 5, 33
call = {"x86_64": 13, "aarch64": 134}[platform.machine()]  # rt_sigaction, as the kernel has it
words = (ctypes.c_uint64 * 4)()
assert ctypes.CDLL(None).syscall(call, SIGTRAP, None, words, 8) == 0
mask = words[3 if platform.machine() == "x86_64" else 2]
print(mask >> (SIGSETXID - 1) & 1)
end = time.thread_time() + 1.5
while time.thread_time() < end:
    memory = mmap.mmap(-1, 4096 * 500)
    for page in range(500):
        memory[page * 4096] = 1
    memory.close()
"""


def test_mixed__no_tick_falls_into_the_capture_of_another_event(record, report, python):
    """The timer's signal waits until a SIGTRAP's handler is done, and the other way round."""
    done, directory = record([python, "-S", "-c", STORM], "-e", f"{FAULTS},cpu-time")
    if refused(done):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    got = report(directory)
    events = {row["name"]: row["samples"] for row in got["events"]}
    assert events["page-faults"] > 20000 and events["cpu-time"] > 20
    assert got["lost"].get("nested", 0) == 0


SHORT = """
import mmap, threading
def touch():
    memory = mmap.mmap(-1, 4096 * 60)
    for page in range(60):
        memory[page * 4096] = 1
for _ in range(200):
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
"""


def test_inherit__what_short_threads_leave_out_is_said(record, report, python):
    """Each begins with a whole period, of which it does not see the end; one for each thread sees its share."""
    event = ["-e", "page-faults/period=503/"]
    done, directory = record([python, "-S", "-c", SHORT], "--inherit", *event)
    if refused(done):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    inherited, = got["events"]
    assert "page-faults is one event for all threads: threads that are shorter than its period are sampled too rarely." \
        in got["notices"]
    said, = [notice for notice in got["notices"] if notice.endswith(
        "without --inherit they have it.")]
    part = int(said.removeprefix("page-faults: ").split(" %")[0])
    assert said == (
        f"page-faults: {part} % of what was counted is in no sample: one event serves all threads, and each of the "
        f"{len(got['threads'])} began with a whole period, so short threads show less than their share; without "
        "--inherit they have it.")
    unseen = 100 * (inherited["count"] - inherited["samples"] * inherited["period"]) / inherited["count"]
    assert abs(part - unseen) < 5 and part > 20, (part, unseen)
    done, directory = record([python, "-S", "-c", SHORT], *event, name="each")
    got = report(directory)
    assert not any("one event" in notice for notice in got["notices"])
    touched = sum(row["self"] for row in got["functions"] if row["name"] == "touch")
    assert touched > 0
    done, directory = record([python, "-S", "-c", "pass"], "--inherit", "-e", "page-faults", "--trigger=perf-async",
                             name="async")
    assert "page-faults is armed for each thread, not inherited: that goes with perf-sigtrap alone." in \
        report(directory)["notices"]


@pytest.mark.parametrize("how, threads", [
    (["-e", "page-faults"], 21), (["--trigger=perf-async", "-e", "page-faults,cpu-time"], 21),
    (["--inherit", "-e", "page-faults"], 1), (["-e", "cpu-time"], 0)], ids=["each", "async", "inherit", "timer"])
def test_arming__its_cost_and_what_it_left_uncovered_is_said(record, report, python, how, threads):
    script = SHORT.replace("200", "20")
    done, directory = record([python, "-S", "-c", script], *how)
    if refused(done):
        pytest.skip(f"SKIPPED: {done.stderr}")
    assert done.returncode == 0, done.stderr
    said = [re.fullmatch(
        r"(\d+) threads? waited ([\d.]+ \w+)(?: each)? for the recorder to open (?:its|their) perf events, "
        r"([\d.]+ \w+) at most; ([\d.]+ \w+) of CPU time went by before that, in no sample\.", notice)
            for notice in report(directory)["notices"] if "for the recorder to open" in notice]
    if not threads:
        assert not said
        return
    number, each, longest, before = said[0].groups()
    assert int(number) == threads
    assert 0 < nanoseconds(each) <= nanoseconds(longest) < 1.1e9
    assert 0 < nanoseconds(before) < 1e9


def nanoseconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def lost(got):
    """Overflows without a sample; the CPU timer's merged ticks are among them."""
    return got["lost"]["total"]
