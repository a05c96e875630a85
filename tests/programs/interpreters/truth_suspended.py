# SPDX-License-Identifier: MIT
"""Generators and coroutines, suspended and running, and greenlets."""

import asyncio
import contextlib
import itertools
import sys
import threading
import types

from truth import Skip, case, look


def counting(stop):
    try:
        for i in range(stop):
            look()
            yield i
    finally:
        look()


def chained(depth):
    if depth:
        got = yield from chained(depth - 1)
        look()
        return got
    look()
    got = yield 1
    look()
    yield 2
    return got


@case
def generators_in_every_state():
    suspended = [counting(5) for _ in range(10)]
    for generator in suspended:
        next(generator)
        look()
    inner = chained(6)
    next(inner), inner.send(3)
    list(inner)
    thrown = chained(3)
    next(thrown)
    with contextlib.suppress(ValueError):
        thrown.throw(ValueError())
    del suspended[3:], thrown
    for generator in suspended:
        generator.close()
    look()
    never = counting(1)
    list(zip(counting(2), itertools.islice(counting(9), 2), (x for x in counting(1))))
    first, *_ = counting(2)
    del never
    for _ in counting(3):
        for _ in counting(1):
            look()
            break


@case
def generators_that_change_threads():
    generator = chained(4)
    next(generator)
    thread = threading.Thread(target=lambda: [look() for _ in generator])
    thread.start()
    thread.join()
    look()


class Awaitable:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        look()
        yield self.value
        look()


@types.coroutine
def old_style():
    look()
    yield 1
    look()


async def waits(depth):
    look()
    if depth:
        await waits(depth - 1)
    else:
        await Awaitable(1)
        await old_style()
    look()


@case
def coroutines_by_hand():
    """await chains without a loop, several of them interleaved."""
    running = [waits(depth) for depth in (0, 1, 5)]
    while running:
        for coroutine in list(running):
            try:
                coroutine.send(None)
            except StopIteration:
                running.remove(coroutine)
            look()
    left = waits(3)
    left.send(None)
    left.close()
    look()


async def produces(stop):
    try:
        for i in range(stop):
            await asyncio.sleep(0)
            look()
            yield i
    finally:
        await asyncio.sleep(0)
        look()


async def in_tasks():
    async with asyncio.TaskGroup() as group:
        for depth in range(3):
            group.create_task(waits_on(depth))
    async for _ in produces(2):
        look()
    [x async for x in produces(1) if not look()]
    generator = produces(3)
    await anext(generator)
    await generator.aclose()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):
            await waits_on(0)
            await asyncio.sleep(10)
    await asyncio.to_thread(look)
    if sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await asyncio.create_task(waits_on(2))


async def waits_on(depth):
    look()
    await (waits_on(depth - 1) if depth else asyncio.sleep(0))

    look()


@case
def tasks():
    asyncio.run(in_tasks())
    look()


def switching(main, depth):
    if depth:
        return switching(main, depth - 1)
    for _ in range(3):
        look()
        main.switch()
    look()


@case
def greenlets():
    """The running greenlet's own stack, not its parent's."""
    try:
        import greenlet
    except ImportError:
        raise Skip("no greenlet is installed for it") from None
    main = greenlet.getcurrent()
    running = [greenlet.greenlet(switching) for _ in range(3)]
    for _ in range(3):
        for i, one in enumerate(running):
            one.switch(*([main, i] if not one else []))
            look()
    child = greenlet.greenlet(lambda: greenlet.greenlet(lambda: look() or main.switch()).switch())
    child.switch()
    look()

    def throws():
        with contextlib.suppress(KeyError):
            main.switch()
        look()
    one = greenlet.greenlet(throws)
    one.switch()
    one.throw(KeyError)
    for one in running:
        one.throw()
    sorted([2, 1], key=lambda x: greenlet.greenlet(lambda: look()).switch() or x)

    def generator():
        for _ in range(2):
            main.switch()
            look()
            yield
    one = greenlet.greenlet(lambda: list(generator()))
    for _ in range(3):
        one.switch()
        look()


@case
def gevent_greenlets():
    try:
        import gevent
    except ImportError:
        raise Skip("no gevent is installed for it") from None

    def work(depth):
        if depth:
            work(depth - 1)
        look()
        gevent.sleep(0)

        look()
    gevent.joinall([gevent.spawn(work, depth) for depth in range(3)])
    look()
    gevent.get_hub().threadpool.spawn(look).get()
