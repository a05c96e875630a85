# SPDX-License-Identifier: MIT
"""Programs that are traced, profiled, monitored while they look: their code is another one then."""

import sys
import threading

from truth import Skip, case, look


def plain(depth):
    look()
    if depth:
        plain(depth - 1)

    look()
    return [x for x in (depth,)]


def stepping():
    for i in range(2):
        look()

        yield i


def work():
    plain(2)
    for _ in stepping():
        look()
    try:
        raise ValueError
    except ValueError:
        look()
    sorted([2, 1], key=lambda x: look() or x)
    exec("def f():\n  look()\nf()", {"look": look})


def mine(frame):
    """Our own looking is not looked at: the trace function would call itself for ever."""
    return frame.f_code.co_filename == __file__ and frame.f_code.co_name in (
        "plain", "stepping", "work", "<lambda>")


LEFT = {"looks": 0}


def some(times):
    """May an observer look, so that there are not thousands of looks?"""
    LEFT["looks"] -= 1
    if LEFT["looks"] % times == 0:
        look()


@case
def traced():
    def tracer(frame, event, argument):
        if not mine(frame):
            return None
        some(5)
        return tracer
    sys.settrace(tracer)
    work()
    sys.settrace(None)
    work()


@case
def traced_by_instruction():
    def tracer(frame, event, argument):
        if not mine(frame):
            return None
        frame.f_trace_opcodes = True
        some(20)
        return tracer
    sys.settrace(tracer)
    work()
    sys.settrace(None)
    work()


@case
def traced_from_the_middle():
    """Tracing starts and ends in frames that run already."""
    def tracer(frame, event, argument):
        return tracer if mine(frame) else None

    def inner():
        look()
        sys._getframe().f_trace = tracer
        sys.settrace(tracer)
        look()

        plain(1)

    def outer():
        inner()
        look()
        sys.settrace(None)
        look()
    outer()


@case
def profiled():
    def profiler(frame, event, argument):
        if mine(frame):
            some(3)
    sys.setprofile(profiler)
    work()
    sys.setprofile(None)
    work()


@case
def traced_and_profiled_in_threads():
    threading.settrace(lambda frame, event, argument: None)
    threading.setprofile(lambda frame, event, argument: mine(frame) and some(4))
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    threading.settrace(None)
    threading.setprofile(None)


def monitoring():
    if sys.version_info < (3, 12):
        raise Skip("it has no sys.monitoring")
    return sys.monitoring


@case
def monitored():
    tool = monitoring()
    events = tool.events
    tool.use_tool_id(3, "truth")

    def seen(code, *_):
        if code.co_filename == __file__ and code.co_name in ("plain", "stepping", "work"):
            some(6)
    watched = [events.PY_START, events.PY_RETURN, events.PY_YIELD, events.PY_RESUME, events.LINE,
               events.JUMP, events.CALL, events.RAISE, events.EXCEPTION_HANDLED]
    for event in watched:
        tool.register_callback(3, event, seen)
    tool.set_events(3, sum(watched))
    work()
    tool.set_events(3, events.INSTRUCTION)
    tool.register_callback(3, events.INSTRUCTION, lambda code, *_: tool.DISABLE)
    work()
    tool.set_events(3, 0)
    tool.free_tool_id(3)
    work()


@case
def monitored_locally():
    """Only one function's code is instrumented, while it runs."""
    tool = monitoring()
    tool.use_tool_id(4, "truth")
    tool.register_callback(4, tool.events.LINE, lambda *_: some(2))

    def watched():
        look()
        tool.set_local_events(4, watched.__code__, tool.events.LINE)
        look()

        plain(1)
        tool.set_local_events(4, watched.__code__, 0)
        look()
    watched()
    watched()
    tool.free_tool_id(4)


@case
def perf_trampoline():
    if not hasattr(sys, "activate_stack_trampoline"):
        raise Skip("it has no trampolines for perf")
    try:
        sys.activate_stack_trampoline("perf")
    except (ValueError, RuntimeError, OSError) as why:
        raise Skip(f"its trampolines for perf: {why}") from None
    exec("def f():\n  look()\n  g()\ndef g():\n\n  look()\nf()", {"look": look})
    work()
    sys.deactivate_stack_trampoline()
    work()
