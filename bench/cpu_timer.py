# SPDX-License-Identifier: MIT
"""What a recording by the CPU timer costs a busy program: nothing that can be told apart.

Pairs of a plain and a recorded run of the same program, in turn which comes first, CPU time of the program
and of all that records it by rusage. Runs are short and many: what else the machine does changes from
second to second, and is then the same for both of a pair. The figure is the median of the paired shares;
beside it the same of plain runs against plain runs, made between the others (what this machine tells
apart from nothing), and what each of the two may be off by. The recorder's start-up is a figure of its own (start_up in run.py): it is measured with
the same program doing nothing and taken out.
"""

import math
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


def share(cpu_of, first, second, turned):
    """(second - first) / first, second before first where turned."""
    order = (second, first) if turned else (first, second)
    spent = {id(command): cpu_of(command)[0] for command in order}
    return (spent[id(second)] - spent[id(first)]) / spent[id(first)]


def error_of_median(values):
    """Its standard deviation, from the quartiles, as if the values were normal."""
    low, _, high = statistics.quantiles(values, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(values))


def measure(bench, python, cpu_of):
    """Adds the figure to a Bench (run.py), whose cpu_of() gives a command's CPU seconds."""
    script = bench.work / "cpu_timer.py"
    script.write_text(SCRIPT)
    loops, pairs = ("200", 10) if bench.quick else ("600", 80)
    record = [bench.pathprof, "record", "-q", "-e", "cpu-time", "-o", bench.work / "cpu-timer", "--"]
    plain, again = [python, script, loops], [python, script, loops]
    start = statistics.median(
        cpu_of([*record, python, script, "0"])[0] - cpu_of([python, script, "0"])[0]
        for _ in range(pairs))
    length = statistics.median(cpu_of(plain)[0] for _ in range(3))
    recorded, nothing = [], []
    for number in range(pairs):
        recorded.append(share(cpu_of, plain, [*record, *plain], number % 2) - start / length)
        nothing.append(share(cpu_of, plain, again, number % 2))
    bench.add("CPU of a busy program recorded at 250 Hz, beyond plain",
              100 * statistics.median(recorded), "%", 0.5,
              {"plain against plain": 100 * statistics.median(nothing),
               "off by": 100 * error_of_median(recorded),
               "plain off by": 100 * error_of_median(nothing), "start-up ms": 1e3 * start, "pairs": pairs})
