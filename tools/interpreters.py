#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make interpreters: makes and caches CPython interpreters for the tests.

Usage: tools/interpreters.py [--minutes N] [NAME...]     --list names them, and says which are there

They come from Debian's suites: packages, unpacked with the C library they were built for so that
they run on this machine as they are, and source packages, built here in a minute or two each. The
cache is PATHPROF_INTERPRETERS, else pathprof/interpreters in XDG_CACHE_HOME (~/.cache): one
directory each, complete once it has an interpreter.json:

  { "name", "version", "kind", "python": "PATH below the directory", "include": [..],
    "libpython": "PATH"|null, "environment": {..}, "made": "how" }

What is there stays; what a run that was killed left is made again. One that can't be had is said in
a sentence, and the others are made. Status: 0 all that were asked are there, 1 some are not.
"""

import argparse
import concurrent.futures
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

from interpreters_apt import Suite, Unavailable, command

VERSION = 1  # of what is made here: another one makes all anew
# Fast to build and like the real thing; the standard library's tests are half of its size.
CONFIGURE = ["-q", "--disable-test-modules", "--without-ensurepip", "CFLAGS=-O2"]
BUILD_SECONDS = 1200
# Pulled in, and of no use for a test.
WITHOUT = ("libc6-dev", "linux-libc-dev", "libcrypt-dev", "tk8.6-blt2.5", "fonts-dejavu-core",
           "fonts-dejavu-mono", "debconf", "libpython3-stdlib")
PRUNED = ("usr/lib/debug", "usr/share/doc", "usr/share/man", "usr/share/locale",
          "usr/share/fonts", "usr/share/info", "usr/share/i18n", "usr/share/tcltk", "etc", "var")
ASK = """
import asyncio, ctypes, json, platform, sys, sysconfig, threading
print(json.dumps({"version": platform.python_version(),
                  "free": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                  "debug": hasattr(sys, "gettotalrefcount")}))
"""


def packaged(number, suite, *more, letter=""):
    """An interpreter out of Debian's packages; letter "d": the one built --with-pydebug."""
    packages = [f"python{number}", f"libpython{number}-dev", f"python{number}-venv", *more]
    if letter:
        packages += [f"python{number}-dbg", f"libpython{number}-dbg"]
    return {"how": "packages", "suites": [suite], "packages": packages,
            "program": f"python{number}{letter}", "kind": "debug" if letter else "gil",
            "environment": {}}


def built(number, suites, kind, *options, compiler=None):
    """An interpreter built here from Debian's source package."""
    return {"how": "source", "suites": suites, "packages": [f"python{number}"],
            "program": f"python{number}{'t' if kind == 'free-threaded' else ''}", "kind": kind,
            "options": options, "environment": {}, "compiler": compiler}


def same_as(other, kind, environment):
    """Another one's program, run with an environment that makes it a different interpreter."""
    return {"how": "same", "other": other, "kind": kind, "environment": environment}


SID = ["sid", "testing"]
PLAN = {
    "3.13": packaged("3.13", "trixie", "python3-greenlet", "python3-gevent"),
    "3.14": packaged("3.14", "sid", "python3-greenlet", "python3-gevent"),
    "3.15": packaged("3.15", "sid", "python3-greenlet"),
    "3.13t": built("3.13", ["trixie"], "free-threaded", "--disable-gil"),
    "3.14t": built("3.14", SID, "free-threaded", "--disable-gil"),
    "3.15t": built("3.15", SID, "free-threaded", "--disable-gil"),
    "3.13-shared": built("3.13", ["trixie"], "shared", "--enable-shared"),
    "3.14-debug": packaged("3.14", "sid", letter="d"),
    "3.15-jit": same_as("3.15", "jit", {"PYTHON_JIT": "1"}),
    "3.14-tail-call": built("3.14", SID, "tail-call", "--with-tail-call-interp",
                            compiler="clang-19"),
}

# Made only by name: the suites list their sources, but mirrors do not always have the archives.
SCARCE = ("3.14t", "3.15t", "3.14-tail-call")


def cache():
    """The directory that holds them all."""
    named = os.environ.get("PATHPROF_INTERPRETERS")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named).absolute() if named else base / "pathprof" / "interpreters"


def read(directory):
    """What its interpreter.json says, or None where it is not complete, or of another time."""
    try:
        about = json.loads((directory / "interpreter.json").read_text())
    except (OSError, ValueError):
        return None
    return about if about.get("made_by") == VERSION else None


def present():
    """Every complete interpreter in the cache, by name."""
    found = {path.parent.name: read(path.parent)
             for path in sorted(cache().glob("*/interpreter.json"))}
    return {name: about for name, about in found.items() if about}


class Maker:
    """One run: the suites that it has looked into, and the time that it has."""

    def __init__(self, directory, seconds):
        self.directory, self.work = directory, directory / ".work"
        self.end = time.monotonic() + seconds
        self.suites, self.lock = {}, threading.Lock()
        self.suite_locks, self.source_lock = {}, threading.Lock()

    def left(self, most):
        left = min(most, self.end - time.monotonic())
        if left <= 0:
            raise Unavailable("the time was up")
        return left

    def suite(self, name):
        """A suite with its index fetched, once."""
        with self.lock:
            lock = self.suite_locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self.suites:
                suite = Suite(name, self.work)
                try:
                    suite.update()
                    self.suites[name] = suite
                except Unavailable as why:
                    self.suites[name] = why
            if isinstance(self.suites[name], Unavailable):
                raise self.suites[name]
            return self.suites[name]

    def source(self, plan):
        """The first suite's archive that can be had."""
        kept = self.directory / ".sources"
        kept.mkdir(exist_ok=True)
        failures = []
        with self.source_lock:
            for name in plan["suites"]:
                try:
                    return self.suite(name).source(plan["packages"][0], kept)
                except Unavailable as why:
                    failures.append(f"{name}: {why}")
        raise Unavailable("no source; " + "; ".join(failures))

    def from_packages(self, name, plan):
        """Unpacked; its program is told where its own dynamic linker and C library are."""
        root, final = self.work / name, self.directory / name
        root.mkdir()
        self.suite(plan["suites"][0]).unpack(plan["packages"], root, WITHOUT)
        for part in PRUNED:
            shutil.rmtree(root / part, ignore_errors=True)
        # Headers of the interpreter alone: the system's are for the system's compiler.
        for header in (root / "usr/include").rglob("*"):
            if header.is_file() and "python" not in str(header.relative_to(root)):
                header.unlink()
        program = root / "usr/bin" / plan["program"]
        asks = Path(command(["patchelf", "--print-interpreter", program], 60).strip())
        linker = next((p for p in root.rglob(asks.name)), None)
        libraries = sorted({p.parent for p in root.glob("**/libc.so.6")}
                           | {p.parent for p in root.glob("usr/lib/**/libz.so.1")})
        if not linker or not libraries:
            raise Unavailable(f"its packages hold no {asks.name}")
        path = ":".join(str(final / p.relative_to(root)) for p in libraries)
            # DT_RPATH, for what is loaded later as well.
        command(["patchelf", "--set-interpreter", final / linker.relative_to(root),
                 "--force-rpath", "--set-rpath", path, program], 60)
        include = [f"usr/include/python{plan['program'][6:]}", "usr/include"]
        return f"usr/bin/{plan['program']}", include, \
            f"Debian {plan['suites'][0]}'s packages, unpacked"

    def from_source(self, name, plan):
        """Configured, built and installed as everybody would, but fast."""
        compiler = plan["compiler"]
        if compiler and not shutil.which(compiler):
            raise Unavailable(f"no compiler {compiler} is installed here")
        archive = self.source(plan)
        tree, final = self.work / name, self.directory / name
        with tarfile.open(archive) as tar:
            tar.extractall(tree)
        source, = tree.iterdir()
        options = list(plan["options"])
        if "--enable-shared" in options:
            options.append(f"LDFLAGS=-Wl,-rpath,{final}/lib")
        environment = os.environ | ({"CC": compiler} if compiler else {})
        start = time.monotonic()
        for words in (["./configure", f"--prefix={final}", *CONFIGURE, *options],
                      ["make", "-s", f"-j{os.cpu_count()}", "build_all"],
                      ["make", "-s", "altinstall", f"DESTDIR={tree}/out"]):
            command(words, self.left(BUILD_SECONDS), cwd=source, env=environment)
        installed = self.work / f"{name}.out"
        (tree / "out" / final.relative_to("/")).rename(installed)
        shutil.rmtree(tree)
        installed.rename(tree)
        for static in tree.rglob("libpython*.a"):
            static.unlink()
        include = [str(p.relative_to(tree)) for p in tree.glob("include/python*")]
        return f"bin/{plan['program']}", include, \
            f"{archive.name} of Debian, {' '.join(plan['options'])}, " \
            f"built here in {time.monotonic() - start:.0f} s"

    def from_other(self, name, plan):
        other = read(self.directory / plan["other"])
        if not other:
            raise Unavailable(f"{plan['other']}, whose program it is, is not there")
        (self.work / name).mkdir()
        up = f"../{plan['other']}/"
        return up + other["python"], [up + i for i in other["include"]], \
            f"{plan['other']} with {' '.join(f'{k}={v}' for k, v in plan['environment'].items())}"

    def make(self, name):
        """Make one; what it is. Its directory takes its place when it is whole, the json last."""
        plan, temporary, final = PLAN[name], self.work / name, self.directory / name
        shutil.rmtree(temporary, ignore_errors=True)
        self.left(1)
        how = {"packages": self.from_packages, "source": self.from_source, "same": self.from_other}
        python, include, made = how[plan["how"]](name, plan)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        said = json.loads(command([final / python, "-c", ASK], 120,
                                  env=os.environ | plan["environment"]))
        if (said["free"], said["debug"]) != (plan["kind"] == "free-threaded",
                                             plan["kind"] == "debug"):
            raise Unavailable(f"what was made is not a {plan['kind']} build")
        program = plan.get("program")
        library = next((p for p in sorted(final.rglob(f"lib{program}.so.1*"))), None)
        about = {"made_by": VERSION, "name": name, "version": said["version"],
                 "kind": plan["kind"], "python": python, "include": include,
                 "libpython": str(library.relative_to(final)) if library else None,
                 "environment": plan["environment"], "made": made}
        part = final / ".interpreter.json"
        part.write_text(json.dumps(about, indent=2) + "\n")
        part.rename(final / "interpreter.json")
        return about


def say(name, text):
    print(f"{name:15} {text}", flush=True)


def make_one(maker, name):
    start = time.monotonic()
    try:
        about = maker.make(name)
    except (Unavailable, OSError, ValueError, tarfile.TarError) as why:
        shutil.rmtree(maker.work / name, ignore_errors=True)
        if not read(maker.directory / name):
            shutil.rmtree(maker.directory / name, ignore_errors=True)
        say(name, f"can't be had: {why}")
        return False
    say(name, f"{about['version']} ({about['made']}), {time.monotonic() - start:.0f} s")
    return True


def make_all(maker, names):
    """Packages first, side by side, then the builds, two at a time: a configure runs on one CPU."""
    made = []
    for how, workers in (("packages", 3), ("same", 1), ("source", 2)):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            made += pool.map(lambda name: make_one(maker, name),
                             [name for name in names if PLAN[name]["how"] == how])
    return sum(made)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=40, help="stop then, with what is there")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("name", nargs="*", help=f"of {' '.join(PLAN)}; all but "
                        f"{', '.join(SCARCE)} without any")
    options = parser.parse_args()
    asked = options.name or [name for name in PLAN if name not in SCARCE]
    unknown = [name for name in asked if name not in PLAN]
    if unknown:
        parser.error(f"no {' '.join(unknown)}; there are {' '.join(PLAN)}")
    directory = cache()
    if options.list:
        for name in PLAN:
            about = read(directory / name)
            say(name, f"{about['version']} ({about['made']})" if about else "not made")
        return 0
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [name for name in asked if not read(directory / name)]
        for name in asked:
            if name not in missing:
                say(name, f"{read(directory / name)['version']} is there")
        maker = Maker(directory, options.minutes * 60)
        shutil.rmtree(maker.work, ignore_errors=True)
        maker.work.mkdir()
        made = make_all(maker, missing)
        shutil.rmtree(maker.work, ignore_errors=True)
    print(f"{len(asked) - len(missing) + made} of {len(asked)} interpreters in {directory}")
    return 0 if made == len(missing) else 1


if __name__ == "__main__":
    sys.exit(main())
