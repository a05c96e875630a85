# SPDX-License-Identifier: MIT
"""The interpreters at hand: the system's, those that PATHPROF_PYTHONS names, a version manager's,
and those that `make interpreters` keeps (tools/interpreters.py says where and how)."""

import functools
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = "/usr/bin/python3"
# What pathprof reads: final releases of these, each with and without the interpreter lock where
# both exist.
SUPPORTED = {(3, 11), (3, 12), (3, 13), (3, 14), (3, 15)}
SECONDS = 60
ASK = """
import platform, sys
try:
    import sysconfig
    includes = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    shared = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var(
        "Py_ENABLE_SHARED") else None
    library = "%s/%s" % (sysconfig.get_config_var("LIBDIR"), shared) if shared else ""
except ImportError:
    includes, free, library = [], False, ""
print("%s|%s|%d|%d|%s|%s|%s" % (sys.version_info[0], sys.version_info[1], free,
      hasattr(sys, "gettotalrefcount"), platform.python_version(), ":".join(includes), library))
"""


@dataclass(frozen=True)
class Interpreter:
    """One CPython; str() is the path of its program."""

    name: str  # unique, for people
    path: str
    number: tuple  # (3, 13)
    version: str  # "3.13.5"
    free_threaded: bool
    debug: bool
    include: tuple
    libpython: str | None  # a shared one
    kind: str  # of build: "gil", "free-threaded", "debug", "shared", "jit"
    environment: dict = field(hash=False, default_factory=dict)  # without it, another interpreter

    def __str__(self):
        return self.path

    __fspath__ = __str__

    @property
    def supported(self):
        return self.number in SUPPORTED and re.fullmatch(r"[0-9.]+", self.version) is not None

    def run(self, *arguments, **options):
        """Run it; the finished process, output as text."""
        options = {"capture_output": True, "text": True, "timeout": 300, "check": False,
                   "stdin": subprocess.DEVNULL, "env": os.environ | self.environment, **options}
        return subprocess.run([self.path, *map(str, arguments)], **options)

    def has(self, module):
        return self.run("-c", f"import {module}").returncode == 0

    def linker(self):
        """Its dynamic linker, and where it looks for libraries, as options of a compiler's."""
        said = subprocess.run(["readelf", "-ld", self.path], capture_output=True, text=True,
                              timeout=SECONDS, check=True).stdout
        interpreter = re.search(r"interpreter: (\S+?)\]", said)
        paths = re.search(r"\(R(?:UN)?PATH\).*\[(.*)\]", said)
        options = [f"-Wl,--dynamic-linker={interpreter.group(1)}"]
        if paths:
            options += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{paths.group(1)}"]
        return options


def _ask(path, environment):
    done = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, env=os.environ | environment, check=False)
    answer = done.stdout.strip().split("|")
    return answer if done.returncode == 0 and len(answer) == 7 else None


def _interpreter(path, about=None):
    """The interpreter at @path, or None; @about: what is known of it better than it says itself."""
    about = {"name": None, "include": None, "libpython": None, "kind": None, "environment": {},
             **(about or {})}
    answer = _ask(path, about["environment"])
    if not answer:
        return None
    major, minor, free, debug, version, includes, shared = answer
    free, debug = free == "1", debug == "1"
    name = about["name"] or version + ("t" if free else "") + ("d" if debug else "")
    kind = about["kind"] or ("free-threaded" if free else "debug" if debug else "gil")
    include = about["include"] or [i for i in includes.split(":")
                                   if (Path(i) / "Python.h").exists()]
    libpython = about["libpython"] or (shared if shared and os.path.exists(shared) else None)
    return Interpreter(name, path, (int(major), int(minor)), version, free, debug,
                       tuple(include), libpython, kind, about["environment"])


def _cached():
    named = os.environ.get("PATHPROF_INTERPRETERS")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = Path(named) if named else base / "pathprof" / "interpreters"
    for file in sorted(directory.glob("*/interpreter.json")):
        about, home = json.loads(file.read_text()), file.parent
        about["include"] = [os.path.normpath(home / i) for i in about["include"]]
        about["libpython"] = about["libpython"] and str(home / about["libpython"])
        yield _interpreter(os.path.normpath(home / about["python"]), about)


def _others():
    named = [p for p in os.environ.get("PATHPROF_PYTHONS", "").split(":") if p]
    managed = map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python")))
    for path in (*named, *managed):
        if os.access(path, os.X_OK):
            yield _interpreter(path)


@functools.cache
def interpreters():
    """Every CPython at hand once, the system's first."""
    system = _interpreter(SYSTEM if os.access(SYSTEM, os.X_OK) else shutil.which("python3"))
    found = {}
    for one in (system, *_others(), *_cached()):
        if not one:
            continue
        key = os.path.realpath(one.path), tuple(sorted(one.environment.items()))
        if key not in found:
            names = {other.name for other in found.values()}
            if one.name in names:  # two of one version
                one = Interpreter(**{**vars(one), "name": f"{one.name}-{len(found)}"})
            found[key] = one
    return list(found.values())


def supported():
    return [one for one in interpreters() if one.supported]


def unsupported():
    return [one for one in interpreters() if not one.supported]
