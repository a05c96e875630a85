# SPDX-License-Identifier: MIT
"""`record --wall`: waits for the interpreter, in each of its forms, told apart from others."""

import pytest

from conftest import ROOT

OWN_LOCK = """
import threading
try:
    import _interpreters as interpreters
    new = interpreters.create("isolated")
except ImportError:
    import _xxsubinterpreters as interpreters
    new = interpreters.create()

WORK = '''
import threading, time
def worker():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
def main():
    threads = [threading.Thread(target=worker) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
main()
'''
run = getattr(interpreters, "exec", None) or interpreters.run_string
run(new, WORK)
"""

STOPPED_WORLD = """
import gc, threading, time

def lists(n):
    return [[] for _ in range(n)]

def worker(end):
    while time.monotonic() < end:
        pass

def main():
    kept = lists(400_000)
    end = time.monotonic() + 2
    thread = threading.Thread(target=worker, args=[end])
    thread.start()
    while time.monotonic() < end:
        gc.collect()
    thread.join()
main()
"""


def states(record, report, python, tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    done, directory = record([python, script], "--wall")
    assert done.returncode == 0, done.stderr
    document = report(directory, "--split-state")
    by_name = {}
    for row in document["functions"]:
        by_name[row["name"], row["state"]] = row["self_count"]
    return by_name


def test_waits__for_a_sub_interpreters_own_lock(record, report, python, tmp_path):
    if python.number < (3, 12) or python.free_threaded:
        pytest.skip("SKIPPED: its sub-interpreters have no lock of their own")
    rows = states(record, report, python, tmp_path, OWN_LOCK)
    # Two of three workers wait for the lock, or for a CPU: other programs want it too.
    assert rows["worker", "gil-wait"] > 3 * rows.get(("worker", "waiting"), 0)


def test_waits__for_a_stopped_world(record, report, python, tmp_path):
    if not python.free_threaded:
        pytest.skip("SKIPPED: it stops no world")
    rows = states(record, report, python, tmp_path, STOPPED_WORLD)
    # It waits for other locks inside the interpreter as well.
    assert rows["worker", "gil-wait"] > 2 * rows.get(("worker", "waiting"), 0)


@pytest.mark.parametrize("option", ["--gil", "--wall"])
def test_gil__of_a_build_without_the_lock_it_is_said(record, report, python, option):
    if not python.free_threaded:
        pytest.skip("SKIPPED: it has an interpreter lock")
    done, directory = record([python, ROOT / "tests/programs/wall/waits.py", "gil", "1"], option, "-e", "cpu-time")
    assert done.returncode == 0, done.stderr
    document = report(directory)
    said = [notice for notice in document["notices"] if "free-threaded" in notice]
    assert len(said) == (option == "--gil")
    assert not any("that held the interpreter lock" in notice for notice in document["notices"])
    assert "gil" not in {row["state"] for row in document.get("states", [])}
    assert sum(row["self"] for row in document["functions"]) > 0
