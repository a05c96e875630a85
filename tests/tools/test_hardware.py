# SPDX-License-Identifier: MIT
"""tools/hardware: the packages' cache, the machine's files and console, what is compared.

The packages come through the real apt, from a folder that is made here: no network.
"""

import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "hardware"
sys.path.append(str(TOOLS))

import cross  # noqa: E402
import machine  # noqa: E402
import packages  # noqa: E402


def load_check():
    """tools/hardware/check.py; `check` is the name of tools/check.py."""
    spec = importlib.util.spec_from_file_location("hardware_check", TOOLS / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load_check()

VERSION = "1.0"
KERNEL_OF = "linux-image-1.0-arm64"


class Repository:
    """A folder of packages that apt asks; each is (name, {file: content}, depends)."""

    def __init__(self, place):
        self.place, self.paragraphs = place, []
        place.mkdir()
        self.package("tool", {"usr/bin/tool": "a tool", "usr/lib/python3/module.py": "a = 1\n"},
                     "library")
        self.package("library", {"usr/lib/library.so.1": "a library"})
        self.package(packages.KERNEL, {}, KERNEL_OF)
        self.package(KERNEL_OF, {"boot/vmlinuz-1.0": "a kernel", "lib/modules/m.ko": "a module"})
        self.write()

    def package(self, name, files, depends=""):
        tree = self.place / "trees" / name
        (tree / "DEBIAN").mkdir(parents=True)
        control = (f"Package: {name}\nVersion: {VERSION}\nArchitecture: arm64\n"
                   f"Maintainer: nobody <nobody@example.org>\nDescription: for a test\n"
                   + (f"Depends: {depends}\n" if depends else ""))
        (tree / "DEBIAN" / "control").write_text(control)
        for path, content in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(content)
        if name == "library":
            (tree / "usr/lib/library.so").symlink_to("/usr/lib/library.so.1")
        deb = self.deb(name)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, deb], check=True,
                       stdout=subprocess.DEVNULL)
        self.paragraphs.append(
            f"{control}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\n"
            f"SHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}\n")

    def deb(self, name):
        return self.place / f"{name}_{VERSION}_arm64.deb"

    def write(self):
        (self.place / "Packages").write_text("\n".join(self.paragraphs))


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = Repository(tmp_path / "repository")
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] copy:{made.place} ./\n")
    (tmp_path / "apt.conf").write_text(f'Dir::Etc::sourcelist "{tmp_path}/sources.list";\n'
                                       f'Dir::Etc::sourceparts "{tmp_path}/none";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "PACKAGES", ["tool"])
    return made


def ready():
    """(the cache, what was said) of a call."""
    said = []
    return packages.ready(sys.executable, said.append), said


def test_packages__are_unpacked_with_what_they_need(repository, tmp_path):
    place, said = ready()
    assert place == tmp_path / "cache" / "pathprof" / "hardware"
    assert (place / "root/usr/bin/tool").read_text() == "a tool"
    assert (place / "vmlinuz").read_text() == "a kernel"
    assert not list(place.rglob("*.ko")) and not (place / "debs").exists()
    # A link of a whole path would lead out of the folder.
    link = place / "root/usr/lib/library.so"
    assert os.readlink(link) == "library.so.1" and link.read_text() == "a library"
    assert said == ["asking apt what there is", "downloading the machine's packages, some 90 MB",
                    "unpacking them"]


def test_packages__are_fetched_once(repository):
    place, _ = ready()
    for name in ("tool", "library", KERNEL_OF):
        repository.deb(name).unlink()
    assert ready() == (place, [])


@pytest.mark.parametrize("tidied", ["vmlinuz", "root", "complete"])
def test_packages__a_cache_with_something_missing_is_made_anew(repository, tidied):
    place, _ = ready()
    subprocess.run(["rm", "-r", place / tidied], check=True)
    (place / "root").mkdir(exist_ok=True)
    (place / "root/stale").write_text("of the former")
    if tidied == "root":
        (place / "root/stale").unlink()
        (place / "root").rmdir()
    place, said = ready()
    assert said and (place / "vmlinuz").exists() and (place / "root/usr/bin/tool").exists()
    assert not (place / "root/stale").exists()


def test_packages__another_list_is_another_cache(repository, monkeypatch):
    ready()
    monkeypatch.setattr(packages, "PACKAGES", ["library"])
    place, said = ready()
    assert said and not (place / "root/usr/bin/tool").exists()
    assert (place / "root/usr/lib/library.so.1").exists()


def test_packages__another_suite_has_a_cache_of_its_own(repository, monkeypatch):
    """The archive is the same: a folder has no suites, so only where it is looked for is seen."""
    place, _ = ready()
    monkeypatch.setattr(packages.interpreters_apt, "mirror", lambda: f"copy:{repository.place}")
    with pytest.raises(subprocess.CalledProcessError):
        packages.ready(sys.executable, print, "newer")
    other = packages.cache("newer")
    assert other == place.parent / "hardware-newer" and not (other / "complete").exists()
    listed = (other / "apt" / "list.sources").read_text()
    assert f"URIs: copy:{repository.place}\nSuites: newer\n" in listed
    assert ready() == (place, [])


def test_packages__a_root_of_a_later_release_has_its_old_folders(repository):
    root = ready()[0] / "root"
    assert os.readlink(root / "bin") == "usr/bin" and (root / "bin/tool").exists()


def corrupt(deb):
    """The same size, another content."""
    content = bytearray(deb.read_bytes())
    content[-1] ^= 1
    deb.write_bytes(content)


@pytest.mark.parametrize("damage", [corrupt, Path.unlink], ids=["checksum", "missing"])
@pytest.mark.parametrize("name", ["tool", "library", KERNEL_OF])
def test_packages__a_bad_download_is_no_cache(repository, tmp_path, name, damage, capfd):
    whole = repository.deb(name).read_bytes()
    damage(repository.deb(name))
    with pytest.raises(subprocess.CalledProcessError):
        ready()
    assert name in capfd.readouterr().err  # apt's own sentence
    place = tmp_path / "cache" / "pathprof" / "hardware"
    assert not (place / "complete").exists()
    assert not (place / "root/usr/bin/tool").exists()
    repository.deb(name).write_bytes(whole)
    assert (ready()[0] / "root/usr/bin/tool").exists()


def test_packages__one_that_does_not_exist_is_said(repository, monkeypatch, capfd):
    monkeypatch.setattr(packages, "PACKAGES", ["tool", "no-such-package"])
    with pytest.raises(subprocess.CalledProcessError):
        ready()
    assert "no-such-package" in capfd.readouterr().err


def test_check__a_failed_download_is_one_line_and_a_status(repository):
    repository.deb("library").unlink()
    done = subprocess.run([sys.executable, TOOLS / "check.py"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("apt-get failed: apt-get")


def entries(archive):
    """{name: (mode, content)} of a cpio archive in newc format."""
    found, at = {}, 0
    while True:
        fields = [int(archive[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        assert archive[at:at + 6] == b"070701"
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110:at + 110 + name_size - 1].decode()
        at = (at + 110 + name_size + 3) & ~3
        if name == "TRAILER!!!":
            return found
        assert name not in found
        found[name] = mode, archive[at:at + size]
        at = (at + size + 3) & ~3


def test_initramfs__holds_what_was_wanted(tmp_path):
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/program").write_bytes(b"\x7fELF")
    (tree / "a/b/program").chmod(0o755)
    (tree / "a/link").symlink_to("b/program")
    (tree / "unwanted/inside").mkdir(parents=True)
    image = machine.Initramfs(tmp_path / "image")
    image.add_tree(tree, "usr/share", lambda path, name: name != "unwanted")
    image.add(tree / "a/b/program", "init")
    image.close()
    found = entries((tmp_path / "image").read_bytes())
    assert list(found) == ["usr", "usr/share", "usr/share/a", "usr/share/a/b",
                           "usr/share/a/link", "usr/share/a/b/program", "init", "dev",
                           "dev/console"]  # a folder before what is in it
    assert found["usr/share/a/b/program"] == (stat.S_IFREG | 0o755, b"\x7fELF")
    assert found["usr/share/a/link"][0] & stat.S_IFLNK == stat.S_IFLNK
    assert found["usr/share/a/link"][1] == b"b/program"
    assert found["dev/console"][0] == stat.S_IFCHR | 0o600


@pytest.fixture
def boot(tmp_path, monkeypatch):
    """Boot a shell script in the emulator's place; the messages, the console's text."""
    def run(script):
        monkeypatch.setattr(machine, "QEMU", ["/bin/sh", "-c", script])
        heard = []
        machine.boot(tmp_path / "vmlinuz", tmp_path / "image", ["word=1"], tmp_path / "log",
                     heard.append)
        return heard, (tmp_path / "log").read_text()
    return run


def test_boot__hears_messages_to_the_end(boot):
    heard, log = boot('echo "booting"; echo "@ {\\"test\\": 1}"; echo "@ {\\"end\\": 0}"; echo off')
    assert heard == [{"test": 1}, {"end": 0}]
    assert log.splitlines()[0] == "booting" and log.splitlines()[-1] == "off"


def test_boot__one_that_ends_early_shows_its_last_lines(boot):
    with pytest.raises(machine.MachineError, match="(?s)ended early.*    panic"):
        boot('echo "@ {\\"test\\": 1}"; echo panic')


def test_boot__one_that_is_silent_is_killed(boot, monkeypatch):
    monkeypatch.setattr(machine, "SILENCE_SECONDS", 0.2)
    with pytest.raises(machine.MachineError, match="(?s)hangs.*    last words"):
        boot("echo last words; exec tail -f /dev/null")


def message(test, outcome="passed", **figures):
    return {"test": test, "outcome": outcome, "seconds": 1, "figures": figures, "text": "why"}


def counted(*messages):
    count = check.Count()
    for one in messages:
        count(one)
    return count


def test_count__adds_up_and_shows_why(capsys):
    count = counted(message("one"), message("two", "failed"), message("three", "skipped"))
    assert str(count) == "1 passed, 1 failed, 1 skipped"
    assert "    why" in capsys.readouterr().out


def test_count__a_runner_that_fails_without_a_test_is_a_failure():
    assert counted(message("one"), {"end": 2}).failed == 1
    assert counted(message("one", "failed"), {"end": 1}).failed == 1  # that one is it
    assert counted(message("one"), {"end": 0}).failed == 0


@pytest.mark.parametrize("second,passed,failed", [
    ({"=n": 1, "shown": 3}, 1, 0),
    ({"=n": 2, "shown": 2}, 0, 1),
    ({"shown": 2}, 0, 2),  # missing, and nothing to compare
])
def test_compare__figures_that_must_not_change(second, passed, failed):
    runs = [check.exact(counted(message("test", **{"=n": 1, "shown": 2})).figures),
            check.exact(counted(message("test", **second)).figures)]
    count = check.Count()
    check.compare(count, *runs)
    assert (count.passed, count.failed) == (passed, failed)


def test_is_program__is_what_is_run_or_loaded(tmp_path):
    for name, content, wanted in (("a", b"\x7fELF", True), ("a.o", b"\x7fELF", False),
                                  ("a.txt", b"text", False), ("empty", b"", False)):
        (tmp_path / name).write_bytes(content)
        assert check.is_program(tmp_path / name) is wanted, name
    assert check.is_program(tmp_path)


def test_quietly__shows_the_output_of_what_failed(capsys):
    cross.quietly("echo", "not shown")
    with pytest.raises(subprocess.CalledProcessError):
        cross.quietly("sh", "-c", "echo shown; exit 3")
    assert capsys.readouterr().out == "shown\n\n"


def test_run_all__twice_and_once_with_what_is_newer(monkeypatch):
    booted = []

    def run_machine(guest, _folder, name, words, _count):
        booted.append((guest, name, words))
        return {("test", "=n"): 1}
    monkeypatch.setattr(check, "run_machine", run_machine)
    count = check.Count()
    check.run_all("own", "later", "folder", count)
    assert booted == [("own", "first", [check.TESTS]), ("own", "second", [check.TESTS]),
                      ("later", check.NEWER, [check.TESTS])]
    assert str(count) == "1 passed, 0 failed"  # the first two gave the same
