#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documents against the code: subcommands and options in man pages and completion, and the
reverse; the words of the recording's format in pathprof-recording(5)."""

import re

import gate

# options_parse() adds these to every command; documented once, in pathprof(1).
COMMON = {"--quiet", "--verbose", "--color", "--no-pager", "--help", "--version"}

COMMAND = re.compile(r'\{\s*"([a-z-]+)",\s*cmd_\w+')
TABLE = re.compile(r"struct option_spec \w+\[\]\s*=\s*\{(.*?)\n\s*\};", re.DOTALL)
LONG = re.compile(r"^\s*(?:'.'|0|\.short_name\s*=\s*[^,]+)?\s*,?\s*"
                  r'(?:\.long_name\s*=\s*)?"([a-z-]+)"')
SHORT = re.compile(r"^\s*(?:\.short_name\s*=\s*)?'(.)'")
TAGGED = re.compile(r"^\.TP.*\n(.*)$", re.MULTILINE)
COMPLETED = re.compile(r"^\s*([a-z-]+)\) *options='([^']*)'", re.MULTILINE)
DEFINITION = re.compile(r'id \d+ "(\w+)"((?:(?!id \d+ ").)*)', re.DOTALL)
EXPORTER = re.compile(r'struct exporter \w+ = \{\s*(?:\.name = )?"([a-z]+)"')
COMPLETED_FORMATS = re.compile(r"--format\) echo '([a-z ]*)'")
REASON = re.compile(r'X\((?:LOSS|DEGRADED)_\w+, "(\w+)"')


def read(root, name):
    """The text of a file; none where there is no file, which then lacks everything."""
    return (root / name).read_text() if (root / name).exists() else ""


def subcommands(root):
    return COMMAND.findall(read(root, "src/tool/cli/main.c"))


def entries(table):
    """The outermost braces of a table's text."""
    depth, start = 0, 0
    for at, letter in enumerate(table):
        if letter == "{":
            depth += 1
            start = at if depth == 1 else start
        elif letter == "}":
            depth -= 1
            if depth == 0:
                yield table[start + 1:at]


def options_in_code(text):
    """{--long: -s or None} of the option tables in a C file."""
    options = {}
    for table in TABLE.findall(gate.c_code(text, keep_strings=True)):
        for entry in entries(table):
            long_name, short = LONG.match(entry), SHORT.match(entry)
            if long_name:
                options["--" + long_name.group(1)] = "-" + short.group(1) if short else None
    return options


def plain_roff(text):
    text = re.sub(r'\\f[BIRP]|\\f\([A-Z]{2}|\\&|^\.(?:B|BR|BI|IR|I|RB) ', "", text,
                  flags=re.MULTILINE)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


def options_in_page(text):
    """The options that a man page describes: what begins with a hyphen in the tags of .TP."""
    words = " ".join(line for line in TAGGED.findall(plain_roff(text)) if line.startswith("-"))
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", words))


def compare(where, what, have, want):
    return [f"{where}: lacks {name} ({what})" for name in sorted(want - have)] + \
           [f"{where}: has {name}, which is not there ({what})" for name in sorted(have - want)]


def names(options):
    return set(options) | {short for short in options.values() if short}


def check_options(root, command, completed):
    """One subcommand's options: code, page and completion."""
    source = root / "src/tool/cli" / f"{command.replace('-', '_')}.c"
    page = root / "docs/man" / f"pathprof-{command}.1"
    if not source.exists():
        return [f"{gate.place(root, source)}: does not exist, but {command} is in main.c"]
    if not page.exists():
        return [f"{gate.place(root, page)}: does not exist, but {command} is in main.c"]
    code = options_in_code(source.read_text())
    documented = options_in_page(page.read_text())
    return compare(gate.place(root, page), f"options of {command}", documented, names(code)) + \
        compare("docs/completion/pathprof.bash", f"options of {command}",
                completed.get(command, set()), names(code))


def check_commands(root):
    commands = subcommands(root)
    completion = read(root, "docs/completion/pathprof.bash")
    completed = {name: set(words.split()) for name, words in COMPLETED.findall(completion)}
    complaints = compare("docs/completion/pathprof.bash", "subcommands",
                         completed.keys() - {"common"}, set(commands))
    overview = plain_roff(read(root, "docs/man/pathprof.1"))
    pages = {p.name for p in (root / "docs/man").glob("pathprof-*.1")}
    complaints += compare("docs/man", "pages of subcommands", pages,
                          {f"pathprof-{name}.1" for name in commands})
    if not commands:
        complaints.append("src/tool/cli/main.c: no table of subcommands found")
    for command in commands:
        complaints += check_options(root, command, completed)
        if f"pathprof-{command}(1)" not in overview.replace(" (", "("):
            complaints.append(f"docs/man/pathprof.1: does not name pathprof-{command}(1)")
    complaints += [f"docs/man/pathprof.1: lacks {name}" for name in sorted(COMMON)
                   if name not in options_in_page(read(root, "docs/man/pathprof.1"))]
    return complaints


def check_exporters(root):
    """The formats of export: code, page and completion."""
    code = {name for path in (root / "src/tool/render").glob("*.c")
            for name in EXPORTER.findall(path.read_text())}
    page = plain_roff(read(root, "docs/man/pathprof-export.1"))
    formats = page[page.index(".SH FORMATS"):] if ".SH FORMATS" in page else ""
    documented = set(re.findall(r"^\.TP\n([a-z]+)$", formats[4:].split(".SH ")[0], re.MULTILINE))
    completion = read(root, "docs/completion/pathprof.bash")
    completed = set(" ".join(COMPLETED_FORMATS.findall(completion)).split())
    return compare("docs/man/pathprof-export.1", "export formats", documented, code) + \
        compare("docs/completion/pathprof.bash", "export formats", completed, code)


def words_of_format(root):
    """The words that pathprof-recording(5) must explain, each with where it comes from."""
    ctf = read(root, "src/core/event/ctf.h")
    definitions = ctf[ctf.index("DEFINITIONS"):ctf.index("Strings are UTF-8")]
    for name, fields in DEFINITION.findall(definitions):
        yield name, "ctf.h"
        for field in re.findall(r"\b([a-z_]+) (?:u8|u32|u64|string)\b", fields):
            yield field, f"ctf.h, {name}"
    for key in REASON.findall(read(root, "src/core/event/event.h")):
        yield key, "event.h"
    manifest = read(root, "ARCHITECTURE.md")
    manifest = manifest[manifest.index('{ "version": 1'):]
    for key in re.findall(r'"(\w+)"', re.sub(r": *\"[^\"]*\"(\|\"[^\"]*\")*",
                                              ":", manifest[:manifest.index("```")])):
        yield key, "ARCHITECTURE.md, manifest"


def check_format(root):
    page = plain_roff(read(root, "docs/man/pathprof-recording.5"))
    known = set(re.findall(r"\w+", page))
    return [f"docs/man/pathprof-recording.5: lacks {word} ({source})"
            for word, source in dict(words_of_format(root)).items() if word not in known]


def check(root):
    return check_commands(root) + check_exporters(root) + check_format(root)


if __name__ == "__main__":
    gate.main(check)
