# SPDX-License-Identifier: MIT
"""What `record` is to the program it runs, and to who runs it: status, streams, signals."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PATHPROF, SECONDS


def start(directory, command, *options, **more):
    return subprocess.Popen([PATHPROF, "record", "-q", "-o", directory, *options, "--", *command],
                            **({"stdin": subprocess.DEVNULL} | more))


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def wait_until(condition):
    """Wait for something that must come; it is the deadline alone that is a time."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def thread_records(directory):
    """The records of threads in ust/definitions, as dictionaries of numbers."""
    read = subprocess.run(["babeltrace2", directory / "ust"], capture_output=True, text=True,
                          timeout=SECONDS, check=True)
    return [{key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", line)}
            for line in read.stdout.splitlines() if re.search(r"[ )]thread: ", line)]


@pytest.mark.parametrize("command,status", [
    (["true"], 0), (["sh", "-c", "exit 3"], 3), (["sh", "-c", "exit 255"], 255),
    (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
    (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL)])
def test_record__exit_status_is_the_programs(record, command, status):
    done, directory = record(command)
    assert done.returncode == status, done.stderr
    assert manifest(directory)["exit_status"] == status
    assert manifest(directory)["complete"]


def test_record__what_cannot_be_run(record, tmp_path):
    done, directory = record(["/no/such/program"])
    assert done.returncode == 127 and "/no/such/program" in done.stderr
    assert not directory.exists()
    (tmp_path / "plain").write_text("x")
    done, directory = record([tmp_path / "plain"])
    assert done.returncode == 126 and not directory.exists()
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    done, directory = record([tmp_path / "broken"])
    assert done.returncode in (126, 127) and not directory.exists()


def test_record__nothing_is_announced_of_a_command_that_cannot_be_run(record, tmp_path):
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    for command in ["/no/such/program"], [tmp_path / "broken"]:
        done, _ = record(command)
        assert "Cannot run" in done.stderr and "sampling" not in done.stderr
    assert "record: sampling " in record(["true"])[0].stderr
    assert "record: sampling " not in record(["true"], "-e", "cpu-time")[0].stderr
    assert "record: sampling " not in record(["true"], "-q")[0].stderr


def test_record__a_rate_that_the_tick_cannot_give_is_said(record):
    done, directory = record(["true"], "-F", "100000")
    most = round(1e9 / manifest(directory)["tick_ns"])
    said = done.stderr.splitlines()[0]
    assert f"at most {most} times a second" in said and "-e cpu-clock" in said
    assert "not every 10 us" in done.stderr and "e-0" not in done.stderr


def test_record__a_command_not_found_leaves_the_former_recording(record):
    record(["true"])
    done, directory = record(["/no/such/program"])
    assert done.returncode == 127
    assert manifest(directory)["command"] == ["true"]
    assert not directory.with_name(directory.name + ".old").exists()


@pytest.mark.parametrize("arguments", [
    ["record"], ["record", "--"], ["record", "-e", "cpu-time", "-e", "cpu-time", "--", "true"],
    ["record", "-c", "5", "-F", "5", "--", "true"], ["record", "-e", "bogus", "--", "true"],
    ["record", "-e", "context-switches", "--", "true"], ["record", "--memory", "1M", "--", "true"],
    ["record", "-e", "page-faults", "-F", "9", "--", "true"],
    ["record", "-c", "0", "--", "true"], ["record", "-F", "0", "--", "true"],
    ["record", "--duration=0", "--", "true"], ["record", "--duration", "0ms", "--", "true"]])
def test_record__usage_errors_are_2(pathprof, arguments, tmp_path):
    done = pathprof(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and done.stderr
    assert not (tmp_path / "pathprof.data").exists()


def test_record__a_place_that_cannot_be_written_is_125(record, tmp_path):
    (tmp_path / "file").write_text("x")
    done, _ = record(["true"], name="file/inside")
    assert done.returncode == 125 and "-o" in done.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("x")
    done, _ = record(["true"], name="mine")
    assert done.returncode == 125 and (tmp_path / "mine" / "thesis").exists()


def test_record__an_older_recording_is_moved(record):
    record(["sh", "-c", "exit 1"])
    done, directory = record(["sh", "-c", "exit 2"])
    assert done.returncode == 2
    assert manifest(directory)["exit_status"] == 2
    assert manifest(directory.with_name(directory.name + ".old"))["exit_status"] == 1


def test_record__streams_pass_through(record):
    done, _ = record(["sh", "-c", "cat; echo err >&2"], "-q", stdin=None, input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\n", "err\n")


def test_record__chatter_goes_to_stderr_alone(record):
    done, _ = record(["echo", "out"])
    assert done.stdout == "out\n"
    assert "pathprof report" in done.stderr


LOOK = """
import json, os, resource, signal
own = {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
       if os.path.exists(f"/proc/self/fd/{n}")}
print(json.dumps([sorted(own), [getattr(signal.getsignal(n), "value", "handler")
    for n in (2, 3, 13, 25)], sorted(signal.pthread_sigmask(0, [])),
    resource.getrlimit(resource.RLIMIT_NOFILE), os.getpgrp() == os.getppid() or "same",
    {k: v for k, v in os.environ.items() if k != "_"}]))
"""


def test_record__the_program_finds_the_world_as_without_us(pathprof, python, tmp_path):
    """Descriptors, dispositions, mask, limits, environment; one descriptor more was given."""
    extra = os.open("/dev/null", os.O_RDONLY)
    moved = fcntl.fcntl(extra, fcntl.F_DUPFD, 37)
    command = [python, "-S", "-c", LOOK]
    options = {"pass_fds": [moved], "stdin": subprocess.DEVNULL, "capture_output": True,
               "text": True, "timeout": SECONDS, "check": True, "cwd": tmp_path}
    bare = subprocess.run(command, **options)
    recorded = subprocess.run([PATHPROF, "record", "-q", "-o", "r", "--", *command], **options)
    os.close(extra)
    os.close(moved)
    assert json.loads(recorded.stdout) == json.loads(bare.stdout)


def test_record__ctrl_c_stops_the_program_and_completes_the_recording(python, tmp_path):
    code = f"open({str(tmp_path / 'ready')!r}, 'w').close()\nwhile True: pass"
    process = start(tmp_path / "r", [python, "-c", code], start_new_session=True,
                    stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "ready").exists)
    os.killpg(process.pid, signal.SIGINT)
    status = process.wait(SECONDS)
    assert status == 128 + signal.SIGINT
    assert manifest(tmp_path / "r")["complete"]


def test_record__sigterm_is_passed_on(tmp_path):
    process = start(tmp_path / "r", ["sh", "-c", f"trap 'exit 9' TERM; touch {tmp_path}/ready; "
                                     "while :; do sleep 0.01; done"])
    wait_until((tmp_path / "ready").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 9
    assert manifest(tmp_path / "r")["complete"]


def test_record__a_killed_recorder_leaves_the_program_running(python, tmp_path):
    """The program ends by itself, with its own status, and a recording that can be read."""
    code = ("import os, sys, time\n"
            f"open({str(tmp_path / 'ready')!r}, 'w').write(str(os.getpid()))\n"
            f"while not os.path.exists({str(tmp_path / 'go')!r}): pass\n"
            "sum(range(3000000))\n"
            f"open({str(tmp_path / 'done')!r}, 'w').close()\n")
    process = start(tmp_path / "r", [python, "-c", code])
    wait_until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text())
    process.kill()
    process.wait(SECONDS)
    (tmp_path / "go").touch()
    wait_until((tmp_path / "done").exists)
    assert manifest(tmp_path / "r")["complete"] is False


def test_record__a_killed_program_is_recorded_up_to_the_kill(record, python):
    code = ("import os, time\n"
            "while time.process_time() < 0.3: pass\n"
            "os.kill(os.getpid(), 9)\n")
    done, directory = record([python, "-c", code], "-e", "cpu-time")
    assert done.returncode == 128 + signal.SIGKILL
    got = manifest(directory)
    samples = int(done.stderr.split("pathprof: ")[1].split()[0])
    assert got["complete"]
    # The CPU time is exact; every tick of it but the start's is a sample.
    assert samples >= 0.5 * got["events"][0]["count"] / got["tick_ns"] > 20


def test_record__a_shell_that_execs_is_followed(record, report, python):
    done, directory = record(["sh", "-c", f"exec {python} -c 'sum(range(3000000))'"])
    assert done.returncode == 0
    assert [i["problem"] for i in manifest(directory)["interpreters"]] == [None]
    assert "of 1 thread" in done.stderr
    thread, = report(directory)["threads"]  # of two images
    assert thread["pid"] == thread["tid"] and thread["name"].startswith("python")


def test_record__a_shell_that_forks_is_said(record, python):
    done, _ = record(["sh", "-c", f"{python} -c pass; true"])
    assert "is no Python interpreter, and the processes that it started" in done.stderr
    assert "children  1 process " in done.stderr


def test_record__duration_ends_the_sampling_not_the_program(record, python):
    done, directory = record([python, "-c", "import time\nend = time.process_time() + 0.5\n"
                              "while time.process_time() < end: pass\nprint('end')"],
                             "--duration", "50ms")
    assert done.returncode == 0 and done.stdout == "end\n"
    assert "the program goes on" in done.stderr
    got = manifest(directory)
    assert got["complete"]
    # 0.5 s of CPU at the tick, of which at most what 50 ms hold and one tick were sampled.
    samples = int(done.stderr.split("pathprof: ")[1].split()[0])
    assert samples * got["tick_ns"] < 250e6


def test_record__delay_skips_the_start(record, python):
    done, _ = record([python, "-c", "sum(range(2000000))"], "--delay", "1h")
    assert "pathprof: 0 samples" in done.stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_record__a_static_program_is_said_not_to_be_recorded(record, tmp_path):
    (tmp_path / "x.c").write_text("int main(void) { return 4; }\n")
    subprocess.run(["gcc", "-static", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    done, directory = record([tmp_path / "x"])
    assert done.returncode == 4
    assert "did not load the agent" in done.stderr
    assert any("did not load the agent" in note for note in manifest(directory)["notes"])


@pytest.mark.parametrize("event", ["cpu-time", "cpu-clock", "page-faults", "task-clock:u"])
def test_record__samples_of_a_python_program_read_back(record, pathprof, python, event):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    if not {r["name"]: r["available"] for r in rows}[event.split(":")[0]]:
        pytest.skip(f"{event} cannot be counted here")
    code = "x = [bytearray(5000) for i in range(20000)]\nsum(i * i for i in range(2000000))"
    done, directory = record([python, "-c", code], "-e", event)
    assert done.returncode == 0, done.stderr
    samples = int(done.stderr.split("pathprof: ")[-1].split()[0])
    assert samples > 10
    if shutil.which("babeltrace2"):
        read = subprocess.run(["babeltrace2", directory / "ust"], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        assert read.returncode == 0
        if not manifest(directory)["lost"]:
            assert read.stderr == ""
        assert read.stdout.count(" sample:" + event + ":") == samples


def test_list__json_says_why(pathprof):
    rows = json.loads(pathprof("list", "--json").stdout)["events"]
    assert rows[0]["name"] == "cpu-time"
    for row in rows:
        assert row["available"] == (row["reason"] is None)


def test_doctor__agrees_with_recording(pathprof, record):
    done = pathprof("doctor", "--json")
    got = json.loads(done.stdout)
    assert got["works"] == (done.returncode == 0)
    assert {c["key"] for c in got["checks"]} >= {
        "agent", "cpu_timer", "perf_event_paranoid", "sigtrap", "software_clock", "page_faults",
        "pmu", "yama", "seccomp", "rlimit_sigpending", "rlimit_nofile", "rlimit_memlock",
        "babeltrace2", "interpreter", "blocked_sigtrap", "async", "breakpoints", "tracefs", "ladder"}
    assert record(["true"])[0].returncode == (0 if got["works"] else 125)
    assert not [c for c in got["checks"] if "No such file" in c["found"]]
    yama, = [c for c in got["checks"] if c["key"] == "yama"]
    assert ("no restriction" in yama["found"]) != os.path.exists(
        "/proc/sys/kernel/yama/ptrace_scope")


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="no babeltrace2")
def test_record__images_of_one_process_share_its_leader(record):
    """Each image leaves a record of the leader; their CPU times are shares of one clock."""
    burn = "import time\nwhile time.process_time() < {}: pass\n"
    code = burn.format(0.1) + ("import os, sys\nos.execv(sys.executable, [sys.executable, '-S', "
                               "'-c', sys.argv[1]])\n")
    done, directory = record(["sh", "-c", 'exec "$@"', "sh", "/usr/bin/python3", "-S", "-c", code,
                              burn.format(0.2)], "-e", "cpu-time")
    assert done.returncode == 0 and "of 1 thread," in done.stderr
    got = manifest(directory)
    records = thread_records(directory)
    assert len(records) == 3  # sh, python3, python3
    assert {(r["pid"], r["tid"]) for r in records} == {(got["root_pid"], got["root_pid"])}
    assert records[1]["cpu_ns"] > 50e6 and records[2]["cpu_ns"] > 50e6
    assert sum(r["cpu_ns"] for r in records) == got["events"][0]["count"]
    for former, latter in zip(records, records[1:]):
        assert former["end_ns"] <= latter["start_ns"]
        assert latter["cpu_ns"] < latter["end_ns"] - former["end_ns"] + got["tick_ns"]
