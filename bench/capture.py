# SPDX-License-Identifier: MIT
"""Stacks for bench/capture.c: run inside the interpreter that is measured.

usage: python3 capture.py LIBRARY                 prints one JSON object, nanoseconds
       python3 capture.py LIBRARY functions N     N ticks of one stack of distinct functions, and
       python3 capture.py LIBRARY recursion N     of one function: for an instruction counter
"""

import ctypes
import json
import sys

DEPTH = 32
library = ctypes.PyDLL(sys.argv[1])
library.bench_median.restype = ctypes.c_double


# As an import does it: the code objects of a module share their file name.
FILES = [f"/srv/service/package/module_{index}.py" for index in range(5)]


def functions(number):
    """`number` distinct functions, each calling the next one it is given."""
    space = {}
    for index in range(number):
        exec(
            compile(
                f"\n\ndef level_{index}(rest, leaf):\n"
                f"    '''Some lines of code, so that the line table is as long as usual.'''\n"
                f"    total = {index}\n"
                f"    for step in range(1):\n"
                f"        total += step * {index + 3}\n"
                f"        if total > 1000:\n"
                f"            total = total % 7\n"
                f"    if rest:\n"
                f"        return rest[0](rest[1], leaf) + total\n"
                f"    leaf()\n"
                f"    return total\n",
                FILES[index % 5],
                "exec",
            ),
            space,
        )
    made = [space[f"level_{index}"] for index in range(number)]
    for index, function in enumerate(made):
        function.__code__ = function.__code__.replace(co_filename=FILES[index % 5])
    return made


def chain(names):
    rest = ()
    for function in reversed(names[1:]):
        rest = (function, rest)
    return names[0], rest


def run(names, leaf):
    first, rest = chain(names)
    first(rest, leaf)


def repeated(depth):
    """The same stack again and again; frames below ours add a few to the depth."""
    names = functions(depth)
    library.bench_reset()
    run(names, lambda: library.bench_ticks(20000))
    return library.bench_median()


def cold(depth):
    names = functions(depth)
    library.bench_reset()

    def leaf():
        for _ in range(300):
            library.bench_tick(1)

    run(names, leaf)
    return library.bench_median()


def new_stacks(depth, number):
    """A stack never seen, over code that is known: one of two functions at each level, chosen by
    the bits of a counter, the lowest bit outermost, so that most frames are new nodes."""
    names = functions(2 * depth)
    for first in (0, 1):  # every code object is known before
        run(names[first::2], lambda: library.bench_tick(0))
    library.bench_reset()
    for counter in range(2, number + 2):
        path = [names[2 * level + (counter >> level & 1)] for level in range(depth)]
        run(path, lambda: library.bench_tick(0))
    return library.bench_median()


def new_code(depth, number, fresh):
    """As new_stacks, with `fresh` new code objects as innermost frames of each stack."""
    names = functions(2 * depth)
    for first in (0, 1):
        run(names[first::2], lambda: library.bench_tick(0))
    kept = []  # code objects stay alive, so that no address comes back
    library.bench_reset()
    for counter in range(2, number + 2):
        path = [names[2 * level + (counter >> level & 1)] for level in range(depth - fresh)]
        template = functions(fresh) if fresh else []
        renamed = []
        for index, function in enumerate(template):
            function.__code__ = function.__code__.replace(
                co_qualname=f"fresh_{counter}_{index}", co_firstlineno=counter
            )
            renamed.append(function)
        kept.append(renamed)
        run(path + renamed, lambda: library.bench_tick(0))
    return library.bench_median()


def recursion(depth, leaf):
    if depth:
        recursion(depth - 1, leaf)
    else:
        leaf()


def ticks(kind, number):
    """The ticks alone, the same number of instructions on every run."""
    if kind == "recursion":
        recursion(DEPTH - 5, lambda: library.bench_ticks(number))
    else:
        run(functions(DEPTH - 5), lambda: library.bench_ticks(number))


def main():
    if library.bench_start():
        print(json.dumps({"error": "the interpreter cannot be read"}))
        return 1
    if len(sys.argv) > 3:
        ticks(sys.argv[2], int(sys.argv[3]))
        return 0
    results = {
        "repeated_warm_ns": repeated(DEPTH - 5),
        "repeated_cold_ns": cold(DEPTH - 5),
        "new_stack_ns": new_stacks(DEPTH - 5, 2000),
    }
    with_4 = new_code(DEPTH - 5, 1000, 4)
    with_12 = new_code(DEPTH - 5, 1000, 12)
    results["new_code_ns"] = (with_12 - with_4) / 8
    results["nodes"] = library.bench_nodes()
    results["codes"] = library.bench_codes()
    print(json.dumps(results))
    return 0


sys.exit(main())
