# SPDX-License-Identifier: MIT
"""Python of every shape, each burning a little in a function whose name says where it must show.

  shapes.py LIBRARY    LIBRARY: libdeep-c.so
"""

import asyncio
import ctypes
import sys
import threading
import time

try:
    import _interpreters as interpreters  # its name from 3.13 on
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None

EACH = 0.12


def burn():
    end = time.thread_time() + EACH
    while time.thread_time() < end:
        sum(range(200))


def generator():
    burn()
    yield 1


async def coroutine():
    await asyncio.sleep(0)
    burn()


async def agenerator():
    burn()
    yield 1


async def asynchronous():
    await coroutine()
    async for _ in agenerator():
        pass


def decorated(function):
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


class Class:
    burn()  # in the class body

    @decorated
    def method(self):
        burn()

    @property
    def größe_名前(self):
        burn()
        return 1


def deep(n):
    return deep(n - 1) if n else burn()


def waits_for_the_lock():
    burn()


def main():
    list(generator())
    asyncio.run(asynchronous())
    Class().method()
    assert Class().größe_名前
    [burn() for _ in range(1)]
    exec(compile("def made():\n    burn()\nmade()", "<made of text>", "exec"), {"burn": burn})
    sys.setrecursionlimit(10000)
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=deep, args=(5000,))
    thread.start()
    thread.join()
    threading.stack_size(0)
    threads = [threading.Thread(target=waits_for_the_lock) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ctypes.CDLL(sys.argv[1]).foreign_thread(150) == 0
    if interpreters:
        inner = interpreters.create()
        interpreters.run_string(inner, "import time\ndef inside():\n"
                                       "    end = time.thread_time() + 0.15\n"
                                       "    while time.thread_time() < end: pass\ninside()")
        interpreters.destroy(inner)


main()
