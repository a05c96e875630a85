#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Steps of the page's build, for meson.

  build.py install FOLDER        npm ci into FOLDER (in the build directory, so that two builds do
                                 not meet); does nothing if FOLDER holds what package-lock.json asks
                                 for. Ends with 1 and one line on stderr where that cannot be done.
  build.py page FOLDER OUTPUT    bundle the page with the packages in FOLDER
  build.py skip REASON           what a test runs that cannot run here: says why, ends with 77
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

WEB = pathlib.Path(__file__).resolve().parent
MANIFEST = ["package.json", "package-lock.json", ".npmrc"]
INSTALL_SECONDS = 180  # a registry that hangs must not hang the build for longer


def fingerprint() -> str:
    digest = hashlib.sha256()
    for name in MANIFEST:
        digest.update((WEB / name).read_bytes())
    return digest.hexdigest()


def install(folder: pathlib.Path) -> None:
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == fingerprint():
        return
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        sys.exit("node or npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in MANIFEST:
        shutil.copyfile(WEB / name, folder / name)
    try:
        done = subprocess.run(
            [npm, "ci", "--prefer-offline", "--fetch-retries=1", "--fetch-timeout=30000"],
            cwd=folder, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"npm ci took more than {INSTALL_SECONDS} seconds")
    if done.returncode:
        (folder / "npm.log").write_bytes(done.stdout)
        sys.exit(f"npm ci failed (is the package registry reachable?), see {folder}/npm.log")
    stamp.write_text(fingerprint())


def page(folder: pathlib.Path, output: str) -> None:
    environment = dict(os.environ, WEB_NODE_MODULES=str(folder / "node_modules"))
    command = ["node", str(WEB / "build.mjs"), output]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


def main() -> None:
    step, *arguments = sys.argv[1:]
    if step == "install":
        install(pathlib.Path(arguments[0]))
    elif step == "page":
        page(pathlib.Path(arguments[0]), arguments[1])
    elif step == "skip":
        print(f"SKIP: {arguments[0]}")
        sys.exit(77)
    else:
        sys.exit(f"build.py has no step {step}")


if __name__ == "__main__":
    main()
