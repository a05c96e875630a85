#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Words that must not stand somewhere: calls that a signal handler, a library or anybody may not
make, comments and types of another style, files without a licence line, and what a merge left."""

import re
from fnmatch import fnmatch

import gate

HEAP = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf posix_memalign " \
       "aligned_alloc alloca"
STDIO = "printf fprintf vprintf vfprintf dprintf puts fputs putchar fopen fdopen fclose fwrite " \
        "fread fflush perror syslog"
LOCKS = "pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_cond_wait " \
        "sem_wait pthread_join"
LOADER = "dlopen dl_iterate_phdr dladdr backtrace"
UNBOUNDED = "strcpy strcat stpcpy sprintf vsprintf gets strtok alloca atoi atol atoll atof rand " \
            "srand tmpnam mktemp localtime gmtime ctime asctime"

# (files, but not these, calls, why not)
CALLS = [
    (["src/*"], [], UNBOUNDED, "no bound, no error or no reentrancy"),
    (["src/agent/*"], [], f"{HEAP} {STDIO} {LOADER}",
     "the agent allocates nothing, prints nothing and leaves the loader alone"),
    (["src/agent/capture/*", "src/agent/sources/*", "src/core/cpython/*", "src/core/memory/*",
      "src/core/base/load.*"], ["*/reader*", "*_reader*"],
     f"{LOCKS} snprintf vsnprintf getenv setlocale exit abort",
     "may run in a signal handler, which never waits"),
    (["src/core/*", "src/agent/*", "src/tool/*"], ["src/tool/cli/*"],
     "exit quick_exit printf vprintf puts putchar perror err errx warn warnx",
     "a library never prints and never exits"),
]

# (files, but not these, pattern in code without comments and strings, why not)
PATTERNS = [
    (["src/core/*", "src/agent/*", "src/tool/*"], ["src/tool/cli/*"], r"\b(?:stdout|stderr)\b",
     "a library never prints"),
    (["src/*"], [], r"\btypedef\s+struct\b", "structs have no typedef"),
    (["src/*"], ["src/core/cpython/*"], r'\bPyObject\b|\bPyThreadState\b|\b_PyInterpreterFrame\b',
     "only core/cpython knows the interpreter's structures"),
]

TESTS = ["*_test.c", "*_fuzz.c"]
LICENCE = "SPDX-License-Identifier: MIT"
UNMERGED = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
LICENSED = {".c", ".h", ".py", ".js", ".mjs", ".ts", ".css", ".sh", ".bash", ".map"}


def applies(name, files, but):
    return any(fnmatch(name, f) for f in files) and not any(fnmatch(name, b) for b in but)


def findings(name, text):
    """(line, word, why not) for each word of a C file that must not stand there."""
    code = gate.c_code(text)
    for files, but, calls, why in CALLS:
        if applies(name, files, but + TESTS):
            pattern = r"(?<![\w.>])(" + "|".join(calls.split()) + r")\s*\("
            for match in re.finditer(pattern, code):
                yield code.count("\n", 0, match.start()) + 1, match.group(1), why
    for files, but, pattern, why in PATTERNS:
        if applies(name, files, but + TESTS):
            for match in re.finditer(pattern, code):
                yield code.count("\n", 0, match.start()) + 1, match.group(), why
    for line in gate.line_comments(text):
        yield line, "//", "comments are /* */"


def check(root):
    complaints = []
    allowed = gate.exceptions(root, "word")
    needed = set()
    for path in gate.tree_files(root):
        name = gate.place(root, path)
        content = path.read_bytes()
        for match in UNMERGED.finditer(content):
            line = content.count(b"\n", 0, match.start()) + 1
            complaints.append(f"{name}:{line}: a merge was left unfinished here")
        script = path.suffix == "" and content[:2] == b"#!"
        if path.suffix not in LICENSED and not script:
            continue
        text = path.read_text()
        if LICENCE not in "\n".join(text.split("\n")[:3]):
            complaints.append(f"{name}:1: no line with {LICENCE}")
        for line, word, why in findings(name, text) if path.suffix in (".c", ".h") else ():
            if (name, word) in allowed:
                needed.add((name, word))
            else:
                complaints.append(f"{name}:{line}: {word}: {why}")
    complaints += [f"tools/exceptions: word {name} {word}: not needed"
                   for name, word in allowed.keys() - needed]
    return complaints


if __name__ == "__main__":
    gate.main(check)
