# SPDX-License-Identifier: MIT
"""The virtual machine: an Arm processor whose performance counters have a real driver.

QEMU translates (no virtualisation is needed), and its clock counts instructions: one is one
nanosecond and one cycle, and an idle machine jumps to its next event. So a run does not depend on
how fast or busy this machine is, and two runs are the same. What would differ is left out: the
real-time clock is the virtual one, no random numbers come from outside, addresses are not drawn.

The machine's disk is an initramfs (cpio, newc format) that is written here. What it says comes over
the serial console: lines that begin with "@ " are JSON, the rest is for people.
"""

import json
import os
import queue
import stat
import subprocess
import threading
import time
from pathlib import Path

MEMORY_MIB = 1536
SILENCE_SECONDS = 300  # without a line: it hangs
TAIL_LINES = 40
NICE = 5

QEMU = ["qemu-system-aarch64", "-machine", "virt,dtb-randomness=off", "-cpu", "cortex-a57,pmu=on",
        "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1",
        "-smp", "1", "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot", "-serial", "file:/dev/stdout"]
KERNEL_WORDS = "console=ttyAMA0 loglevel=3 nokaslr norandmaps panic=-1"


class MachineError(Exception):
    """The machine did not come to its end; the console's last lines are in the text."""


class Initramfs:
    """A cpio archive that the kernel unpacks as its root."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.entries = 0
        self.folders = {""}

    def entry(self, name, mode, content=b"", device=(0, 0)):
        self.entries += 1
        name = name.encode() + b"\0"
        fields = (self.entries, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        for part in (head, content):
            self.file.write(part + b"\0" * (-len(part) % 4))

    def folders_above(self, name):
        for parent in reversed(Path(name).parents):
            if str(parent) != "." and str(parent) not in self.folders:
                self.folders.add(str(parent))
                self.entry(str(parent), stat.S_IFDIR | 0o755)

    def add(self, path, name):
        """One file, link or folder, under a name without a slash in front."""
        mode = path.lstat().st_mode
        self.folders_above(name)
        if stat.S_ISLNK(mode):
            self.entry(name, mode, os.readlink(path).encode())
        elif stat.S_ISDIR(mode):
            if name not in self.folders:
                self.folders.add(name)
                self.entry(name, stat.S_IFDIR | 0o755)
        elif stat.S_ISREG(mode):
            self.entry(name, mode, path.read_bytes())

    def add_tree(self, folder, name, wanted):
        """What lies under a folder, where wanted(path, its name below the folder)."""
        for here, folders, files in os.walk(folder):
            below = os.path.relpath(here, folder)
            folders[:] = sorted(f for f in folders if wanted(Path(here) / f,
                                                             os.path.normpath(f"{below}/{f}")))
            for file in sorted(folders + files):
                path, inner = Path(here) / file, os.path.normpath(f"{below}/{file}")
                if wanted(path, inner):
                    self.add(path, os.path.normpath(f"{name}/{inner}"))

    def close(self):
        self.add_device("dev/console", (5, 1))
        self.entry("TRAILER!!!", 0)
        self.file.close()

    def add_device(self, name, device):
        self.folders_above(name)
        self.entry(name, stat.S_IFCHR | 0o600, device=device)


def _lines(stream, into):
    for line in stream:
        into.put(line.decode(errors="replace").rstrip("\r\n"))
    into.put(None)


def _listen(process, log, on_message, deadline):
    """Read the console to its end; the last lines. Raises MachineError where it hangs."""
    lines, tail = queue.Queue(), []
    threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=max(0, min(SILENCE_SECONDS, deadline - time.monotonic())))
        except queue.Empty:
            raise MachineError("it hangs; the console's last lines:\n" + "\n".join(tail)) from None
        if line is None:
            return tail
        print(line, file=log, flush=True)
        if line.startswith("@ "):
            on_message(json.loads(line[2:]))
        else:
            tail = (tail + ["    " + line])[-TAIL_LINES:]


def boot(kernel, initramfs, words, console, on_message):
    """Run the machine to its end.

    words: for its command line, beside our own; console: the file that gets all it says;
    on_message: called with each message. Raises MachineError where it hangs or ends without its
    last message, {"end": status}.
    """
    ended = []

    def message(content):
        if "end" in content:
            ended.append(content["end"])
        on_message(content)

    command = [*QEMU, "-kernel", kernel, "-initrd", initramfs,
               "-append", " ".join([KERNEL_WORDS, *words])]
    deadline = time.monotonic() + 1200
    with open(console, "w", encoding="utf-8") as log, \
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, preexec_fn=lambda: os.nice(NICE)) as process:
        try:
            tail = _listen(process, log, message, deadline)
        finally:
            process.kill()
    if not ended:
        raise MachineError("it ended early; the console's last lines:\n" + "\n".join(tail))
