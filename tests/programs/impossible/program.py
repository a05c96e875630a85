# SPDX-License-Identifier: MIT
"""Two threads, each at work in a family of functions of its own (family.py) for SECONDS of CPU.

usage: program.py SECONDS
"""

import sys
import threading
import time
from pathlib import Path

TEXT = (Path(__file__).resolve().parent / "family.py").read_text()


def family(name):
    space = {"__name__": name}
    exec(compile(TEXT, f"{name}.py", "exec"), space)
    return space["work"]


def main(seconds):
    clock = time.thread_time
    second = threading.Thread(target=family("family_q"), args=(clock, seconds))
    first = family("family_p")
    second.start()
    first(clock, clock() + seconds)
    second.join()


if __name__ == "__main__":
    main(float(sys.argv[1]))
