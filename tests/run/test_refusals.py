# SPDX-License-Identifier: MIT
"""What is refused says why, in one whole sentence with the knob, and recording goes on with the next rung unless one
was forced. Every situation is made, by the kernel's own means (refused.py), or its errno is."""

import errno
import json
import os
import resource
import shutil
import subprocess

import pytest
from refused import old_kernel  # noqa: F401 (a fixture)
from refused import forbid, needs_seccomp, nobody, rule, seccomp, with_sysctls

WORK = ["/usr/bin/python3", "-S", "-c", "sum(range(3000000))"]
NO_SIGTRAP = "the kernel refuses the event's attributes; sampling by SIGTRAP needs Linux 5.13 or later"
SENTENCES = {
    errno.EPERM: "perf_event_open is forbidden (EPERM), as container runtimes do by seccomp; allow the system call",
    errno.ENOSYS: "perf_event_open is forbidden (ENOSYS), as container runtimes do by seccomp; allow the system call",
    errno.ENOENT: "there is no hardware counter for it here (no PMU, as in most virtual machines); only the machine or "
                  "its host can change that",
    errno.ENODEV: "there is no hardware counter for it here (no PMU driver for this processor); a newer kernel may "
                  "have one",
    errno.EOPNOTSUPP: "its counter raises no interrupt here (no PMU or half a one, as in virtual machines); only the "
                      "machine or its host can change that",
    errno.EINVAL: NO_SIGTRAP,
    errno.E2BIG: "the kernel does not know all attributes of the event; sampling by SIGTRAP needs Linux 5.13 or later",
    errno.EMFILE: "out of file descriptors, one a thread is needed; raise the hard limit (ulimit -Hn)",
    errno.ENFILE: "the whole system is out of file descriptors; raise fs.file-max",
    errno.EAGAIN: "the budget of memory for perf buffers or of queued signals is used up; raise "
                  "kernel.perf_event_mlock_kb or ulimit -i",
    errno.ENOMEM: "out of memory for perf buffers; raise kernel.perf_event_mlock_kb or ulimit -l",
    errno.EBUSY: "somebody else has the counter to himself (another profiler, or the NMI watchdog); end it, or set "
                 "kernel.nmi_watchdog to 0",
    errno.ENOSPC: "all hardware breakpoints or counters are taken; end the debugger or profiler that holds them, or "
                  "sample fewer",
    errno.EIO: f"perf_event_open failed with errno 5 ({os.strerror(5)}); see pathprof doctor",
}


def noticed(got, sentence):
    return f"{sentence}." in got["notices"]


def goes_on(record, report, cause, before=(), **how):
    """Without a name, and in place of a clock: the CPU timer, and the whole sentence in the first line."""
    def run(name, *options):
        if before:
            directory = how["at"] / name
            done = subprocess.run([*before, how["pathprof"], "record", "-o", directory, *options, "--", *WORK],
                                  capture_output=True, text=True, timeout=120, check=False, **how.get("more", {}))
            return done, directory
        return record(WORK, *options, name=name, **how)

    done, directory = run("default")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        f"pathprof record: sampling cpu-time by cpu-timer, since cycles is not to be had: {cause}; "
        "choose with -e, see 'pathprof list'")
    got = report(directory)
    assert got["recording"]["trigger"] == "cpu-timer" and got["samples"] > 0
    done, directory = run("named", "-e", "cpu-clock")
    said = (f"cpu-clock is not sampled: {cause}. In its place cpu-time is, by cpu-timer; --trigger=cpu-clock insists "
            "on the event that was named")
    assert done.returncode == 0 and done.stderr.splitlines()[0] == f"pathprof record: {said}"
    got = report(directory)
    assert got["notices"][0] == f"{said}."
    assert [row["name"] for row in got["events"]] == ["cpu-time"] and got["samples"] > 0
    for options in (["-e", "cpu-clock", "--trigger=cpu-clock"], ["-e", "page-faults"]):
        done, directory = run("forced", *options)
        assert done.returncode == 125 and not directory.exists()
        assert done.stderr == f"pathprof record: Cannot sample {options[1]}: {cause}\n"


@needs_seccomp
@pytest.mark.parametrize("number", SENTENCES, ids=errno.errorcode.get)
def test_refusal__of_each_errno_is_a_whole_sentence(record, report, number):
    goes_on(record, report, SENTENCES[number], preexec_fn=forbid(number))


def test_refusal__no_pmu_is_said_of_this_machine(record, report, pathprof):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    row, = [row for row in rows if row["name"] == "cycles"]
    if row["available"]:
        pytest.skip("SKIPPED: there is a PMU")
    done, directory = record(WORK, "-e", "cycles")
    assert done.returncode == 0
    first = report(directory)["notices"][0]
    assert any(first.startswith(f"cycles is not sampled: {SENTENCES[number]}. In its place ")
               for number in SENTENCES), first


# ---- who is asked: other threads than one's own, other users', what is not dumpable ----

OTHERS = "not permitted for this thread; "


@needs_seccomp
@pytest.mark.parametrize("scope, knob", [
    (2, "set kernel.yama.ptrace_scope to 1 or less (it is 2)"),
    (0, "the program is another user's or not dumpable, or it is the kernel's side and kernel.perf_event_paranoid (2) "
        "is above 1; root may")])
def test_refusal__events_for_other_processes_are_none(record, report, pathprof, tmp_path, scope, knob):
    """As YAMA has it: a process may open an event for itself and take no descriptor, and open none for a child.
    Were that not tried before the start, a recording would be empty."""
    before = with_sysctls(tmp_path, perf_event_paranoid=2, yama__ptrace_scope=scope)
    other = seccomp(rule("perf_event_open", errno.EACCES, argument=1, value=0, unless=True),
                    rule("pidfd_getfd", errno.EPERM))

    def run(*options):
        return subprocess.run([*before, pathprof, "record", "-o", tmp_path / "r", *options, "--", *WORK],
                              capture_output=True, text=True, timeout=120, check=False, preexec_fn=other)
    done = run("-e", "cpu-clock")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        f"pathprof record: cpu-clock is not sampled: {OTHERS}{knob}. In its place cpu-time is, by cpu-timer; "
        "--trigger=cpu-clock insists on the event that was named")
    assert report(tmp_path / "r")["samples"] > 0
    done = run("-e", "page-faults", "--trigger=perf-sigtrap")
    assert (done.returncode, done.stderr) == (
        125, f"pathprof record: Cannot sample page-faults: {OTHERS}{knob}\n")
    done = run("-e", "page-faults", "--trigger=perf-async")
    assert done.returncode == 125
    words = ("is forbidden; set kernel.yama.ptrace_scope to 1 or less (it is 2)" if scope else
             "is forbidden (EPERM), as container runtimes do by seccomp; allow the system call")
    assert done.stderr == ("pathprof record: Cannot sample page-faults: an asynchronous signal needs "
                           f"pidfd_getfd, which {words}\n")


@needs_seccomp
def test_refusal__paranoid_3_is_said_with_the_level(record, report, pathprof, tmp_path):
    before = with_sysctls(tmp_path, perf_event_paranoid=3)
    goes_on(record, report, "perf events are closed to this user; set kernel.perf_event_paranoid to 2 or less "
            "(it is 3)", before, at=tmp_path, pathprof=pathprof, more={"preexec_fn": forbid(errno.EACCES)})


@needs_seccomp
def test_refusal__the_kernels_side_has_one_cause(pathprof, tmp_path):
    before = with_sysctls(tmp_path, perf_event_paranoid=2)
    done = subprocess.run([*before, pathprof, "record", "-e", "cpu-clock:k", "-o", tmp_path / "r", "--", "true"],
                          capture_output=True, text=True, check=False, preexec_fn=forbid(errno.EACCES))
    assert (done.returncode, done.stderr) == (
        125, "pathprof record: Cannot sample cpu-clock:k: the kernel's side is closed to this user; set "
             "kernel.perf_event_paranoid to 1 or less (it is 2), or be root\n")


NOT_DUMPABLE = """
import ctypes, threading, time
assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0  # PR_SET_DUMPABLE
def work():
    x = [bytes(5000) for _ in range(2000)]
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    time.sleep(0.4)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_refusal__a_program_that_becomes_not_dumpable_is_said(record, report, tmp_path):
    """Its later threads are closed to an ordinary user's recorder: the main one's event stays, waits have no stacks."""
    more = nobody(tmp_path)
    done, directory = record(["/usr/bin/python3", "-S", "-c", NOT_DUMPABLE], "-e", "page-faults/period=1/", **more)
    if done.returncode == 125:
        pytest.skip(f"SKIPPED: {done.stderr}")
    said = ("Not every thread is sampled: Cannot sample page-faults: not permitted for this thread; the program is "
            "another user's or not dumpable, or it is the kernel's side and kernel.perf_event_paranoid (")
    assert done.returncode == 0 and done.stderr.count(said) == 1, done.stderr
    got = report(directory)
    assert any(notice.startswith(said) for notice in got["notices"])
    assert got["lost"]["late_arming"] == 3
    main, = [row for row in got["threads"] if row["tid"] == row["pid"]]
    assert main["samples"] > 100 and main["samples"] == got["samples"]

    # CPU timers and the waits' lengths need nobody's permission.
    done, directory = record(["/usr/bin/python3", "-S", "-c", NOT_DUMPABLE], "--wall", name="wall", **more)
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert noticed(got, STACKS)
    assert got["waits"]["waited_ns"] > 0.9e9 and got["waits"]["rejected"] >= 16
    ran = [row for row in got["functions"] if row["name"] == "work" and row["self_count"]]
    assert ran


STACKS = ("The stacks of waiting threads could not be read: the program is not dumpable, or kernel.yama.ptrace_scope "
          "(set it to 1 or less) or seccomp (allow process_vm_readv) forbids it")


@needs_seccomp
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS], ids=errno.errorcode.get)
def test_refusal__of_reading_waits_leaves_their_lengths(record, report, number):
    done, directory = record(["/usr/bin/python3", "-S", "-c", "import time; time.sleep(0.6)"], "--wall",
                             preexec_fn=forbid(number, "process_vm_readv"))
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert noticed(got, STACKS)
    assert got["waits"]["waited_ns"] > 0.55e9
    waited = report(directory, "--state=waiting")["functions"]
    assert {row["kind"] for row in waited} <= {"marker"}  # before there was an interpreter, waits have none


# ---- switch records ----

POLLED = ("Waiting threads are seen by polling /proc, so that waits are known to a period and short ones by chance: "
          "switch records ")
SWITCH_RECORDS = {
    errno.EPERM: "are refused: perf_event_open is forbidden (EPERM), as container runtimes do by seccomp; allow the "
                 "system call",
    errno.ENOSYS: "are refused: perf_event_open is forbidden (ENOSYS), as container runtimes do by seccomp; allow the "
                  "system call",
    errno.EACCES: "are refused: kernel.perf_event_paranoid is above 2, or the program is another user's or not "
                  "dumpable; root may",
    errno.EMFILE: "need a file descriptor a CPU; raise the hard limit (ulimit -Hn)",
    errno.EIO: f"cannot be had: {os.strerror(5)}",
}
SLEEP = ["/usr/bin/python3", "-S", "-c", "import time; time.sleep(0.6)"]


@needs_seccomp
@pytest.mark.parametrize("number", SWITCH_RECORDS, ids=errno.errorcode.get)
def test_refusal__of_switch_records_is_a_whole_sentence(record, report, number):
    done, directory = record(SLEEP, "--wall", preexec_fn=forbid(number))
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert noticed(got, POLLED + SWITCH_RECORDS[number])
    assert 0.5e9 < got["waits"]["waited_ns"] < 0.9e9 and got["waits"]["seen"] > 0


# Takes ring after ring until the user's budget is used up, says so, and holds them.
HOLDER = """
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
PAGE = os.sysconf("SC_PAGESIZE")
attr = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", 1, 128, 9, 0, 0, 0, 1 | 1 << 5 | 1 << 6), 128)
for pages in 64, 16, 4, 1:
    while True:
        fd = libc.syscall(number, attr, 0, -1, -1, 0)
        if fd < 0:
            sys.exit(f"SKIPPED: no perf event ({os.strerror(ctypes.get_errno())})")
        at = libc.mmap(None, (pages + 1) * PAGE, 1, 1, fd, 0)
        if at == ctypes.c_void_p(-1).value:
            if ctypes.get_errno() != 1:
                sys.exit(f"SKIPPED: {os.strerror(ctypes.get_errno())}")
            os.close(fd)
            break
print("full", flush=True)
sys.stdin.read()
"""


def test_refusal__a_used_up_mlock_budget_is_said(record, report, tmp_path):
    """Of the user, whose other process holds all of it; root has no such budget."""
    more = nobody(tmp_path)
    if not more and os.geteuid() == 0:
        pytest.skip("SKIPPED: root")

    def no_locked_memory():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

    with subprocess.Popen(["/usr/bin/python3", "-S", "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=no_locked_memory, **more) as holder:
        if holder.stdout.readline() != "full\n":
            pytest.skip(holder.stderr.read() or "SKIPPED: the budget cannot be used up")
        try:
            done, directory = record(SLEEP, "--wall", preexec_fn=no_locked_memory, **more)
        finally:
            holder.stdin.close()
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert noticed(got, POLLED + "have no buffers: the user's budget of locked memory is used up; raise ulimit -l or "
                   "kernel.perf_event_mlock_kb")
    assert 0.5e9 < got["waits"]["waited_ns"] < 0.9e9


# ---- too many files ----

MANY = """
import threading
gate = threading.Barrier(61)
threads = [threading.Thread(target=gate.wait) for _ in range(60)]
for thread in threads: thread.start()
gate.wait()
for thread in threads: thread.join()
"""


def test_refusal__too_many_files_leaves_threads_out_and_says_so(record, report, available_faults):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    done, directory = record(["/usr/bin/python3", "-S", "-c", MANY], "-e", "page-faults/period=1/",
                             preexec_fn=few_files)
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert noticed(got, "Not every thread is sampled: Cannot sample page-faults: " + SENTENCES[errno.EMFILE])
    assert done.stderr.count("Not every thread is sampled") == 1
    assert 20 < got["lost"]["late_arming"] < 60 and got["samples"] > 0
    assert "disk" not in got["lost"]  # some descriptors are left for the recorder's files


@pytest.fixture
def available_faults(pathprof):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not all(row["available"] for row in rows if row["name"] == "page-faults"):
        pytest.skip("SKIPPED: page-faults cannot be counted here")


# ---- an old kernel ----

@pytest.mark.plain_only  # a sanitizer's library must come first
def test_old_kernel__events_come_by_an_asynchronous_signal_unasked(record, report, old_kernel, available_faults):
    done, directory = record(["/usr/bin/python3", "-S", "-c", "import mmap\nmemory = mmap.mmap(-1, 4096 * 2000)\n"
                              "for page in range(2000): memory[page * 4096] = 1"], "-e", "page-faults/period=1/",
                             env=old_kernel)
    assert done.returncode == 0, done.stderr
    got = report(directory)
    event, = got["events"]
    assert event["trigger"] == "perf-async" and event["user_only"]
    assert noticed(got, f"page-faults comes by an asynchronous signal (perf-async): {NO_SIGTRAP}")
    assert got["samples"] >= 2000 and got["lost"]["total"] <= 1
    done, directory = record(WORK, name="default", env=old_kernel)
    assert done.returncode == 0, done.stderr
    assert report(directory)["recording"]["trigger"] == "perf-async"
    assert noticed(report(directory), f"cycles comes by an asynchronous signal (perf-async): {NO_SIGTRAP}")


@pytest.mark.plain_only
@needs_seccomp
@pytest.mark.parametrize("number, cause", [
    (errno.ENOSYS, "which is not there (ENOSYS); Linux has it since 5.6, and seccomp must allow it"),
    (errno.EPERM, "which is forbidden (EPERM), as container runtimes do by seccomp; allow the system call"),
    (errno.EIO, f"which failed with errno 5 ({os.strerror(5)}); see pathprof doctor")], ids=["5.6", "seccomp", "other"])
def test_old_kernel__without_pidfd_getfd_the_next_rung_is_taken(record, report, old_kernel, available_faults, number,
                                                                cause):
    """Threads re-arm through a duplicate of the recorder's descriptor, taken with pidfd_getfd."""
    how = {"env": old_kernel, "preexec_fn": forbid(number, "pidfd_getfd")}
    both = f"{NO_SIGTRAP}; nor by perf-async: an asynchronous signal needs pidfd_getfd, {cause}"
    done, directory = record(WORK, **how)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        f"pathprof record: sampling cpu-time by cpu-timer, since cycles is not to be had: {both}; choose with -e, see "
        "'pathprof list'")
    got = report(directory)
    assert got["recording"]["trigger"] == "cpu-timer" and got["samples"] > 0
    done, directory = record(WORK, "-e", "page-faults", name="no_lower", **how)
    assert (done.returncode, done.stderr) == (125, f"pathprof record: Cannot sample page-faults: {both}\n")
    done, directory = record(WORK, "-e", "page-faults", "--trigger=perf-async", name="forced", **how)
    assert (done.returncode, done.stderr) == (
        125, f"pathprof record: Cannot sample page-faults: an asynchronous signal needs pidfd_getfd, {cause}\n")
    assert not directory.exists()


# ---- kernels that kill, or say nothing ----

# In the probing child alone, which is the only one to wait for a SIGTRAP: as a kernel that kills who blocks it does,
# and as one that delivers nothing.
OTHER_KERNEL = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	sigset_t trap;

	(void)info, (void)time;
	if (sigismember(set, SIGTRAP) != 1)
		abort();
	if (!KILLS)
		return -1;
	signal(SIGTRAP, SIG_DFL);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	raise(SIGTRAP);
	return -1;
}
"""


@pytest.mark.plain_only
@pytest.mark.parametrize("kills, cause", [
    (1, "this kernel kills a thread that blocks SIGTRAP when an overflow comes, as a child showed; a newer one does not"),
    (0, "no overflow reached a child that tried SIGTRAP; see pathprof doctor")], ids=["kills", "silent"])
def test_probe__a_kernel_that_kills_or_is_silent_gets_no_sigtrap(record, report, available_faults, tmp_path, kills,
                                                                 cause):
    if not shutil.which("gcc"):
        pytest.skip("SKIPPED: no compiler")
    library = tmp_path / "other_kernel.so"
    library.with_suffix(".c").write_text(OTHER_KERNEL)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-DKILLS={kills}", "-o", library, library.with_suffix(".c")],
                   check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done, directory = record(WORK, "-e", "cpu-clock", env=environment)
    assert done.returncode == 0, done.stderr
    said = (f"cpu-clock is not sampled: {cause}. In its place cpu-time is, by cpu-timer; --trigger=cpu-clock insists on "
            "the event that was named")
    assert done.stderr.splitlines()[0] == f"pathprof record: {said}"
    assert noticed(report(directory), said) and report(directory)["samples"] > 0
    done, directory = record(WORK, "-e", "page-faults", name="async", env=environment)
    assert done.returncode == 0, done.stderr
    event, = report(directory)["events"]
    assert event["trigger"] == "perf-async" and event["samples"] > 0
    assert noticed(report(directory), f"page-faults comes by an asynchronous signal (perf-async): {cause}")
    done, directory = record(WORK, "-e", "cpu-clock", "--trigger=perf-sigtrap", name="forced", env=environment)
    assert (done.returncode, done.stderr) == (125, f"pathprof record: Cannot sample cpu-clock: {cause}\n")
