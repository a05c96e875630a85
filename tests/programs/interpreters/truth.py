# SPDX-License-Identifier: MIT
"""More ways into a frame than walk_truth.py has, each looked at by hand and by the program itself.

  truth.py PROBE TICK CASE...

runs the cases in one process and prints a line of JSON for each: {"case", "looks", "facts",
"skipped", "failed"}, looks as walk_truth.py has them. TICK is the library of tick.c, with which a
case has a thread that waits look at itself from a signal handler.
"""

import json
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import walk_truth as base

TICK = sys.argv[2]
LOOKS, FACTS, HELD, RELEASED = base.LOOKS, base.FACTS, base.HELD, base.RELEASED
CASES = {}


def look(*_):
    if not look.off:
        base.look()


look.off = False


class Skip(Exception):
    """Why the case is none for this interpreter."""


def case(function):
    CASES[function.__name__] = function
    return function


def run(name):
    LOOKS.clear()
    FACTS.clear()
    done = {"case": name, "skipped": None, "failed": None}
    try:
        CASES[name]()
    except Skip as why:
        done["skipped"] = str(why)
    except BaseException:
        done["failed"] = traceback.format_exc()
    print(json.dumps({**done, "looks": LOOKS, "facts": FACTS}), flush=True)


def main():
    for module in ("calls", "suspended", "observed", "elsewhere"):
        __import__(f"truth_{module}")
    for name in sys.argv[3:]:
        run(name)


if __name__ == "__main__":
    sys.modules["truth"] = sys.modules["__main__"]
    main()
