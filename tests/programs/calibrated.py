# SPDX-License-Identifier: MIT
"""A program whose truth is known: ten functions with weights 50, 20, 15, 5, 5, 1, 1, 1, 1, 1.

Each round calls all ten in a new random order, so that no rhythm of the program can fall in
step with the sampler's. Each function measures its own CPU time with the thread's CPU clock, two
clock readings a call; the sums are the truth, printed as JSON at the end.

usage: calibrated.py SECONDS [THREADS]
"""

import json
import random
import sys
import threading
import time

WEIGHTS = [50, 20, 15, 5, 5, 1, 1, 1, 1, 1]
clock = time.thread_time_ns


def burn(loops):
    total = 0
    for value in range(loops):
        total += value & 3
    return total


def make(index):
    name = f"f_{index:02d}"
    source = (
        f"def {name}(loops, truth):\n"
        f"    before = clock()\n"
        f"    burn(loops)\n"
        f"    truth['{name}'] += clock() - before\n"
    )
    space = {"clock": clock, "burn": burn}
    exec(compile(source, __file__, "exec"), space)
    return space[name]


FUNCTIONS = [make(index) for index in range(len(WEIGHTS))]


def work(seconds, seed, truth):
    order = list(zip(FUNCTIONS, WEIGHTS))
    shuffle = random.Random(seed).shuffle
    end = clock() + int(seconds * 1e9)
    while clock() < end:
        shuffle(order)
        for function, weight in order:
            function(weight * 400, truth)


def main():
    seconds = float(sys.argv[1])
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    truths = [dict.fromkeys((f.__name__ for f in FUNCTIONS), 0) for _ in range(threads)]
    workers = [
        threading.Thread(target=work, args=(seconds / threads, index, truths[index]))
        for index in range(1, threads)
    ]
    for worker in workers:
        worker.start()
    work(seconds / threads, 0, truths[0])
    for worker in workers:
        worker.join()
    total = {name: sum(truth[name] for truth in truths) for name in truths[0]}
    print(json.dumps(total))


main()
