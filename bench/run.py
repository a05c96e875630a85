# SPDX-License-Identifier: MIT
"""Measures every figure that pathprof promises, beside its peer or floor, in one run.

Prints a table and writes bench.json:

  { "machine": {..}, "figures": [ { "name", "value", "unit", "goal", "met", "beside": { NAME: value } } ] }

`goal` is an upper bound in the figure's unit, or null where the figure is only stated; `met` is null
where it was not measured. Nothing here is a test: the machine is what it is on that day. What does not
depend on the clock is gated in tests/run/test_cost.py.

usage: run.py BUILD_DIRECTORY [--quick] [--only WORD]
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cpu_timer
import impossible_edges
import wall

PYTHON = os.environ.get("PATHPROF_BENCH_PYTHON", "/usr/bin/python3")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "run"))
import pythons  # noqa: E402 - where the interpreters are is the tests' knowledge


class Bench:
    """The figures so far, and where things are."""

    def __init__(self, build, quick):
        self.build = build
        self.quick = quick
        self.python = PYTHON
        self.label = ""  # of figures of another interpreter
        self.pathprof = build / "pathprof"
        self.figures = []
        self.work = Path(tempfile.mkdtemp(prefix="pathprof-bench-"))

    def add(self, name, value, unit, goal=None, beside=None):
        met = None if value is None or goal is None else value <= goal
        figure = dict(name=name + self.label, value=value, unit=unit, goal=goal, met=met,
                      beside=beside or {})
        self.figures.append(figure)
        print_figure(figure)

    def record(self, name, *command, options=()):
        """Records @command; returns the recording's path."""
        path = self.work / name
        subprocess.run(
            [self.pathprof, "record", "-q", *options, "-o", path, "--", *command],
            check=True, stdout=subprocess.DEVNULL,
        )
        return path

    def report(self, recording):
        run = subprocess.run([self.pathprof, "report", "--json", recording], check=True,
                             stdout=subprocess.PIPE)
        return json.loads(run.stdout)


def shown(value):
    if value is None:
        return "not measured"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def print_figure(figure):
    verdict = {True: "met", False: "MISSED", None: ""}[figure["met"]]
    goal = "" if figure["goal"] is None else f"<= {shown(figure['goal'])}"
    beside = ", ".join(f"{name} {shown(value)}" for name, value in figure["beside"].items())
    print(
        f"{figure['name']:<72} {shown(figure['value']):>12} {figure['unit']:<9} {goal:<9}"
        f" {verdict:<7} {beside}",
        flush=True,
    )


def cpu_of(command, **options):
    """CPU seconds of a command and all it started, and its wall time."""
    before = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - before


def paired(plain, variants, rounds):
    """Median CPU seconds of each variant minus the plain run beside it."""
    extra = {name: [] for name in variants}
    for _ in range(rounds):
        base, _ = cpu_of(plain)
        for name, command in variants.items():
            extra[name].append(cpu_of(command)[0] - base)
    return {name: statistics.median(values) for name, values in extra.items()}


def forwarding(bench):
    events = "100000" if bench.quick else "1000000"
    result = json.loads(
        subprocess.run([bench.build / "bench" / "forward", events, "5"], check=True,
                       stdout=subprocess.PIPE).stdout
    )
    if result["sigtrap_ns"] < 0:
        bench.add("forward one overflow, times a bare tgkill", None, "times", 1.5)
        return
    ours = result["sigtrap_ns"] - result["none_ns"]
    paper = result["async_ns"] - result["none_ns"]
    bench.add("forward one overflow, times a bare tgkill", ours / result["tgkill_ns"], "times", 1.5,
              {"overflow ns": ours, "tgkill ns": result["tgkill_ns"]})
    bench.add("forward one overflow, share of the paper's async way", ours / paper, "times", 0.25,
              {"overflow ns": ours, "async ns": paper})


def set_up(bench):
    """What a recording adds from before pthread_create() to the first line of the thread's routine."""
    program = bench.build / "bench" / "set-up"

    def run(*options, threads, busy):
        command = [program, str(threads), str(busy)]
        if options:
            path = bench.work / f"set-up-{len(list(bench.work.iterdir()))}"
            command = [bench.pathprof, "record", "-q", *options, "-o", path, "--", *command]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    threads = 1000 if bench.quick else 4000
    events = ("-e", "page-faults:u", "-c", "1000000000")
    plain, timer, perf = (run(*options, threads=threads, busy=0)
                          for options in ((), ("-e", "cpu-time"), events))
    alone, crowded = (run(*options, threads=threads // 10, busy=6) for options in ((), events))
    extra = perf["median_ns"] - plain["median_ns"]
    if perf["bare_ns"]:
        bench.add("set-up of a thread, perf event, times a bare open+enable+close",
                  extra / perf["bare_ns"], "times", 2,
                  {"extra us": extra / 1e3, "bare us": perf["bare_ns"] / 1e3,
                   "bare, machine's only event us": plain["bare_ns"] / 1e3,
                   "floor: another thread opens it us": perf["by_another_ns"] / 1e3,
                   "paper's way us": perf["paper_ns"] / 1e3})
        bench.add("set-up of a thread, perf event, six busy threads beside, p99",
                  crowded["p99_ns"] / 1e3, "us", None,
                  {"plain p99 us": alone["p99_ns"] / 1e3, "bound us": 100_000})
    bench.add("set-up of a thread, CPU timer", (timer["median_ns"] - plain["median_ns"]) / 1e3, "us")


def short_threads(bench):
    """Threads of 50 us beside a busy one: their samples for each that is due; 1 is right."""
    threads = 2000 if bench.quick else 10_000
    program = bench.build / "tests" / "programs" / "agent" / "agent-events"
    for name, options in (("CPU timer", ("-e", "cpu-time")),
                          ("cpu-clock, 1 ms", ("-e", "cpu-clock", "-c", "1000000"))):
        path = bench.work / f"short-{options[1]}"
        run = subprocess.run([bench.pathprof, "record", "-q", *options, "-o", path, "--", program,
                              "share", str(threads), "50"],
                             check=True, stdout=subprocess.PIPE, text=True)
        ran = dict(line.split() for line in run.stdout.splitlines())
        short_ns, busy_ns = int(ran["short"]), int(ran["busy"])
        found = bench.report(path)["threads"]
        busy = sum(t["samples"] for t in found if t["name"] == "busy")
        short = sum(t["samples"] for t in found if t["name"] == "main" and t["pid"] != t["tid"])
        due = (short + busy) * short_ns / (short_ns + busy_ns)
        bench.add(f"{threads} threads of 50 us beside a busy one, {name}", short / due, "of due", None,
                  {"samples": short, "due": due, "standard deviation": due ** -0.5})


def capture(bench):
    run = subprocess.run([bench.python, HERE / "capture.py",
                          bench.build / "bench" / "libbench-capture.so"],
                         check=True, stdout=subprocess.PIPE)
    result = json.loads(run.stdout)
    for name, key, goal in (
        ("walk, intern, append: 32 frames, repeated, warm", "repeated_warm_ns", 1000),
        ("walk, intern, append: 32 frames, repeated, cold caches", "repeated_cold_ns", 4000),
        ("walk, intern, append: 32 frames, new stack, known code", "new_stack_ns", 3000),
        ("each new code object on top", "new_code_ns", 300),
    ):
        bench.add(name, result[key], "ns", goal)


BUSY = """
import sys
def burn(n):
    t = 0
    for i in range(n):
        t += i & 3
    return t
def down(depth, n):
    if depth:
        return down(depth - 1, n)
    return burn(n)
for _ in range(int(sys.argv[1])):
    down(28, 20000)
"""


def peer(name):
    """Is the peer here, and does it run on this machine?"""
    found = shutil.which(name)
    return found and not subprocess.run([found, "--version"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, check=False).returncode


def per_sample(bench):
    """CPU that a recording costs per sample, all in all: delivery, handler, recorder.

    A tenth of a percent cannot be read off two runs of a program on a shared machine, so the parts
    are measured: the handler's time and the recorder's CPU by the recording itself (the recorder's
    start apart), delivery as a bare signal to oneself. The peers cost enough to show in paired runs.
    """
    script = bench.work / "busy.py"
    script.write_text(BUSY)
    loops = "4000" if bench.quick else "20000"

    def overhead(number):
        report = bench.report(bench.record(f"overhead-{number}", bench.python, script, number,
                                           options=["-e", "cpu-time"]))
        return report["overhead"]["handler_ns"], report["overhead"]["recorder_ns"], report["samples"]

    _, idle, _ = overhead("0")
    handler, recorder, samples = overhead(loops)
    signal = json.loads(subprocess.run([bench.build / "bench" / "forward", "100000", "5"], check=True,
                                       stdout=subprocess.PIPE).stdout)["tgkill_ns"]
    parts = {"delivery us": signal / 1e3, "handler us": handler / samples / 1e3,
             "recorder us": max(0, recorder - idle) / samples / 1e3}
    bench.add("whole extra CPU per sample, 32 frames, CPU timer", sum(parts.values()), "us", 6,
              {**parts, **peers_per_sample(bench, script), "samples": samples})


def peers_per_sample(bench, script):
    """What one more sample costs a peer: two lengths of the same run, so that its start is apart."""
    folded = bench.work / "peer.txt"

    def command(name, loops):
        plain = [bench.python, script, loops]
        return plain, {
            "austin": ["austin", "-i", "4000", "-o", folded, *plain],
            "py-spy": ["py-spy", "record", "-r", "250", "-f", "raw", "-o", folded, "--", *plain],
        }[name]

    def measured(name, loops):
        plain, recorded = command(name, loops)
        extra = paired(plain, {name: recorded}, 3 if bench.quick else 7)[name]
        lines = [line for line in folded.read_text().splitlines() if line and line[0] != "#"]
        samples = len(lines) if name == "austin" else sum(int(l.rsplit(" ", 1)[1]) for l in lines)
        return extra, samples

    beside = {}
    for name in ("austin", "py-spy"):
        if peer(name):
            (short, few), (long, many) = measured(name, "1000"), measured(name, "6000")
            beside[f"{name} us"] = (long - short) / max(many - few, 1) * 1e6
    return beside


def without_samples(bench):
    """The interpreter runs no slower while no sample is taken: the agent there, sampling delayed."""
    script = bench.work / "busy.py"
    script.write_text(BUSY)
    plain = [bench.python, script, "600" if bench.quick else "3000"]
    waiting = [bench.pathprof, "record", "-q", "--delay", "1h", "-o", bench.work / "waiting", "--",
               *plain]
    ratios = []
    for _ in range(5 if bench.quick else 9):
        ratios.append(cpu_of(waiting)[0] / cpu_of(plain)[0])
    bench.add("CPU of a program while no sample is taken, times plain", statistics.median(ratios),
              "times")


def busy_by_cpu_timer(bench):
    cpu_timer.measure(bench, bench.python, cpu_of)


def start_up(bench):
    plain = [bench.python, "-c", "pass"]
    variants = {
        "pathprof": [bench.pathprof, "record", "-q", "-o", bench.work / "start", "--", *plain],
    }
    if peer("austin"):
        variants["austin"] = ["austin", "-o", bench.work / "austin.out", *plain]
    if peer("py-spy"):

        variants["py-spy"] = ["py-spy", "record", "-f", "raw", "-o", bench.work / "spy", "--", *plain]
    extra = paired(plain, variants, 10 if bench.quick else 40)
    beside = {f"{name} ms": value * 1e3 for name, value in extra.items() if name != "pathprof"}
    bench.add("start-up added to python3 -c pass, CPU", extra["pathprof"] * 1e3, "ms", 5, beside)


def to_report(bench):
    """From the program's last line to a readable report."""
    times = []
    script = "import time; print(time.monotonic_ns(), flush=True)"
    for index in range(10 if bench.quick else 30):
        path = bench.work / f"last-{index % 2}"
        run = subprocess.run(
            f"'{bench.pathprof}' record -q -o '{path}' -- {bench.python} -c '{script}' &&"
            f" '{bench.pathprof}' report --no-pager '{path}' > '{bench.work}/report.txt'",
            shell=True, check=True, stdout=subprocess.PIPE, text=True,
        )
        times.append((time.monotonic_ns() - int(run.stdout.split()[0])) / 1e6)
    bench.add("last line of the program to a readable report", statistics.median(times), "ms", 50)


def large_report(bench):
    path = bench.work / "large"
    samples = "200000" if bench.quick else "1000000"
    stacks = "20000" if bench.quick else "100000"
    subprocess.run([bench.build / "tests" / "support" / "make-recording", path, "--samples", samples, "--stacks",
                    stacks, "--depth", "32", "--threads", "4"], check=True)
    times, memory = [], 0
    for _ in range(5):
        before = time.monotonic()
        process = subprocess.Popen([bench.pathprof, "report", path], stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        times.append(time.monotonic() - before)
        memory = usage.ru_maxrss
    bench.add(f"report of {samples} samples, {stacks} stacks", statistics.median(times), "s", 1,
              {"memory MiB": memory / 1024})


def directory_bytes(path, pattern):
    return sum(entry.stat().st_size for entry in path.glob(pattern))


PACKET_PREFIX_BYTES = 104  # src/core/event/ctf.h


def nr_packets(stream):
    """How many packets a stream file has: each says its bits at byte 48."""
    content, at, number = stream.read_bytes(), 0, 0
    while at < len(content):
        at += int.from_bytes(content[at + 48:at + 56], "little") // 8
        number += 1
    return number


def sizes(bench):
    """Bytes per sample of a real program, whole, at two depths: they do not grow with it."""
    for depth in (28, 200):
        deep = bench.work / f"busy-{depth}.py"
        deep.write_text(BUSY.replace("down(28", f"down({depth}"))
        loops = "3000" if bench.quick else "12000"
        path = bench.record(f"size-{depth}", bench.python, deep, loops, options=["-e", "cpu-time"])
        samples = bench.report(path)["samples"]
        stream = directory_bytes(path, "ust/slot_*")
        packets = sum(nr_packets(path) for path in path.glob("ust/slot_*"))
        bench.add(f"bytes per sample in the recording, {depth + 4} frames",
                  (stream - packets * PACKET_PREFIX_BYTES) / samples, "bytes", 16,
                  {"with packet headers": stream / samples, "samples": samples})


def steady_archive(bench):
    """What one more sample adds to an archive: two recordings of different length."""
    def made(samples):
        path = bench.work / f"steady-{samples}"
        subprocess.run([bench.build / "tests" / "support" / "make-recording", path, "--samples",
                        str(samples), "--stacks", "200", "--depth", "32", "--threads", "2"],
                       check=True)
        archive = bench.work / f"steady-{samples}.pathprof"
        subprocess.run([bench.pathprof, "archive", "-q", path, "-o", archive], check=True)
        return archive.stat().st_size

    short, long = 100_000, 300_000
    bench.add("bytes per sample after pathprof archive, steady state",
              (made(long) - made(short)) / (long - short), "bytes", 3)


MANY_NODES = """
import mmap, sys
pages = mmap.mmap(-1, 4096 * 8000)
def left(depth, bits, page):
    step(depth, bits, page)
def right(depth, bits, page):
    step(depth, bits, page)
def step(depth, bits, page):
    if depth:
        (left if bits & 1 else right)(depth - 1, bits >> 1, page)
    else:
        pages[page * 4096] = 1
for number in range(int(sys.argv[1])):
    step(16, number, number)
"""

THREADS = """
import sys, threading, time
number = int(sys.argv[1])
ready = threading.Barrier(number + 1)
def work():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    ready.wait()
    ready.wait()
for _ in range(number):
    threading.Thread(target=work).start()
ready.wait()
print(next(l for l in open("/proc/self/status") if l.startswith("RssShmem")).split()[1])
ready.wait()
"""


def memory(bench):
    """What the recording's memory costs: in the target by thread, in the recorder by node."""
    def shared_kib(number):
        script = bench.work / "threads.py"
        script.write_text(THREADS)
        run = subprocess.run([bench.pathprof, "record", "-q", "-o", bench.work / "threads", "--",
                              bench.python, script, str(number)],
                             check=True, stdout=subprocess.PIPE, text=True)
        return int(run.stdout)

    few, many = 4, 104
    bench.add("memory of the target for each sampled thread",
              (shared_kib(many) - shared_kib(few)) / (many - few), "KiB", None,
              {"bound, KiB": 51 + 16})

    def recorder_kib(stacks):
        script = bench.work / "nodes.py"
        script.write_text(MANY_NODES)
        path = bench.work / "nodes"
        process = subprocess.Popen([bench.pathprof, "record", "-q", "-e", "page-faults", "-c", "1",
                                    "-o", path, "--", bench.python, script, str(stacks)])
        _, _, usage = os.wait4(process.pid, 0)
        return usage.ru_maxrss

    small, large = recorder_kib(10), recorder_kib(7000)
    bench.add("memory of the recorder for 10^5 nodes (7,000 stacks more)", (large - small) / 1024,
              "MiB", None)


def waits(bench):
    wall.measure(bench, bench.python)


def edges_that_cannot_be(bench):
    impossible_edges.measure(bench)


PARTS = [forwarding, set_up, short_threads, capture, per_sample, without_samples,
         busy_by_cpu_timer, start_up, to_report, large_report, sizes, steady_archive, memory,
         waits, edges_that_cannot_be]

# What the interpreter has a part in.
PARTS_OF_EACH_INTERPRETER = [capture, per_sample, without_samples, start_up]


def machine():
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            model = line.split(":", 1)[1].strip()
            break
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "machine": platform.machine(), "python": PYTHON, "load": os.getloadavg()[0]}


def measure(bench, parts, only):
    for part in parts:
        if only in part.__name__:
            try:
                part(bench)
            except (OSError, RuntimeError, subprocess.CalledProcessError) as problem:
                bench.add(f"{part.__name__}: {problem}", None, "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), options.quick)
    measure(bench, PARTS, options.only)
    for interpreter in pythons.supported():
        if interpreter.path != PYTHON and not interpreter.environment:
            bench.python, bench.label = interpreter.path, f", {interpreter.name}"
            measure(bench, PARTS_OF_EACH_INTERPRETER, options.only)
    (bench.build / "bench.json").write_text(
        json.dumps({"machine": machine(), "figures": bench.figures}, indent=1) + "\n")
    shutil.rmtree(bench.work)
    print(f"wrote {options.build}/bench.json")
    return 0


sys.exit(main())
