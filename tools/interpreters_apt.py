# SPDX-License-Identifier: MIT
"""Debian packages and sources of any suite, without root: an apt with a state of its own.

The mirror, its keyring and every setting (a proxy, say) are those that apt has on this machine.
Nothing is installed: packages are downloaded, checked by apt against the suite's signed index, and
unpacked into a directory.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# A suite's Release file says until when it is valid; sid's mirrors may stand still longer.
SETTINGS = """Dir::State "{0}/state";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
Dir::Etc::SourceList "{0}/list.sources";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
DPkg::Post-Invoke {{ }};
"""
SECONDS = 300  # a download that takes longer hangs


class Unavailable(Exception):
    """One sentence: why something can't be had."""


def command(words, seconds, **options):
    """Run a command; its output, or Unavailable with the last thing it said."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=max(1, seconds),
                              stdin=subprocess.DEVNULL, check=False, **options)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{Path(words[0]).name} took longer than {seconds:.0f} s") from None
    except OSError as error:
        raise Unavailable(f"{words[0]}: {error.strerror}") from None
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in said if "rror" in line or line.startswith("E:")] or said[-1:]
        sentence = errors[0].strip() if errors else f"status {done.returncode}"
        sentence = re.sub(r"https?://\S+/|\[IP:.*\]", "", sentence).strip()
        raise Unavailable(f"{Path(words[0]).name}: {sentence}")
    return done.stdout


def mirror():
    """The archive that apt takes Debian's own packages from."""
    if not shutil.which("apt-get"):
        raise Unavailable("this is not a Debian: there is no apt-get")
    listing = command(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
                       "Created-By: Packages"], 60)
    for line in listing.splitlines():
        origin, label, uri = line.split("|")
        if (origin, label) == ("Debian", "Debian"):
            return uri
    raise Unavailable("apt knows no index of Debian's archive here: run apt-get update")


class Suite:
    """One suite of Debian's archive, with its index below @directory."""

    def __init__(self, name, directory):
        self.name, self.directory = name, directory / name
        self.settings = self.directory / "apt.conf"

    def update(self):
        """Fetch the index."""
        for part in ("state/lists/partial", "cache/archives/partial"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        signed = f"Signed-By: {KEYRING}\n" if KEYRING.exists() else ""
        (self.directory / "status").touch()
        (self.directory / "list.sources").write_text(
            f"Types: deb deb-src\nURIs: {mirror()}\nSuites: {self.name}\nComponents: main\n{signed}")
        self.settings.write_text(SETTINGS.format(self.directory))
        # Missing indexes are warnings to apt, and a suite without packages to us.
        self._apt("-qq", "-o", "APT::Update::Error-Mode=any", "update")

    def _apt(self, *words, cwd=None):
        return command(["apt-get", *words], SECONDS, cwd=cwd,
                       env=os.environ | {"APT_CONFIG": str(self.settings), "LC_ALL": "C"})

    def unpack(self, packages, root, without=()):
        """Download @packages with all that they depend on, and unpack them below @root."""
        archives = self.directory / f"archives-{root.name}"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        self._apt("-qq", "-y", "-o", f"Dir::Cache::archives={archives}", "--no-install-recommends",
                  "--download-only", "install", *packages)
        for package in sorted(archives.glob("*.deb")):
            if not package.name.startswith(tuple(f"{name}_" for name in without)):
                command(["dpkg-deb", "-x", str(package), str(root)], 120)
        shutil.rmtree(archives)

    def _versions(self, package):
        """The versions of a source package that the index lists, newest first as apt has them."""
        listing = command(["apt-cache", "showsrc", "--only-source", package], SECONDS,
                          env=os.environ | {"APT_CONFIG": str(self.settings), "LC_ALL": "C"})
        return re.findall(r"^Version: (\S+)$", listing, re.MULTILINE)[::-1]

    def _source(self, package, directory):
        listing = self._apt("-qq", "--print-uris", "--tar-only", "--only-source", "source", package)
        names = [line.split()[1] for line in listing.splitlines() if ".orig.tar" in line]
        if not names:
            raise Unavailable(f"{self.name} has no source package {package}")
        if not (directory / names[0]).exists():
            self._apt("-qq", "--tar-only", "--download-only", "--only-source", "source", package,
                      cwd=directory)
        return directory / names[0]

    def source(self, package, directory):
        """Download the original archive of a source package; its path below @directory.

        A mirror may lack the newest one for a while, or have it no more: then an older one."""
        failures = []
        for version in self._versions(package):
            try:
                return self._source(f"{package}={version}", directory)
            except Unavailable as why:
                failures.append(str(why))
        raise Unavailable("; ".join(failures) or f"{self.name} has no source package {package}")
