#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make cross: pathprof for aarch64, in build-aarch64.

The compiler is Debian's cross compiler (tools/cross/), the libraries are those of packages.py.
"""

import subprocess
import sys
from pathlib import Path

import packages

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-aarch64"
CROSS_FILE = ROOT / "tools" / "cross" / "aarch64-linux-gnu.ini"
LIBRARIES = """# Made by tools/hardware/cross.py: the libraries are in a folder, not installed.
[properties]
sys_root = '{root}'
pkg_config_libdir = ['{root}/usr/lib/aarch64-linux-gnu/pkgconfig', '{root}/usr/share/pkgconfig']

[built-in options]
c_args = ['--sysroot={root}']
c_link_args = ['--sysroot={root}']
"""


def say(text):
    print(text, flush=True)


def quietly(*command):
    """Run a command whose output is of interest only where it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        say(done.stdout)
        done.check_returncode()


def build(place):
    """The finished build tree. Raises CalledProcessError."""
    libraries = place / "libraries.ini"
    libraries.write_text(LIBRARIES.format(root=place / "root"))
    if not (BUILD / "build.ninja").exists():
        quietly("meson", "setup", BUILD, ROOT, "--cross-file", CROSS_FILE,
                "--cross-file", libraries)
    quietly("ninja", "-C", BUILD)
    return BUILD


def main():
    try:
        build(packages.ready(sys.executable, say))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(str(error.cmd[0])).name} failed: {' '.join(map(str, error.cmd))}")
    say(f"{BUILD.name}/pathprof")


if __name__ == "__main__":
    main()
