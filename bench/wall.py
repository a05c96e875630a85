# SPDX-License-Identifier: MIT
"""The reader of waits: stacks torn, its share of a CPU, what it adds to a program that switches."""

import json
import os
import re
import subprocess

HUNDRED = """
import sys, threading, time
def worker():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        time.sleep(0.05)
threads = [threading.Thread(target=worker) for _ in range(100)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def torn(bench):
    """Readings of standing threads that were kept, and how many of them were torn."""
    looks = 100_000 if bench.quick else 1_000_000
    done = subprocess.run([bench.build / "src/tool/test-reader_switches"], capture_output=True,
                          text=True, check=False, env={**os.environ, "PATHPROF_TORN_LOOKS": str(looks)})
    counts = re.search(r"kept (\d+) torn (\d+) rejected (\d+) of_these_torn (\d+)", done.stdout)
    if not counts:
        bench.add("wait stacks kept although torn", None, "of 10^6", 0)
        return
    kept, wrong, rejected, rejected_torn = map(int, counts.groups())
    bench.add("wait stacks kept although torn", wrong, "stacks", 0,
              {"kept": kept, "rejected": rejected, "torn of these": rejected_torn})


def share(bench, python):
    """The recorder's CPU time for 100 threads that each wait 20 times a second."""
    seconds = 5 if bench.quick else 20
    script = bench.work / "hundred.py"
    script.write_text(HUNDRED)

    def recorder_ns(name, *options):
        path = bench.record(name, python, str(script), str(seconds),
                            options=("-e", "cpu-time", *options))
        manifest = json.loads((path / "manifest.json").read_text())
        return manifest["overhead"]["recorder_ns"], manifest.get("wall")

    plain, _ = recorder_ns("hundred-plain")
    watching, wall = recorder_ns("hundred-wall", "--wall")
    bench.add("reader of waits, 100 threads waiting 20 times a second",
              (watching - plain) / seconds / 1e7, "% of a CPU", 1,
              {"waits a second": wall["waits"] / seconds, "looks a second": wall["seen"] / seconds,
               "without --wall %": plain / seconds / 1e7})


def measure(bench, python):
    torn(bench)
    share(bench, python)
