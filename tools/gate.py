# SPDX-License-Identifier: MIT
"""What the gates have in common: the files of the tree, C without its comments, the exceptions.

A gate is a script check_NAME.py with a function check(root) that returns complaints, one sentence
each, beginning with the place ("src/x.c:12: ..."). It passes where there is none.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

_COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def tree_files(root, *suffixes):
    """The files that are, or could be, committed, with one of these suffixes; all without any."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout
        paths = [root / name for name in listing.split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if path.is_file()]
    return sorted(p for p in paths if p.is_file() and (not suffixes or p.suffix in suffixes))


def place(root, path, line=None):
    """How a complaint names a place."""
    name = path.relative_to(root).as_posix()
    return name if line is None else f"{name}:{line}"


def _blank(match, keep_strings):
    text = match.group()
    if text[0] in "\"'":
        return text if keep_strings else text[0] + text[0]
    return "\n" * text.count("\n") or " "


def c_code(text, keep_strings=False):
    """C without comments and, unless asked, what stands in strings; lines stay where they are."""
    return _COMMENT_OR_STRING.sub(lambda match: _blank(match, keep_strings), text)


def line_comments(text):
    """The lines with a comment that begins with two slashes."""
    return [text.count("\n", 0, match.start()) + 1
            for match in _COMMENT_OR_STRING.finditer(text) if match.group().startswith("//")]


def exceptions(root, gate):
    """{(place, what): reason} of a gate, from tools/exceptions."""
    listed = {}
    path = root / "tools" / "exceptions"
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split(None, 3)
        if words and words[0] == gate:
            if len(words) < 4:
                raise SystemExit(f"tools/exceptions: no reason given: {line}")
            listed[words[1], words[2]] = words[3]
    return listed


def main(check):
    """The gate as a program."""
    parser = argparse.ArgumentParser(description=sys.modules[check.__module__].__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    complaints = check(parser.parse_args().root.resolve())
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
