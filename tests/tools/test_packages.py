# SPDX-License-Identifier: MIT
"""tools/install-packages installs for root, tells others, is silent where all is there."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "install-packages"

LIST = """# a comment
build   there        -           it is installed
build   old          node>=18    wants a newer node
build   replaced     node>=16    node will do
check   absent       -           some reason
check   by-command   node        any node will do
"""

COMMANDS = {
    "dpkg-query": 'for word; do :; done; case $word in there) printf "ii ";; *) exit 1;; esac',
    "node": "echo v17.3.1",
    "apt-get": 'echo "apt-get $*" >>"$LOG"',
    "id": 'echo "$FAKE_UID"',
}


@pytest.fixture
def install(tmp_path):
    """Run the script for groups, as a user; (finished process, what apt-get was asked)."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "list").write_text(LIST)
    for name, body in COMMANDS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("sed", "dirname"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")

    def run(*groups, uid=0, without=()):
        for name in without:
            (tmp_path / "bin" / name).unlink()
        log = tmp_path / "log"
        environment = {"PATH": str(tmp_path / "bin"), "LOG": str(log), "FAKE_UID": str(uid),
                       "PATHPROF_PACKAGES": str(tmp_path / "list")}
        done = subprocess.run(["/bin/sh", SCRIPT, *groups], capture_output=True, text=True,
                              check=False, env=environment)
        return done, log.read_text() if log.exists() else ""
    return run


def test_packages__root_installs_what_is_missing(install):
    done, asked = install("build", "check")
    assert done.returncode == 0
    assert asked.splitlines()[0].split()[-1] == "update"
    assert asked.splitlines()[1].split()[-2:] == ["old", "absent"]
    assert "--no-install-recommends" in asked
    assert "missing: absent (some reason)" in done.stderr


def test_packages__ordinary_user_is_told(install):
    done, asked = install("check", uid=1000)
    assert (done.returncode, asked) == (1, "")
    assert "sudo apt-get install --no-install-recommends absent\n" in done.stderr


def test_packages__nothing_missing_says_nothing(install):
    done, asked = install()
    assert (done.returncode, done.stdout, done.stderr, asked) == (0, "", "", "")


def test_packages__not_debian_is_said(install):
    done, _ = install("check", without=["apt-get"])
    assert done.returncode == 1 and "not a Debian" in done.stderr and "absent" in done.stderr


def test_packages__list_is_well_formed():
    groups = {"build", "check", "hardware", "interpreters"}
    lines = [line.split(None, 3) for line in (SCRIPT.parent / "packages").read_text().splitlines()
             if line and not line.startswith("#")]
    assert all(len(line) == 4 and line[0] in groups for line in lines)
    assert len({(line[0], line[1]) for line in lines}) == len(lines)
    assert os.access(SCRIPT, os.X_OK)
