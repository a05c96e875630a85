# SPDX-License-Identifier: MIT
"""Runs N code objects, each for a moment, that die at once: their addresses come back.

  recycled_code.py N     prints how many there were and at how many addresses

Code object I is called from line 2 + I % PART of the function dispatch_(I / PART), which lives on: a
stack holds its own truth. What the code object is called, says look_of().
"""

import mmap
import sys
import types

PART = 10000  # lines of one dispatcher
KINDS = 4


def look_of(i):
    """(file, function, line of the body) of code object I."""
    kind = i % KINDS
    if kind == 0:  # equal names, different lines
        return "<same>", "same", 2 + 10 * i
    if kind == 1:  # equal lines, different names
        return "<same>", f"name_{i}", 2
    if kind == 2:  # equal names and lines, different files
        return f"<file {i}>", "same", 2
    # equal first line, name and file: the line table alone differs
    return "<same>", "same", 3 + i // KINDS % 97


def template(blank):
    lines = "\n" * blank
    space = {}
    exec(compile(f"def same(page):\n{lines}    page[0] = 1\n", "<same>", "exec"), space)
    return space["same"].__code__


def code_of(i, templates):
    file, name, line = look_of(i)
    if i % KINDS == 3:
        return templates[line - 2].replace()
    return templates[0].replace(co_filename=file, co_name=name, co_qualname=name,
                                co_firstlineno=line - 1)


def main(number):
    templates = [template(blank) for blank in range(99)]
    addresses = set()
    space = globals()

    def run(i):
        code = code_of(i, templates)
        addresses.add(id(code))
        page = mmap.mmap(-1, 4096)
        types.FunctionType(code, space)(page)  # one page fault
        page.close()

    for part in range(0, number, PART):
        calls = "\n".join(f"    run({i})" for i in range(part, part + PART))
        name = f"dispatch_{part // PART}"
        exec(compile(f"def {name}(run):\n{calls}\n", "<dispatch>", "exec"), space)
        space[name](run)
    print(number, len(addresses))


if __name__ == "__main__":
    main(int(sys.argv[1]))
