# SPDX-License-Identifier: MIT
"""A program whose truth is known by line: four lines of one function, each timed with the
thread's CPU clock, in an order drawn anew each round. Prints {line: nanoseconds} as JSON.

usage: lines.py SECONDS
"""

import json
import random
import re
import sys
import time

clock = time.thread_time_ns
WEIGHTS = [40, 30, 20, 10]
shuffle = random.Random(1).shuffle


def hot(order, truth):
    for which in order:
        before = clock()
        if which == 0:
            sum(range(WEIGHTS[0] * 1500))  # line 0
        elif which == 1:
            sum(range(WEIGHTS[1] * 1500))  # line 1
        elif which == 2:
            sum(range(WEIGHTS[2] * 1500))  # line 2
        else:
            sum(range(WEIGHTS[3] * 1500))  # line 3
        truth[which] += clock() - before


def main():
    end = clock() + int(float(sys.argv[1]) * 1e9)
    truth = [0, 0, 0, 0]
    order = [0, 1, 2, 3]
    while clock() < end:
        shuffle(order)
        hot(order, truth)
    with open(__file__, encoding="utf-8") as source:
        numbers = {
            int(found[1]): number
            for number, text in enumerate(source, 1)
            if (found := re.search(r"# line (\d)$", text))
        }
    print(json.dumps({str(numbers[index]): spent for index, spent in enumerate(truth)}))


main()
