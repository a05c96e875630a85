# SPDX-License-Identifier: MIT
"""What `meson install` puts under a prefix works from there, without the build tree."""

import os
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, SECONDS


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation, staged and then moved: nothing in it may know where it was built."""
    staging = tmp_path_factory.mktemp("staging")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], cwd=ROOT,
                   check=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                   env=os.environ | {"DESTDIR": str(staging)})
    program = next(staging.rglob("bin/pathprof"))
    moved = tmp_path_factory.mktemp("moved") / "prefix"
    shutil.move(program.parent.parent, moved)
    return moved


def run(prefix, *arguments, **options):
    return subprocess.run([prefix / "bin" / "pathprof", *map(str, arguments)], capture_output=True,
                          text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
                          **options)


@pytest.mark.parametrize("page", [f"man1/{p.name}" for p in ROOT.glob("docs/man/*.1")]
                         + ["man5/pathprof-recording.5"])
def test_install__has_every_man_page(prefix, page):
    assert (prefix / "share" / "man" / page).is_file()


def test_install__has_completion(prefix):
    assert (prefix / "share/bash-completion/completions/pathprof").is_file()


def test_install__installs_no_tests_and_no_static_libraries(prefix):
    names = {path.name for path in prefix.rglob("*") if path.is_file()}
    assert not [n for n in names if n.endswith(".a") or n.startswith("test-")]


def test_install__records_and_reports(prefix, tmp_path):
    done = run(prefix, "record", "-o", tmp_path / "r", "--", "/usr/bin/python3", "-c",
               "import time\nwhile time.process_time() < 0.3: pass", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(prefix, "report", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "<module>" in done.stdout


def test_install__exports_the_page(prefix, tmp_path):
    if not list(prefix.rglob("*.html")):
        pytest.skip("the page was not built: npm is missing, or could not fetch its library")
    run(prefix, "record", "-o", tmp_path / "r", "--", "/usr/bin/python3", "-c",
        "import time\nwhile time.process_time() < 0.3: pass")
    page = tmp_path / "f.html"
    done = run(prefix, "export", tmp_path / "r", "--format", "flamegraph", "-o", page)
    assert done.returncode == 0, done.stderr
    assert "<html" in page.read_text().lower()
