# SPDX-License-Identifier: MIT
"""What a recording by the CPU timer costs a busy program: nothing that can be told apart.

Pairs of a plain and a recorded run of the same program, in turn which comes first, CPU time of the program
and of all that records it by rusage. The figure is the median of the paired shares; beside it the same
of plain runs against plain runs (what this machine tells apart from nothing), and the distance between
the quartiles. The recorder's start-up is a figure of its own (start_up in run.py): it is measured with
the same program doing nothing and taken out.
"""

import statistics

SCRIPT = """
import sys
def burn(n):
    t = 0
    for i in range(n):
        t += i & 3
    return t
for _ in range(int(sys.argv[1])):
    burn(20000)
"""


def shares(cpu_of, first, second, pairs):
    """(second - first) / first of each pair, the order alternating."""
    found = []
    for number in range(pairs):
        order = (first, second) if number % 2 else (second, first)
        spent = {id(command): cpu_of(command)[0] for command in order}
        found.append((spent[id(second)] - spent[id(first)]) / spent[id(first)])
    return found


def measure(bench, python, cpu_of):
    """Adds the figure to a Bench (run.py), whose cpu_of() gives a command's CPU seconds."""
    script = bench.work / "cpu_timer.py"
    script.write_text(SCRIPT)
    loops, pairs = ("400", 6) if bench.quick else ("2500", 20)
    record = [bench.pathprof, "record", "-q", "-e", "cpu-time", "-o", bench.work / "cpu-timer", "--"]
    plain, again = [python, script, loops], [python, script, loops]
    start = statistics.median(
        cpu_of([*record, python, script, "0"])[0] - cpu_of([python, script, "0"])[0]
        for _ in range(pairs))
    length = statistics.median(cpu_of(plain)[0] for _ in range(3))
    recorded = [share - start / length for share in shares(cpu_of, plain, [*record, *plain], pairs)]
    nothing = shares(cpu_of, plain, again, pairs)
    low, _, high = statistics.quantiles(recorded, n=4)
    bench.add("CPU of a busy program recorded at 250 Hz, beyond plain",
              100 * statistics.median(recorded), "%", 0.5,
              {"plain against plain": 100 * statistics.median(nothing),
               "quartiles apart": 100 * (high - low), "start-up ms": 1e3 * start, "pairs": pairs})
