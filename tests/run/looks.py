# SPDX-License-Identifier: MIT
"""Looks at a stack, by the walk and by the program itself at the same moment: are they the same?"""

from conftest import BUILD

PROBE = BUILD / "src" / "core" / "cpython" / "libcpython-probe.so"
END_ROOT, END_TRUNCATED = 0, 1
ROOM = 1024  # frames


def shown(text):
    """As names stand in a report: control characters and lone surrogates are escaped."""
    def one(character):
        number = ord(character)
        if number < 0x20 or 0x7f <= number < 0xa0:
            return f"\\x{number:02x}"
        return f"\\u{number:04x}" if 0xd800 <= number < 0xe000 else character
    return "".join(map(one, text))


def side_by_side(walked, truth):
    rows = max(len(walked), len(truth))
    pad = [None] * rows
    return "\n".join(f"{'  ' if a == b else '! '}{str(a):70} {b}"
                     for a, b in zip((walked + pad)[:rows], (truth + pad)[:rows]))


def check(looks, end=END_ROOT, held=(0, 1)):
    """Each look's frames, end and lock; @held: how looks are taken, with the lock and without."""
    assert {look["held"] for look in looks} == set(held)
    for look in looks:
        walked = [frame[:3] for frame in look["walked"]]
        truth = [[shown(file), shown(name), line] for file, name, line in look["truth"]]
        truth = truth if end == END_ROOT else truth[:ROOM]
        assert walked == truth, "\n" + side_by_side(walked, truth)
        assert look["end"] == end
        assert look["holds_lock"] == look["held"]
