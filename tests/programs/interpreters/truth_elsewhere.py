# SPDX-License-Identifier: MIT
"""Threads, processes, threads that native code made, and threads that wait."""

import concurrent.futures
import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
import time

from truth import HELD, LOOKS, TICK, case, look
from walk_truth import look_of, stack


def down(depth, function):
    return down(depth - 1, function) if depth else function()


@case
def threads_at_once():
    barrier = threading.Barrier(4)

    def work(depth):
        barrier.wait(60)
        for _ in range(3):
            down(depth, look)
        barrier.wait(60)
    threads = [threading.Thread(target=work, args=(depth,)) for depth in range(3)]
    for thread in threads:
        thread.start()
    barrier.wait(60)
    look()
    barrier.wait(60)
    for thread in threads:
        thread.join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: look(), range(3)))
    look()


START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


@case
def threads_of_native_code():
    """Their thread states are made by the first call into Python, and die with it."""
    libc = ctypes.CDLL(None)
    libc.pthread_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, START, ctypes.c_void_p]
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]

    def begins(_):
        look()
        down(2, look)
    start = START(begins)
    for _ in range(3):
        thread = ctypes.c_ulong()
        assert libc.pthread_create(ctypes.byref(thread), None, start, None) == 0
        libc.pthread_join(thread, None)
    look()


def in_child(function):
    """LOOKS of @function, run in a forked child."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            LOOKS.clear()
            function()
            with open(theirs, "w") as out:
                json.dump(LOOKS, out)
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours) as seen:
        text = seen.read()
    os.waitpid(child, 0)
    LOOKS.extend(json.loads(text))


@case
def forked():
    in_child(look)
    down(3, lambda: in_child(lambda: down(2, look)))

    def with_thread():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        look()
    in_child(with_thread)
    thread = threading.Thread(target=in_child, args=(look,))
    thread.start()
    thread.join()
    in_child(lambda: in_child(look))
    look()


class Waiter:
    """A thread that waits in ENTER, looked at by its own signal handler while it does. WAKE ends the
    wait; without one the thread waits on until the process ends."""

    def __init__(self, enter, wake):
        self.enter, self.wake = enter, wake
        self.ids = queue.Queue()

    def body(self):
        self.ids.put((threading.get_ident(), threading.get_native_id()))
        down(2, self.enter)

    def entered(self, ident):
        frame = sys._current_frames().get(ident)
        while frame and frame.f_code is not self.enter.__code__:
            frame = frame.f_back
        return frame is not None

    def look_once(self, library, ident, tid):
        """None where the thread was still on its way: it sleeps there as well, for the lock."""
        wait_until(lambda: state_of(tid) == "S" and self.entered(ident))
        text = ctypes.create_string_buffer(1 << 16)
        before = stack(sys._current_frames()[ident])
        assert library.tick_thread(ctypes.c_ulong(ident), text, len(text)) == 0
        if stack(sys._current_frames()[ident]) != before:
            return None
        return look_of(text.value.decode(), before, held=0)

    def look(self, library):
        thread = threading.Thread(target=self.body, daemon=True)
        thread.start()
        ids = self.ids.get(timeout=60)
        looks = []
        wait_until(lambda: looks.append(self.look_once(library, *ids)) or looks[-1])
        LOOKS.append(looks[-1])
        if self.wake:
            self.wake()
            thread.join(60)
            assert not thread.is_alive()


def state_of(tid):
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def wait_until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


@case
def waiting():
    """Without the lock, in the middle of a call that waits; a signal handler looks."""
    library = ctypes.CDLL(TICK)
    assert library.tick_start(HELD.probe_walk) == 0
    lock, event = threading.Lock(), threading.Event()
    ours, theirs = socket.socketpair()
    lock.acquire()

    def sleeps():
        time.sleep(10**6)

    def reads():
        os.read(ours.fileno(), 1)

    def receives():
        ours.recv(1)

    def locks():
        lock.acquire()

    def is_told():
        event.wait(60)
    for enter, wake in ((sleeps, None), (reads, lambda: theirs.send(b"x")),
                        (receives, lambda: theirs.send(b"x")), (locks, lock.release),
                        (is_told, event.set)):
        Waiter(enter, wake).look(library)
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
