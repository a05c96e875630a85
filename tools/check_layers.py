#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include whom: the table of rooms in ARCHITECTURE.md against every #include in src/."""

import re

import gate

ROW = re.compile(r"^\| `([a-z]+/[a-z]+)` \|.*\| ([^|]*) \|$", re.MULTILINE)
ALONE = re.compile(r"From `([a-z/]+)` the ([a-z]+) may include `([a-z_]+\.h)` alone")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def read_table(text):
    """({room: rooms it may include}, {(room, other room): the one header of it})"""
    rooms = {room: set(re.findall(r"`([a-z/]+)`", may)) for room, may in ROW.findall(text)}
    alone = {}
    for other, name, header in ALONE.findall(text):
        for room in rooms:
            if room.endswith("/" + name):
                alone[room, other] = f"{other}/{header}"
    return rooms, alone


def room_of(rooms, name):
    """The room of a path below src/, None where it is in none."""
    return "/".join(name.split("/")[:2]) if "/".join(name.split("/")[:2]) in rooms else None


def check_include(rooms, alone, name, header):
    """What is wrong with file NAME including HEADER, None if nothing; both relative to src/."""
    room, other = room_of(rooms, name), room_of(rooms, header)
    if room is None:
        return "stands in no room of ARCHITECTURE.md"
    if other is None:
        return f'"{header}" is in no room of ARCHITECTURE.md (paths begin below src/)'
    if other == room:
        return None
    if other not in rooms[room]:
        return f"{room} may not include {other} ({header})"
    if alone.get((room, other), header) != header:
        return f"{room} may include {alone[room, other]} alone, not {header}"
    return None


def check(root):
    rooms, alone = read_table((root / "ARCHITECTURE.md").read_text())
    complaints = [f"ARCHITECTURE.md: {room} may include {other}, which is no room"
                  for room, may in rooms.items() for other in sorted(may - rooms.keys())]
    complaints += [f"ARCHITECTURE.md: src/{room} does not exist"
                   for room in rooms if not (root / "src" / room).is_dir()]
    if not rooms:
        complaints.append("ARCHITECTURE.md: no table of rooms found")
    for path in gate.tree_files(root, ".c", ".h"):
        name = path.relative_to(root).as_posix()
        if not name.startswith("src/"):
            continue
        text = gate.c_code(path.read_text(), keep_strings=True)
        for match in INCLUDE.finditer(text):
            if name.endswith("_test.c") and (root / "tests/support" / match.group(1)).is_file():
                continue  # what tests share belongs to no room
            wrong = check_include(rooms, alone, name.removeprefix("src/"), match.group(1))
            if wrong:
                line = text.count("\n", 0, match.start(1)) + 1
                complaints.append(f"{name}:{line}: {wrong}")
    return complaints


if __name__ == "__main__":
    gate.main(check)
