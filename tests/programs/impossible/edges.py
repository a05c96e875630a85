# SPDX-License-Identifier: MIT
"""Says which stacks of program.py cannot be: by the marks of family.py, from root to leaf.

A stack is a list of (file, function, line), root first; only the last part of names is compared, and
of files. No tool's format is known here but pathprof's own.
"""

import re
from collections import Counter
from pathlib import Path

FILES = ("family_p.py", "family_q.py")
CALLERS = {"family_p.py": "main", "family_q.py": "run"}  # of work()
ROOTS = {"<module>", "_bootstrap"}
CUT = ("[unreadable]", "[truncated]")  # what stands for the frames that were not read
DEPTH = 8  # of down(), below which bottom() is called
ALIASES = {"brief_1": "brief", "brief_2": "brief"}  # whose text it is
NESTED = ("<listcomp>", "<genexpr>", "<lambda>")


def read_marks():
    """By function and by line of its text: what it calls, and what it only makes."""
    calls, makes, function = {}, {}, None
    text = (Path(__file__).resolve().parent / "family.py").read_text()
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r"\s*(?:async )?def (\w+)", line)
        function = found.group(1) if found else function
        mark = re.search(r"# ([>*]) (.*)", line)
        if mark and function:
            of = calls if mark.group(1) == ">" else makes
            for where in (function, number):
                of.setdefault(where, set()).update(mark.group(2).split())
    return calls, makes


CALLS, MAKES = read_marks()


def edge_can_be(where, callee, is_leaf):
    return callee in CALLS.get(where, ()) or (is_leaf and callee in MAKES.get(where, ()))


def wrong_function(stack):
    """An edge that cannot be between the functions of these frames of one family, or None."""
    for i, ((_, caller, line), (_, callee, _)) in enumerate(zip(stack, stack[1:])):
        # These stand on their maker's line, and call what is marked there.
        where = line if caller in NESTED else ALIASES.get(caller, caller)
        if not edge_can_be(where, callee, i == len(stack) - 2):
            return f"{caller} -> {callee}"
    return None


def wrong_line(stack):
    """An edge that cannot be from the line where the caller is, or None."""
    for i, ((_, caller, line), (_, callee, _)) in enumerate(zip(stack, stack[1:])):
        if not edge_can_be(line, callee, i == len(stack) - 2):
            return f"{caller}:{line} -> {callee}"
    return None


def wrong_chain(stack, first):
    """What is wrong with a whole stack whose first frame of a family is this one, or None."""
    file, names = stack[first][0], [name for _, name, _ in stack[first:]]
    if {frame[0] for frame in stack[first:]} != {file}:
        return "frames of two threads"
    if names[0] != "work" or not first or stack[first - 1][1] != CALLERS[file]:
        return f"{names[0]} has no caller"
    if stack[0][1] not in ROOTS:
        return f"{stack[0][1]} is the root"
    downs = names.count("down")
    if downs > DEPTH or ("bottom" in names and downs != DEPTH):
        return f"{downs} times down"
    return None


class Verdict:
    """Over all stacks: the samples, by what they turned out to be."""

    def __init__(self):
        self.samples = 0  # all of them
        self.outside = 0  # the program begins or ends: no frame of a family's work
        self.unread = 0  # the recording says that the stack was not read to its root
        self.functions, self.lines = Counter(), Counter()  # wrong ones, by what is wrong

    def add(self, stack, samples, whole=True):
        """@whole: as far as the recording says."""
        stack = [(file.rpartition("/")[2], name.rpartition(".")[2], line)
                 for file, name, line in stack]
        first = next((i for i, frame in enumerate(stack) if frame[0] in FILES), None)
        inner = stack[first:] if first is not None else []
        self.samples += samples
        self.unread += samples if not whole else 0
        if not inner or inner[0][1] == "<module>":
            self.outside += samples if whole else 0
            return
        wrong = wrong_chain(stack, first) if whole else None
        wrong = wrong or wrong_function(inner)
        line = wrong_line(inner)
        if wrong:
            self.functions[f"{wrong} in {shown(stack)}"] += samples
        elif line:
            self.lines[f"{line} in {shown(stack)}"] += samples

    def add_rows(self, rows):
        """Rows of `pathprof export --format=jsonl`."""
        for row in rows:
            frames = [(frame["file"], frame["function"], frame["line"])
                      for frame in row["frames"] if frame["kind"] == "python"]
            self.add(frames, row["samples"], row["frames"][0]["function"] not in CUT)

    @property
    def looked_at(self):
        """Those that can have been found wrong as a whole."""
        return self.samples - self.outside - self.unread

    def __str__(self):
        worst = [*self.functions.most_common(5), *self.lines.most_common(5)]
        return "\n".join([f"{self.functions.total()} of {self.samples} samples have a stack that "
                          f"cannot be, {self.lines.total()} a line that cannot be "
                          f"({self.unread} unread, {self.outside} outside)",
                          *(f"{count:7} {what}" for what, count in worst)])


def verdict(rows):
    found = Verdict()
    found.add_rows(rows)
    return found


def shown(stack):
    return ";".join(f"{name}:{line}" for _, name, line in stack)
