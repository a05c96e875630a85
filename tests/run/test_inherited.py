# SPDX-License-Identifier: MIT
"""What COMMAND inherits from whoever started pathprof must not blind the recording."""

import ctypes
import struct

SIGSETXID = 33
SYS_RT_SIGACTION = 13  # x86-64
KERNEL_SIGSET_BYTES = 8
SIG_IGN = 1

PROGRAM = """
import threading, time

def burn():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass

threads = [threading.Thread(target=burn) for _ in range(2)]
for thread in threads:
    thread.start()
burn()
for thread in threads:
    thread.join()
"""


def ignore_the_timer_signal():
    """As GNU make leaves it to its children. The C library's functions refuse this signal."""
    action = ctypes.create_string_buffer(struct.pack("QQQQ", SIG_IGN, 0, 0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(SYS_RT_SIGACTION, SIGSETXID, action, None, KERNEL_SIGSET_BYTES) == 0


def test_inherited__ignored_timer_signal_blinds_no_thread(record, report, python):
    done, recording = record([python, "-c", PROGRAM], preexec_fn=ignore_the_timer_signal)
    assert done.returncode == 0, done.stderr
    threads = report(recording)["threads"]
    assert len(threads) == 3 and all(thread["samples"] > 0 for thread in threads), threads
