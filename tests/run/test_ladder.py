# SPDX-License-Identifier: MIT
"""Which event is sampled by which trigger: several at once, on request, and down the ladder.

What the kernel refuses is made by a seccomp filter of our own, which is inherited by the recorder and fails
perf_event_open with an errno of the test's choice, as container runtimes do.
"""

import errno
import json
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from refused import forbid, needs_seccomp, nobody

TRACING = Path("/sys/kernel/tracing")
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="SKIPPED: no compiler")

FAULTS_AND_WORK = """
import mmap, time
def touch(pages):
    memory = mmap.mmap(-1, 4096 * pages)
    for page in range(pages):
        memory[page * 4096] = 1
def work():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
touch(3000)
work()
"""


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


@pytest.fixture(scope="module")
def available(pathprof):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    return {row["name"]: row["available"] for row in rows}


def need(available, *names):
    for name in names:
        if not available.get(name):
            pytest.skip(f"SKIPPED: {name} cannot be counted here")


def function(got, event, name, key="self"):
    return sum(row[key] for row in got["functions"] if (row["event"], row["name"]) == (event, name))


def test_several__each_sample_says_of_which_event_it_is(record, report, pathprof, python, available,
                                                        tmp_path):
    need(available, "cpu-time", "page-faults", "cpu-clock")
    script = tmp_path / "both.py"
    script.write_text(FAULTS_AND_WORK)
    done, directory = record([python, script], "-e", "cpu-time,page-faults/period=1/", "-e",
                             "cpu-clock")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    events = {row["name"]: row for row in got["events"]}
    assert list(events) == ["cpu-time", "page-faults", "cpu-clock"]
    assert [events[name]["trigger"] for name in events] == ["cpu-timer", "perf-sigtrap",
                                                            "perf-sigtrap"]
    assert sum(row["samples"] for row in events.values()) == got["samples"]
    for name, row in events.items():
        assert row["samples"] > 10
        assert sum(r["self"] for r in got["functions"] if r["event"] == name) == row["samples"]
    assert 2700 <= function(got, "page-faults", "touch") <= 3300
    assert function(got, "cpu-time", "work") > function(got, "cpu-time", "touch")
    assert function(got, "cpu-clock", "work") > function(got, "cpu-clock", "touch")
    # A file-backed fault counts once each: nothing of one event is throttled by another's clock.
    assert got["lost"].get("throttled", 0) < 30
    text = pathprof("report", directory, "--event", "page-faults").stdout
    assert "\npage-faults: " in text and "\ncpu-time: " not in text
    folded = pathprof("export", directory, "--format", "collapsed", "--event", "page-faults").stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == \
        events["page-faults"]["samples"]
    assert pathprof("export", directory, "--format", "collapsed", "--event", "x").returncode == 2


def test_several__more_than_eight_or_twice_the_same_are_usage(pathprof, tmp_path):
    done = pathprof("record", *["-e", "page-faults"] * 2, "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "'page-faults' and 'page-faults' are one event" in done.stderr
    nine = ",".join(f"mem:{16 * n}:w" for n in range(1, 10))
    done = pathprof("record", "-e", nine, "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "At most 8 events" in done.stderr


WRITES = """
#include <stdio.h>
#include <string.h>
volatile int target __attribute__((aligned(8)));
static int reads;
__attribute__((noinline)) void put(int i) { target = i; }
int main(void)
{
	for (int i = 0; i < 1000; i++)
		put(i);
	for (int i = 0; i < 500; i++)
		reads += target;
	return reads == 500 * 999 ? 0 : 1;
}
"""


@needs_compiler
@pytest.mark.parametrize("symbol, access, period, samples", [
    ("target", "/4:w", 1, 1000), ("target", "", 1, 1500), ("put", ":x", 1, 1000),
    ("target", "/4:w", 10, 100)])
def test_breakpoint__every_access_once(record, report, tmp_path, symbol, access, period, samples):
    (tmp_path / "writes.c").write_text(WRITES)
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", tmp_path / "writes", tmp_path / "writes.c"],
                   check=True)
    symbols = subprocess.run(["nm", tmp_path / "writes"], check=True, capture_output=True, text=True)
    address, = [line.split()[0] for line in symbols.stdout.splitlines()
                if line.split()[2:] == [symbol]]
    name = f"mem:0x{address.lstrip('0')}{access}"
    done, directory = record([tmp_path / "writes"], "-e", name, "-c", str(period))
    if done.returncode == 125 and ("no hardware" in done.stderr or "forbidden" in done.stderr):
        pytest.skip("SKIPPED: no breakpoints here")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    # Where the recorder has no turn at the first overflow, samples may come early or late.
    assert abs(got["samples"] - samples) <= (period > 1) and got["lost"]["total"] == 0
    assert got["events"][0]["name"] == name and got["events"][0]["count"] == samples * period


@needs_compiler
def test_breakpoint__more_than_the_processor_has_are_refused_before_the_start(record, tmp_path):
    many = ",".join(f"mem:{4096 * n}:w" for n in range(1, 9))
    done, directory = record(["touch", tmp_path / "ran"], "-e", many)
    if done.returncode == 0:
        pytest.skip("SKIPPED: eight breakpoints are not too many here")
    assert done.returncode == 125 and not (tmp_path / "ran").exists() and not directory.exists()
    assert "breakpoints" in done.stderr


# ---- tracepoints ----


@pytest.fixture
def tracing():
    """How to start a command so that it finds tracefs: mounted for it alone, where that is allowed."""
    if (TRACING / "events").exists():
        return []
    unshare = ["unshare", "-m", "sh", "-c",
               f'mount -t tracefs nodev {TRACING} && exec "$@"', "sh"]
    done = subprocess.run([*unshare, "cat", TRACING / "events/syscalls/sys_enter_openat/id"],
                          capture_output=True, check=False)
    if done.returncode:
        pytest.skip("SKIPPED: tracefs is not mounted and cannot be")
    return unshare


def traced(tracing, pathprof, directory, event, command, *options):
    return subprocess.run([*tracing, pathprof, "record", "-o", directory, "-e", event, *options,
                           "--", *command],
                          capture_output=True, text=True, timeout=120, check=False)


OPENS = """
import os, select, time
def opens(number):
    for _ in range(number):
        os.close(os.open("/dev/null", os.O_RDONLY))
def waits():
    for _ in range(20):
        start = time.monotonic()
        time.sleep(0.005)
        assert time.monotonic() - start >= 0.005
    read, write = os.pipe()
    os.write(write, b"x")
    assert os.read(read, 1) == b"x"
opens(500)
waits()
"""


@pytest.mark.parametrize("event", ["syscalls:sys_enter_openat", "syscalls:sys_enter_openat:u"])
def test_tracepoint__every_entry_once(tracing, pathprof, report, python, tmp_path, event):
    (tmp_path / "opens.py").write_text(OPENS)
    done = traced(tracing, pathprof, tmp_path / "r", event, [python, "-S", tmp_path / "opens.py"])
    assert done.returncode == 0, done.stderr
    got = report(tmp_path / "r")
    assert function(got, event, "opens") == 500
    assert got["events"][0]["count"] == got["samples"] and got["lost"]["total"] == 0


def test_seed__repeats_the_first_period(tracing, pathprof, report, python, tmp_path):
    """Each open stands on a line of its own, so the first sampled line tells the first period."""
    (tmp_path / "lines.py").write_text("import os\nopen = lambda: os.close(os.open('/', 0))\n" +
                                       "open()\n" * 400)
    found = {}
    for name, seed in ("a", "7"), ("b", "7"), ("c", "8"), ("d", "9"), ("e", "10"), ("f", None):
        options = ["--seed", seed] if seed else []
        done = traced(tracing, pathprof, tmp_path / name, "syscalls:sys_enter_openat/period=199/",
                      [python, "-S", tmp_path / "lines.py"], *options)
        assert done.returncode == 0, done.stderr
        assert seed is None or manifest(tmp_path / name)["seed"] == int(seed)
        assert manifest(tmp_path / name)["seed"] >= 0
        # When the whole period holds after the first depends on the recorder's moment.
        found[name] = min(row["line"] for row in report(tmp_path / name)["lines"]
                          if row["function"] == "<module>")
    assert found["a"] == found["b"]
    assert len(set(found.values())) > 1, found


BLOCKS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void handle(int signo) { (void)signo; }

static long blocked(int signo, int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
	pid_t target = getpid(), child;
	int ends[2];
	long got;
	char byte;

	sigaction(SIGUSR1, &action, NULL);
	if (pipe(ends))
		return -2;
	child = fork();
	if (child == 0) {
		usleep(20000);
		kill(target, signo);
		usleep(20000);
		if (signo == SIGSTOP)
			kill(target, SIGCONT);
		usleep(20000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	got = read(ends[0], &byte, 1);
	if (got < 0)
		got = -errno;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return got;
}

int main(void)
{
	printf("%ld %ld %ld\n", blocked(SIGUSR1, 0), blocked(SIGUSR1, SA_RESTART),
	       blocked(SIGSTOP, SA_RESTART));
	return 0;
}
"""


@needs_compiler
def test_tracepoint__a_call_that_blocks_ends_as_without_us(tracing, pathprof, report, tmp_path):
    """read() begins again or fails with EINTR as the program's own handlers say, stopped or not."""
    (tmp_path / "blocks.c").write_text(BLOCKS)
    subprocess.run(["gcc", "-o", tmp_path / "blocks", tmp_path / "blocks.c"], check=True)
    plain = subprocess.run([tmp_path / "blocks"], capture_output=True, text=True, check=True).stdout
    assert plain == f"-{errno.EINTR} 1 1\n"
    done = traced(tracing, pathprof, tmp_path / "r", "syscalls:sys_enter_read",
                  [tmp_path / "blocks"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain
    assert report(tmp_path / "r")["samples"] >= 3


STOPS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int nothing[2], polled, word;
static const struct timespec some = {.tv_nsec = 500000000};

static long sleeps(void) { return syscall(SYS_nanosleep, &some, NULL); }
static long sleeps_by_clock(void) { return -clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL); }
static long polls(void) { struct pollfd one = {.fd = nothing[0], .events = POLLIN}; return poll(&one, 1, 500); }
static long waits_for_futex(void) { return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &some, NULL, 0); }
static long waits_by_epoll(void) { struct epoll_event one; return epoll_wait(polled, &one, 1, 500); }
static long selects(void)
{
	struct timeval time = {.tv_usec = 500000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(nothing[0], &set);
	return select(nothing[0] + 1, &set, NULL, NULL, &time);
}

/* Until the process is in that state, by /proc: S waits, T is stopped. */
static void await(pid_t pid, char state)
{
	char path[32], text[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		int fd = open(path, O_RDONLY);

		if (read(fd, text, sizeof(text) - 1) <= 0)
			_exit(1);
		close(fd);
		usleep(1000);
	} while (strrchr(text, ')')[2] != state);
}

/* What the call gives where the process is stopped and goes on in the middle of it. */
static void stopped(const char *name, long (*call)(void))
{
	pid_t target = getpid(), child = fork();
	long got;

	if (child == 0) {
		await(target, 'S');
		kill(target, SIGSTOP);
		await(target, 'T');
		kill(target, SIGCONT);
		_exit(0);
	}
	for (int i = 0; i < 5; i++)
		close(open("/dev/null", O_RDONLY)); /* an overflow is as near as it can be */
	errno = 0;
	got = call();
	printf("%s %ld %d\n", name, got, got < 0 ? errno : 0);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int main(void)
{
	if (pipe(nothing))
		return 1;
	polled = epoll_create1(0);
	epoll_ctl(polled, EPOLL_CTL_ADD, nothing[0], &(struct epoll_event){.events = EPOLLIN});
	stopped("nanosleep", sleeps);
	stopped("clock_nanosleep", sleeps_by_clock);
	stopped("poll", polls);
	stopped("select", selects);
	stopped("futex", waits_for_futex);
	stopped("epoll_wait", waits_by_epoll);
	return 0;
}
"""


STOPPED = (f"nanosleep 0 0\nclock_nanosleep 0 0\npoll 0 0\nselect 0 0\nfutex -1 {errno.ETIMEDOUT}\n"
           f"epoll_wait -1 {errno.EINTR}\n")


@pytest.fixture(scope="module")
def stops(tmp_path_factory):
    """The program; what it prints without us is what the kernel's manual says."""
    program = tmp_path_factory.mktemp("stops") / "stops"
    program.with_suffix(".c").write_text(STOPS)
    subprocess.run(["gcc", "-o", program, program.with_suffix(".c")], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == STOPPED
    return program


@needs_compiler
@pytest.mark.parametrize("event", ["syscalls:sys_enter_openat", "syscalls:sys_enter_close",
                                   "exceptions:page_fault_user", "page-faults/period=1/u", "cpu-clock:u",
                                   "cpu-time"])
def test_stops__leave_calls_that_wait_as_without_us(tracing, pathprof, report, tmp_path, stops, event):
    """A stop and a continuation in the middle: poll(), select() and sleeps go on, epoll_wait() fails with EINTR.
    So it is under what may signal; the entries of the calls themselves are refused, see below. (Clocks and page faults
    of the kernel's side may come on the way into the wait: pathprof-record(1).)"""
    done = traced(tracing, pathprof, tmp_path / "r", event, [stops])
    assert done.returncode == 0, done.stderr
    assert done.stdout == STOPPED
    if event.startswith("syscalls:"):
        assert report(tmp_path / "r")["samples"] >= 30


def test_tracepoint__one_that_the_signal_meets_does_not_keep_itself_going(tracing, pathprof, report,
                                                                          python, tmp_path):
    (tmp_path / "opens.py").write_text(OPENS)
    done = traced(tracing, pathprof, tmp_path / "r", "kmem:kmem_cache_alloc/period=1/",
                  [python, "-S", tmp_path / "opens.py"])
    assert done.returncode == 0, done.stderr
    assert "must not keep itself going" in done.stderr
    assert report(tmp_path / "r")["events"][0]["period"] == 101


BELONGS = ("it belongs to threads that wait or are about to, which a signal would disturb; record with "
           "--wall to see waits")
CALL_WAITS = ("the call waits, and with a signal pending fails where a stop and a continuation would have "
              "it go on; record with --wall to see waits")
CALL_ENDS = ("the call that ends may have waited and have been broken off, which a signal would hide; "
             "sample its sys_enter, or record with --wall to see waits")
HAPPENS = ("it happens while a thread waits, and a signal to a waiting thread changes what its system call "
           "returns; record with --wall to see waits")
BY_NAME = "whether it belongs to waiting is known of a tracepoint by its name alone, GROUP:NAME"


@pytest.mark.parametrize("event, cause", [
    *[(name, BELONGS) for name in (
        "sched:sched_switch", "sched:sched_waking", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit",
        "timer:hrtimer_start", "lock:contention_begin", "irq:softirq_entry", "signal:signal_deliver")],
    *[(f"syscalls:sys_enter_{call}", CALL_WAITS) for call in (
        "nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait2", "futex",
        "futex_wait", "pause", "rt_sigsuspend", "rt_sigtimedwait", "msgrcv", "semtimedop", "io_uring_enter")],
    ("syscalls:sys_exit_read", CALL_ENDS), ("syscalls:sys_exit_openat:u", CALL_ENDS),
    *[(name, HAPPENS) for name in ("context-switches", "cs", "context-switches:u", "cpu-migrations",
                                   "migrations", "software/config=3/", "software/config=4/")],
    ("tracepoint/config=320/", BY_NAME)])
def test_waiting__is_no_event_for_a_signal(pathprof, tmp_path, event, cause):
    """Neither unasked nor forced, nor beside others."""
    for options in ["-e", event], ["-e", event, "--trigger=perf-sigtrap"], ["-e", f"cpu-time,{event}"], \
            ["-e", event, "--inherit"], ["--wall", "-e", f"cpu-time,{event}"]:
        done = pathprof("record", *options, "--", "touch", "ran", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (
            2, f"pathprof record: Cannot sample {event.removesuffix(':u')}: {cause}\n")
        assert not (tmp_path / "ran").exists()


def test_tracepoint__without_tracefs_is_said_with_the_command_that_mounts_it(pathprof, tmp_path):
    if (TRACING / "events").exists():
        pytest.skip("SKIPPED: tracefs is mounted here")
    done = pathprof("record", "-e", "syscalls:sys_enter_openat", "--", "true", cwd=tmp_path)
    assert done.returncode == 125
    assert f"mount -t tracefs nodev {TRACING}" in done.stderr


def test_tracepoint__tracefs_that_is_closed_is_said_with_the_command_that_opens_it(tracing, pathprof, tmp_path):
    if not shutil.which("setpriv") or not nobody(tmp_path):
        pytest.skip("SKIPPED: no other user can be had")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run([*tracing, *user, pathprof, "record", "-o", tmp_path / "r", "-e",
                           "syscalls:sys_enter_openat", "--", "true"],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 125:
        pytest.skip("SKIPPED: tracefs is open to every user here")
    assert done.stderr == (
        "pathprof record: Cannot sample syscalls:sys_enter_openat: tracefs is closed to this user; as root, 'mount "
        "-o remount,gid=GROUP,mode=750 /sys/kernel/tracing' opens it\n")


# ---- the ladder ----

@needs_seccomp
@pytest.mark.parametrize("number, cause", [
    (errno.EPERM, "perf_event_open is forbidden (EPERM), as container runtimes do by seccomp"),
    (errno.ENOSYS, "perf_event_open is forbidden (ENOSYS), as container runtimes do by seccomp"),
    (errno.EACCES, "not permitted for this thread"),
    (errno.EMFILE, "out of file descriptors"), (errno.EBUSY, "somebody else has the counter"),
    (errno.EOPNOTSUPP, "its counter raises no interrupt here")])
def test_ladder__goes_on_with_the_cpu_timer_where_perf_is_refused(record, report, python, pathprof,
                                                                  number, cause):
    done, directory = record([python, "-c", "sum(range(3000000))"], preexec_fn=forbid(number))
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("pathprof record: sampling cpu-time by cpu-timer, since cycles is not")
    assert cause in first
    assert report(directory)["recording"]["trigger"] == "cpu-timer"

    done, directory = record([python, "-c", "sum(range(3000000))"], "-e", "cycles", name="named",
                             preexec_fn=forbid(number))
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("pathprof record: cycles is not sampled: ") and cause in first
    assert "In its place cpu-time is, by cpu-timer; --trigger=perf-sigtrap insists" in first
    headline, = manifest(directory)["headlines"]
    assert headline in first
    assert report(directory)["notices"][0].startswith("cycles is not sampled: ")
    assert pathprof("report", directory).stdout.startswith("cycles is not sampled: ")
    assert report(directory)["samples"] > 0


@needs_seccomp
@pytest.mark.parametrize("options", [
    ["-e", "page-faults"], ["--trigger=perf-sigtrap"], ["--trigger=perf-async"],
    ["--trigger=cpu-clock"], ["-e", "cycles", "--trigger=perf-sigtrap"],
    ["-e", "cpu-clock", "--trigger=perf-sigtrap"], ["-e", "cpu-time,page-faults"]])
def test_ladder__what_was_forced_or_has_no_lower_rung_fails_with_the_cause(record, tmp_path, options):
    done, directory = record(["touch", tmp_path / "ran"], *options,
                             preexec_fn=forbid(errno.EPERM))
    assert done.returncode == 125
    assert "perf_event_open is forbidden (EPERM)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "ran").exists() and not directory.exists()


@pytest.mark.parametrize("how, name", [("cpu-timer", "cpu-time"), ("cpu-clock", "cpu-clock")])
def test_ladder__a_rung_by_name(record, report, python, available, how, name):
    need(available, name)
    done, directory = record([python, "-c", "sum(range(3000000))"], f"--trigger={how}")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert [row["name"] for row in got["events"]] == [name] and got["samples"] > 0


@pytest.mark.parametrize("options", [
    ["--trigger=pmu"], ["--trigger=cpu-timer", "-e", "page-faults"],
    ["--trigger=perf-async", "-e", "cpu-clock"], ["--trigger=perf-async", "-e", "cpu-time"],
    ["--trigger=cpu-clock", "-e", "page-faults"]])
def test_ladder__triggers_that_do_not_fit_are_usage(pathprof, tmp_path, options):
    done = pathprof("record", *options, "--", "touch", "ran", cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "ran").exists()


def test_ladder__kernel_time_that_is_not_counted_is_the_first_line(record, report, pathprof, python,
                                                                   available):
    """perf-async is in user mode always; nobody asked for that."""
    need(available, "page-faults")
    done, directory = record([python, "-c", "x = bytearray(4000000)"], "-e",
                             "page-faults/period=10/", "--trigger=perf-async")
    assert done.returncode == 0, done.stderr
    said = "Kernel time is not included: page-faults is counted in user mode only"
    assert said in done.stderr.splitlines()[0]
    assert pathprof("report", directory).stdout.startswith(said)
    got = report(directory)
    assert got["notices"][0].startswith(said) and got["events"][0]["user_only"]
    done, directory = record([python, "-c", "pass"], "-e", "page-faults:u", name="asked")
    assert not manifest(directory)["headlines"]


IN_KERNEL = """
import mmap, os, time
zero = os.open("/dev/zero", os.O_RDONLY)
def reads(pages):
    memory = mmap.mmap(-1, 4096 * pages)
    assert os.readv(zero, [memory]) == 4096 * pages
def computes():
    target = bytearray(1 << 22)
    end = time.process_time() + 0.5
    while time.process_time() < end:
        os.readv(zero, [target])
reads(3000)
computes()
"""


def test_ladder__kernel_time_is_included_where_it_is_permitted(record, report, pathprof, python, available,
                                                               tmp_path):
    """read() faults pages in and clears memory: all of it in the kernel, on the line that calls."""
    need(available, "page-faults", "cpu-clock")
    script = tmp_path / "in_kernel.py"
    script.write_text(IN_KERNEL)
    done, directory = record([python, "-S", script], "-e", "page-faults/period=1/,cpu-clock")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    if any(row["user_only"] for row in got["events"]):
        pytest.skip("SKIPPED: the kernel's side is not permitted")
    faults, clock = got["events"]
    assert faults["count"] >= 3000  # one signal for all of a call: the others are counted as lost
    assert faults["samples"] + got["lost"]["merged"] >= 3000
    assert function(got, "cpu-clock", "computes", "self_count") > 0.25e9
    assert "Kernel time" not in done.stderr and not manifest(directory)["headlines"]
    assert not any("Kernel time" in notice for notice in got["notices"])
    assert pathprof("report", directory).stdout.startswith("Command ")
    done, directory = record([python, "-S", script], "-e", "page-faults:u/period=1/,cpu-clock:u", name="user")
    assert done.returncode == 0, done.stderr
    got = report(directory)
    assert got["events"][0]["count"] < faults["count"] - 2500
    assert function(got, "cpu-clock:u", "computes", "self_count") < 0.2e9
    assert not manifest(directory)["headlines"]  # it was asked for


@pytest.mark.parametrize("event, first", [
    ("page-faults", True), ("cpu-clock", True), ("task-clock", True), ("cpu-clock:u", False),
    ("mem:0x1000:w", True), ("cpu-time", False), ("cpu-time,page-faults", True)])
def test_ladder__the_kernel_side_that_is_refused_is_the_first_line(record, report, pathprof, tmp_path,
                                                                   event, first):
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    if not paranoid.exists() or int(paranoid.read_text()) != 2:
        pytest.skip("SKIPPED: kernel.perf_event_paranoid is not 2")
    done, directory = record(["/usr/bin/python3", "-c", "x = [bytes(5000) for _ in range(20000)]"],
                             "-e", event, **nobody(tmp_path))
    if done.returncode == 125 and "no hardware" in done.stderr:
        pytest.skip("SKIPPED: no breakpoints here")
    assert done.returncode == 0, done.stderr
    said = "Kernel time is not included: "
    assert pathprof("report", directory).stdout.startswith(said) == first
    assert done.stderr.splitlines()[0].startswith("pathprof record: " + said) == first
    assert [row["user_only"] for row in report(directory)["events"]] == \
        [first and name != "cpu-time" for name in event.split(",")]
    assert report(directory)["notices"][0].startswith(said) == first


def test_ladder__timers_that_cannot_be_made_leave_the_clock(record, report, python, available):
    need(available, "cpu-clock")

    def no_timers():
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))

    done, directory = record([python, "-c", "sum(range(3000000))"], "-e", "cpu-time",
                             preexec_fn=no_timers)
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert "cpu-time is not sampled: no CPU timer can be made" in first and "ulimit -i" in first
    assert [row["name"] for row in report(directory)["events"]] == ["cpu-clock"]
    assert report(directory)["samples"] > 0
    done, _ = record(["true"], "--trigger=cpu-timer", name="forced", preexec_fn=no_timers)
    assert done.returncode == 125 and "ulimit -i" in done.stderr
