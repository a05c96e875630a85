# SPDX-License-Identifier: MIT
"""Threads that wait, each in its own way, for a known time; prints what they did as JSON.

usage: waits.py KIND [SECONDS]

Every kind is a function `wait_KIND`, whose line with the comment `# HERE` is where it waits.
"""

import ctypes
import json
import queue
import socket
import subprocess
import sys
import threading
import time

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


def wait_sleep():
    time.sleep(SECONDS)  # HERE


def wait_lock():
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(SECONDS, lock.release).start()
    lock.acquire()  # HERE


def wait_queue():
    items = queue.Queue()
    threading.Timer(SECONDS, items.put, [1]).start()
    items.get()  # HERE


def wait_socket():
    here, there = socket.socketpair()
    threading.Timer(SECONDS, there.send, [b"x"]).start()
    here.recv(1)  # HERE


def wait_child():
    subprocess.run(["sleep", str(SECONDS)], check=True)  # HERE


def wait_mixed():
    """Computes 40 % of the time and sleeps 60 %, in turns of a tenth of a second."""
    for _ in range(int(SECONDS * 10)):
        time.sleep(0.06)  # HERE
        end = time.thread_time() + 0.04
        while time.thread_time() < end:
            pass


def wait_many():
    """A hundred threads, each of which waits twenty times a second."""
    def worker():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(0.05)
    run([threading.Thread(target=worker) for _ in range(100)])


def wait_gil():
    """Three threads that want the interpreter all the time."""
    def worker():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            pass
    run([threading.Thread(target=worker, name="worker") for _ in range(3)])


def wait_naps():
    """Short sleeps among short work, and a few long ones elsewhere."""
    slept = [0, 0]

    def nap():
        start = time.monotonic_ns()
        time.sleep(0.002)
        slept[0] += time.monotonic_ns() - start

    def rest():
        start = time.monotonic_ns()
        time.sleep(0.1)
        slept[1] += time.monotonic_ns() - start
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for _ in range(50):
            nap()
            busy = time.thread_time() + 0.0005
            while time.thread_time() < busy:
                pass
        rest()
    return {"nap_ns": slept[0], "rest_ns": slept[1]}


def wait_forever():
    """Killed while a worker hangs."""
    lock = threading.Lock()
    lock.acquire()

    def hung():
        name = ctypes.create_string_buffer(b"hung")
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME: before 3.14 names stay inside
        lock.acquire()  # HERE
    threading.Thread(target=hung, daemon=True).start()
    time.sleep(SECONDS)
    print(json.dumps({"wall_ns": int(SECONDS * 1e9)}), flush=True)
    import os
    os.kill(os.getpid(), 9)


def run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    kind = sys.argv[1]
    start = time.monotonic_ns()
    more = globals()["wait_" + kind]() or {}
    print(json.dumps(more | {"wall_ns": time.monotonic_ns() - start,
                      "cpu_ns": time.process_time_ns()}))


main()
