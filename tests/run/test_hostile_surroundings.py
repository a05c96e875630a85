# SPDX-License-Identifier: MIT
"""Full disks, closed and large streams, odd limits: the program does not feel the recording."""

import json
import os
import pty
import resource
import signal
import subprocess

import pytest

from conftest import PATHPROF, SECONDS
from hostile import nr_samples

LOOK = """
import os, json
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
# GNU make starts its children with signals 32 and 33 ignored; 33 is ours, as it is the C library's.
status["SigIgn"] = hex(int(status["SigIgn"], 16) & 0x7fffffff)
print(json.dumps([status[k].strip() for k in ("SigBlk", "SigIgn", "SigPnd", "ShdPnd", "Umask",
    "NoNewPrivs", "Seccomp", "CapEff")] + [os.getcwd(), os.nice(0), os.getpgrp() == os.getpid(),
    os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0)),
    open("/proc/self/limits").read(), open("/proc/self/cmdline").read(),
    open("/proc/self/oom_score_adj").read()]))
"""
FAULTS = """
import mmap, sys
for i in range(int(sys.argv[1])):
    with mmap.mmap(-1, 4096) as page: page[0] = 1
print("done")
sys.exit(6)
"""


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def test_program__finds_masks_limits_and_place_as_without_us(tmp_path, python):
    command = [python, "-S", "-c", LOOK]
    def odd():
        os.umask(0o37)
        os.nice(1)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGSEGV})
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (77, 99))
    options = {"cwd": tmp_path, "preexec_fn": odd, "capture_output": True, "text": True,
               "timeout": SECONDS, "check": True}
    for event in ("cpu-time", "page-faults"):
        recorded = subprocess.run([PATHPROF, "record", "-q", "-e", event, "-o", tmp_path / "r", "--",
                                   *command], **options)
        assert json.loads(recorded.stdout) == json.loads(
            subprocess.run(command, **options).stdout)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root to mount a small file system")
def test_disk__that_fills_up_is_said_and_what_is_there_reads(pathprof, report, tmp_path, python):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], check=True)
    try:
        directory = tmp_path / "r"
        done = pathprof("record", "-e", "page-faults", "-c", "1", "-o", directory, "--", python, "-c",
                        FAULTS, 60000)
        assert (done.returncode, done.stdout) == (6, "done\n"), done.stderr
        assert "could not be written" in done.stderr and "No space left" in done.stderr
        assert 0 < nr_samples(directory) < 60000
        read = pathprof("report", directory, "--no-pager")
        assert read.returncode == 0
        head = "\n".join((read.stderr + read.stdout).splitlines()[:12])
        assert "not complete" in head or "incomplete" in head or "disk" in head, head
        # Full before it began: one sentence, and the program is not started.
        (tmp_path / "fill").write_bytes(b"")
        subprocess.run(["dd", "if=/dev/zero", f"of={tmp_path / 'fill'}"], check=False,
                       capture_output=True)
        done = pathprof("record", "-q", "-o", tmp_path / "s", "--", python, "-c", "print('ran')")
        assert (done.returncode, done.stdout) == (125, "")
        assert len(done.stderr.splitlines()) == 1 and "No space left" in done.stderr
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_directory__left_behind_by_a_failure_does_not_refuse_the_next(record, tmp_path):
    done, directory = record(["true"], preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert done.returncode == 125 and "ulimit" in done.stderr
    assert not directory.exists()


def test_stdin__of_100_megabytes_passes_through(tmp_path):
    total = 100 << 20
    code = "import hashlib, sys\nh = hashlib.sha1()\n" \
           "while block := sys.stdin.buffer.read(65536): h.update(block)\nprint(h.hexdigest())"
    shell = f"head -c {total} /dev/zero | {PATHPROF} record -q -o {tmp_path / 'r'} -- " \
            f"/usr/bin/python3 -c '{code}'; head -c {total} /dev/zero | sha1sum"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=SECONDS,
                          check=True)
    recorded, plain = done.stdout.split()[:2]
    assert recorded == plain


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams__that_are_closed_stay_closed(tmp_path, closed):
    code = "import os, time\nfds = [fd for fd in range(3) if os.path.exists(f\"/proc/self/fd/{fd}\")]\n" \
           f"open(\"{tmp_path}/seen\", \"a\").write(f\"{{fds}}\\n\")\n" \
           "while time.process_time() < 0.2: pass"
    program = f"/usr/bin/python3 -S -c '{code}' {closed}"
    record = f"{PATHPROF} record --duration 50ms -o {tmp_path / 'r'} -- "
    for shell in (program, record + program):
        assert subprocess.run(["sh", "-c", shell], timeout=SECONDS, check=False).returncode == 0
    bare, recorded = (tmp_path / "seen").read_text().splitlines()
    assert recorded == bare
    assert nr_samples(tmp_path / "r") > 0 and manifest(tmp_path / "r")["complete"]


def test_pipe__that_nobody_reads_ends_the_program_as_without_us(tmp_path):
    shell = f"{PATHPROF} record -q -o {tmp_path / 'r'} -- yes | head -n 1"
    done = subprocess.run(["bash", "-c", shell + "; echo ${PIPESTATUS[0]}"], capture_output=True,
                          text=True, timeout=SECONDS, check=True)
    assert done.stdout == f"y\n{128 + signal.SIGPIPE}\n"


def test_terminal__stop_and_continue_and_interrupt(tmp_path, python):
    """Ctrl-Z stops both, fg goes on with both, Ctrl-C ends the program and not the recording."""
    code = "import time\nprint('up', flush=True)\nwhile True: pass"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(PATHPROF, [str(PATHPROF), "record", "-q", "-e", "cpu-time", "-o",
                            str(tmp_path / "r"), "--", python, "-c", code])
    seen = b""
    while b"up" not in seen:
        seen += os.read(terminal, 100)
    os.kill(-pid, signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    os.kill(-pid, signal.SIGCONT)
    os.write(terminal, b"\x03")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status == 128 + signal.SIGINT
    assert manifest(tmp_path / "r")["complete"] and nr_samples(tmp_path / "r") > 0


def test_hangup__goes_to_the_program(tmp_path):
    process = subprocess.Popen([PATHPROF, "record", "-q", "-o", tmp_path / "r", "--", "sh", "-c",
                                "trap 'exit 4' HUP; echo up; while :; do sleep 0.01; done"],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGHUP)
    assert process.wait(SECONDS) == 4
