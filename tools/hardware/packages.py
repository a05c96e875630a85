# SPDX-License-Identifier: MIT
"""Debian's packages of the other architecture, unpacked into a folder and never installed.

Of this machine's own release, and of another suite for a machine with a newer kernel and Python.

    CACHE/apt/       apt's state for that architecture: what it would take to install from nothing
    CACHE/debs/      the packages as they came
    CACHE/root/      what they hold: the virtual machine's files, and what a cross build links with
    CACHE/vmlinuz    the kernel
    CACHE/complete   what the above was made from; where it says something else, all is made anew

CACHE is ${XDG_CACHE_HOME:-~/.cache}/pathprof/hardware, of another suite hardware-SUITE. Where packages
come from is apt's configuration on this machine; of another suite, the same archive. Nothing here
needs root.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import interpreters_apt  # noqa: E402

ARCHITECTURE = "arm64"
KERNEL = "linux-image-arm64"
LAYOUT = "1"  # raised when something is unpacked in another way

# What runs in the machine, and what pathprof is built with. apt adds what these need.
PACKAGES = [
    "busybox-static",  # the machine's first process
    "python3",  # what is recorded, and what runs the tests
    "python3-pytest",  # the tests' runner
    "libc6-dev",  # headers and start files
    "libzstd-dev", "libjansson-dev", "libpfm4-dev", "libcmocka-dev",  # as in tools/packages
]


def cache(suite=""):
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pathprof" / ("hardware" + (f"-{suite}" if suite else ""))


def choose_suite(place, suite):
    """The suite that apt() asks, where it is not this machine's own."""
    (place / "apt").mkdir(parents=True, exist_ok=True)
    signed = f"Signed-By: {interpreters_apt.KEYRING}\n" if interpreters_apt.KEYRING.exists() else ""
    if suite:
        (place / "apt" / "list.sources").write_text(
            f"Types: deb\nURIs: {interpreters_apt.mirror()}\nSuites: {suite}\n"
            f"Components: main\n{signed}")


def apt(place, tool, *arguments, **options):
    """One of apt's programs, for the other architecture and without what is installed here."""
    state = place / "apt"
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (place / "debs" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    settings = {
        "APT::Architecture": ARCHITECTURE, "Dir::State": state, "Dir::State::lists": "lists",
        "Dir::State::status": state / "status", "Dir::Cache": state,
        "Dir::Cache::archives": place / "debs", "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false", "APT::Keep-Downloaded-Packages": "true",
        "Acquire::Languages": "none", "Acquire::Retries": "2",
    }
    if (state / "list.sources").exists():
        settings |= {"Dir::Etc::SourceList": state / "list.sources",
                     "Dir::Etc::SourceParts": "/dev/null",
                     "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
    words = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    return subprocess.run([tool, "-q", *words, "-o", f"APT::Architectures::={ARCHITECTURE}",
                           *arguments], check=True, stdin=subprocess.DEVNULL, text=True, **options)


def kernel_package(place):
    """The package that the current kernel's name stands for."""
    told = apt(place, "apt-cache", "depends", KERNEL, stdout=subprocess.PIPE).stdout
    return re.search(r"Depends: (linux-image-\S+)", told)[1]


def download(place, say):
    say("asking apt what there is")
    apt(place, "apt-get", "update", stdout=subprocess.DEVNULL)
    say("downloading the machine's packages, some 90 MB")
    apt(place, "apt-get", "install", "--download-only", "--yes", *PACKAGES,
        stdout=subprocess.DEVNULL)
    apt(place, "apt-get", "download", kernel_package(place), stdout=subprocess.DEVNULL,
        cwd=place / "debs")


def link_inside(root):
    """Absolute links would lead out of the folder: make them relative."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder) / name
            if path.is_symlink() and os.readlink(path).startswith("/"):
                target = root / os.readlink(path).lstrip("/")
                path.unlink()
                path.symlink_to(os.path.relpath(target, folder))


def unpack(place, say):
    say("unpacking them")
    root = place / "root"
    for package in sorted((place / "debs").glob("*.deb")):
        if not package.name.startswith("linux-image-"):
            subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
            continue
        # Of the kernel only itself: every driver that the machine needs is built in.
        whole = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(["tar", "--extract", "--directory", place, "--wildcards",
                        "./boot/vmlinuz-*"], stdin=whole.stdout, check=True)
        whole.stdout.close()
        if whole.wait() != 0:
            raise RuntimeError(f"dpkg-deb cannot read {package}")
        next((place / "boot").glob("vmlinuz-*")).rename(place / "vmlinuz")
    link_inside(root)
    for name in ("bin", "sbin", "lib"):  # from Debian 13 on packages hold nothing there
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")


def compile_python(root, python, say):
    """Byte code, so that the machine need not make it: where this interpreter is of its kind."""
    own = f"usr/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    if not (root / own).is_dir():
        return
    say("compiling its Python library")
    for folder in (own, "usr/lib/python3"):
        subprocess.run([python, "-m", "compileall", "-qq", "-j", "1", "--invalidation-mode",
                        "unchecked-hash", "-s", root, "-x", "/test/|lib2to3/tests", root / folder],
                       check=False)


def is_complete(place, made_from):
    """Was it made of that, and is it all there? Somebody may have tidied up."""
    complete = place / "complete"
    return complete.exists() and complete.read_text() == made_from and \
        (place / "vmlinuz").exists() and (place / "root").is_dir()


def ready(python, say, suite=""):
    """The cache, made where it is not there. Raises what stopped it."""
    place = cache(suite)
    made_from = " ".join([LAYOUT, KERNEL, *PACKAGES]) + "\n"
    complete = place / "complete"
    if is_complete(place, made_from):
        return place
    for folder in ("root", "boot", "debs"):
        shutil.rmtree(place / folder, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    complete.unlink(missing_ok=True)
    choose_suite(place, suite)
    download(place, say)
    unpack(place, say)
    compile_python(place / "root", python, say)
    shutil.rmtree(place / "debs")
    complete.write_text(made_from)
    return place
