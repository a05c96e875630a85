# SPDX-License-Identifier: MIT
"""Stacks that cannot be, in a million samples of each interpreter: tests/programs/impossible knows
what its functions call.

Ours are the software clock's, every 20 us: of all triggers it has the most places, since it ends
anywhere, between any two instructions. Beside ours stand, each at the highest rate that it reaches,
py-spy (which stops the program), py-spy that does not, and the sampler of CPython 3.15 on 3.15.
They look from another process and far more rarely: their figures are of some ten thousand samples,
brought to a million. A peer that is not installed, or does not read the interpreter, is "not
measured", and a line says why. What a tool says it could not read is not counted as wrong.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path += [str(TESTS / "run"), str(TESTS / "programs" / "impossible")]

import edges  # pylint: disable=wrong-import-position
import pythons  # pylint: disable=wrong-import-position

PROGRAM = TESTS / "programs" / "impossible" / "program.py"
PERIOD_NS = 20_000
MILLION = 1_000_000
SECONDS = 8  # of CPU a run, for each of two threads
RUNS_MOST = 8
PEER_RATE = 10_000  # a second
PEER_SECONDS = 6
PEER_LIMIT = 150  # seconds that a peer may take
# As the raw and the collapsed format say a frame.
PY_SPY_FRAME = re.compile(r"(?P<name>.*) \((?P<file>.*):(?P<line>\d+)\)")
SAMPLING_FRAME = re.compile(r"(?P<file>.*):(?P<name>[^:]*):(?P<line>\d+)")


def ours(bench, one, verdict, seconds):
    """Adds the samples of a recording to the verdict."""
    recording = bench.record("edges", one.path, PROGRAM, str(seconds),
                             options=["-e", "cpu-clock", "-c", str(PERIOD_NS)])
    done = subprocess.run([bench.pathprof, "export", "-q", "--format=jsonl", recording], check=True,
                          stdout=subprocess.PIPE, text=True)
    verdict.add_rows(map(json.loads, done.stdout.splitlines()))


def collapsed(path, pattern):
    """The verdict over another tool's stacks. Before the program's own first frame stands what
    starts it there; frames in angle brackets alone are no frames."""
    verdict = edges.Verdict()
    for line in path.read_text().splitlines():
        text, _, samples = line.rpartition(" ")
        frames = [pattern.fullmatch(frame) for frame in text.split(";")]
        stack = [(f["file"], f["name"], int(f["line"])) for f in frames if f]
        starts = [i for i, (file, name, _) in enumerate(stack)
                  if name == "<module>" and file.endswith(PROGRAM.name)]
        verdict.add(stack[starts[-1] if starts else 0:], int(samples))
    return verdict


def peer_verdict(bench, name, command, pattern, one):
    """What a peer saw, or None after a line that says why not."""
    out = bench.work / "peer"
    out.unlink(missing_ok=True)
    try:
        done = subprocess.run([*map(str, command(one, out))], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=PEER_LIMIT, check=False,
                              env=os.environ | one.environment)
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    except (OSError, subprocess.TimeoutExpired) as problem:
        said = [str(problem)]
    verdict = collapsed(out, pattern) if out.exists() else edges.Verdict()
    if verdict.looked_at < 1000:
        print(f"  {name} on {one.name}: not measured, {verdict.looked_at} samples: "
              f"{said[-1][:90] if said else 'it said nothing'}", flush=True)
        return None
    return verdict


def py_spy(*options):
    def command(one, out):
        return ["py-spy", "record", "-r", PEER_RATE, "-f", "raw", "-o", out, *options, "--",
                one.path, PROGRAM, PEER_SECONDS]
    return command


def sampling(one, out):
    return [one.path, "-m", "profiling.sampling", "run", "-r", PEER_RATE, "-a", "--mode", "gil",
            "--collapsed", "-o", out, PROGRAM, PEER_SECONDS]


PEERS = {"py-spy": (py_spy(), PY_SPY_FRAME),
         "py-spy --nonblocking": (py_spy("--nonblocking"), PY_SPY_FRAME),
         "profiling.sampling": (sampling, SAMPLING_FRAME)}


def missing(name, one):
    """Why a peer cannot be tried, or None."""
    if name.startswith("py-spy"):
        return None if shutil.which("py-spy") else "it is not installed"
    return None if one.has("profiling.sampling") else "this version has none"


def per_million(verdict):
    return verdict and verdict.functions.total() * MILLION / verdict.looked_at


def measure_one(bench, one):
    verdict, wanted = edges.Verdict(), MILLION // 20 if bench.quick else MILLION
    for _ in range(RUNS_MOST):
        ours(bench, one, verdict, 1 if bench.quick else SECONDS)
        if verdict.looked_at >= wanted:
            break
    if verdict.functions or verdict.lines:
        print(verdict, flush=True)
    beside = {"unread": verdict.unread, "wrong lines": verdict.lines.total()}
    for name, (command, pattern) in PEERS.items():
        why = missing(name, one)
        if why:
            print(f"  {name} on {one.name}: not measured, {why}", flush=True)
        found = None if why else peer_verdict(bench, name, command, pattern, one)
        beside[f"{name} (of {found.looked_at if found else 0})"] = per_million(found)
    bench.add(f"stacks that cannot be in {verdict.looked_at} samples, {one.name}",
              verdict.functions.total(), "samples", 0, beside)


def measure(bench):
    for one in pythons.supported():
        try:
            os.environ.update(one.environment)
            measure_one(bench, one)
        finally:
            for key in one.environment:
                os.environ.pop(key, None)
