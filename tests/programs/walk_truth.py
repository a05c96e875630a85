# SPDX-License-Identifier: MIT
"""Looks at its own stack through the probe and through the interpreter, and prints both.

  walk_truth.py PROBE CASE [outside]

prints a JSON object: `looks` is a list of {walked, end, truth}, `facts` what a case found otherwise.
With `outside` another process looks.
Frames are [file, qualified name, line, entry], leaf first; the truth has no entry marks
"""

import asyncio
import contextlib
import ctypes
import functools
import json
import sys
import tempfile
import threading

PROBE = sys.argv[1]
ROOM = 1024  # frames that a walk may take
HELD = ctypes.PyDLL(PROBE)  # called with the interpreter lock
RELEASED = ctypes.CDLL(PROBE)  # called without
PROBES = (HELD.probe_walk, RELEASED.probe_walk)  # how each look is taken
LOOKS = []
FACTS = {}
CASES = {}


def stack(frame):
    frames = []
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno])
        frame = frame.f_back
    return frames


def look_of(text, truth, held):
    """What the probe wrote, beside what it should have; @held: whether the lock was held."""
    end, *lines = text.splitlines()
    end, holds_lock = map(int, end.split("\t"))
    walked = [line.split("\t") for line in lines]
    return {"end": end, "truth": truth, "holds_lock": holds_lock, "held": held,
            "walked": [[file, name, int(line), entry == "1"]
                       for file, name, line, entry in walked]}


def look():
    for probe in PROBES:
        text = ctypes.create_string_buffer(4 << 20)
        # One line, so that both see the same.
        rc, truth = probe(ROOM, text, len(text)), stack(sys._getframe())
        assert rc == 0
        LOOKS.append(look_of(text.value.decode(), truth, int(probe is PROBES[0])))


def case(function):
    CASES[function.__name__] = function
    return function


@case
def nested():
    def outer():
        x = 1

        def inner():
            y = x + 1
            look(
            )
            return y
        return (
            1 +
            inner()
        )
    outer()


@case
def lines():
    """Every kind of statement, each look at a line of its own."""
    look()
    try:
        look()
        raise ValueError(
            look())
    except ValueError:
        look()
        with contextlib.suppress(KeyError):

            look()
    finally:
        look()
    for _ in range(2):

        look()
    match 3:
        case 3:
            look()
    values = [
        1,
        look(),
        2]
    print(values, look(), file=sys.stderr)

    while True:
        look()
        break
    return look()


@case
def far_lines():
    """Line numbers that go back and far ahead, and more instructions than one byte can jump."""
    source = ["def far(look):", "    x = ["]
    source += [f"        {i}, {i}.5 + {i}j, '{i}'," for i in range(3000)]
    source += ["        look(", *[""] * 5000, "        ), x0", "        ]", "    return look()",
               "x0 = 1", "far(look)"]
    exec(compile("\n".join(source), "far.py", "exec"), {"look": look})


class Shape:
    def method(self):
        look()

    @classmethod
    def of_class(cls):
        cls().method()

    @staticmethod
    def of_static():
        Shape.of_class()

    @property
    def area(self):

        return self.of_static()

    def __add__(self, other):
        return self.area


@case
def methods():
    Shape() + Shape()


def numbers(depth):
    if depth:
        yield from numbers(depth - 1)
    else:
        look()
        yield 1
        look()


@case
def generators():
    for _ in numbers(3):
        look()
    generator = numbers(2)
    next(generator)
    sum(x for x in numbers(1) if not look())
    generator.close()

    def receiver():
        try:
            while True:
                value = yield
                look()
                if value:
                    look()
        finally:
            look()
    generator = receiver()
    next(generator)
    generator.send(
        5)
    with contextlib.suppress(ZeroDivisionError):
        generator.throw(ZeroDivisionError)


async def leaf(delay):
    look()
    await asyncio.sleep(delay)

    look()


async def counted(number):
    for i in range(number):
        await leaf(0)
        yield i
        look()


@contextlib.asynccontextmanager
async def managed():
    look()
    yield
    look()


async def main():
    await asyncio.gather(leaf(0), leaf(0.001))
    async for _ in counted(2):
        look()
    async with managed():

        look()
    return [x async for x in counted(1)
            if not look()]


@case
def coroutines():
    asyncio.run(main())


@case
def comprehensions():
    [look() for _ in range(1)]
    {look() for _ in range(1)}
    {1:
     look() for _ in range(1)}
    list([look() for _ in range(1)] for _ in range(1))
    (lambda:
     (lambda: look())())()


def twice(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        function(*arguments)

        return function(
            *arguments)
    return wrapper


@twice
@twice
def decorated(argument):
    look()


@case
def decorators():
    decorated(1)


@case
def class_bodies():
    class Outer:
        look()

        class Inner:
            x = 1
            look()

            def __init_subclass__(cls):
                look()

        class Derived(Inner):
            pass


@case
def executed():
    source = "def f():\n\n    look()\n\n\nf(\n)\nlook()\n"
    exec(source, {"look": look})
    exec(compile(source, "", "exec"), {"look": look})
    eval("(\n look())", {"look": look})


@case
def names():
    for file, name in (("café.py", "été"), ("Ωmega/文件.py", "λόγος"), ("x.py", "变量"),
                       ("😀.py", "𐊀𐊁"), ("\udc80\udcff.py", "f"), ("tab\there\n.py", "ÿ"),
                       ("a" * 3000 + ".py", "ascii")):
        source = f"class {name}K:\n  def {name}():\n\n    look()\n{name}K.{name}()\n"
        exec(compile(source, file, "exec"), {"look": look})


def descend(depth):
    if depth:
        return descend(depth - 1)
    return look()


@case
def deep():
    sys.setrecursionlimit(10000)
    descend(900)


@case
def deeper_than_room():
    sys.setrecursionlimit(10000)
    descend(3000)


@case
def threads():
    barrier = threading.Barrier(5)

    def run(depth):
        barrier.wait()
        descend(depth)
        barrier.wait()
    started = [threading.Thread(target=run, args=(depth,)) for depth in range(4)]
    for thread in started:
        thread.start()
    barrier.wait()
    look()
    barrier.wait()
    for thread in started:
        thread.join()


@case
def foreign_thread():
    FACTS["state"] = HELD.probe_state_in_thread()


def called_back():
    look()
    look_through()


def look_through():
    look()


@case
def callbacks():
    """Entered from native code: called_back and key, not look_through."""
    callback = ctypes.CFUNCTYPE(None)(called_back)
    HELD.probe_call(callback)
    RELEASED.probe_call(callback)

    def key(value):
        look_through()
        return value
    sorted([2, 1], key=key)
    list(map(key, [1]))


SUB_SCRIPT = """
import sys
sys.argv = ["walk_truth.py", {probe!r}]
space = {{"__name__": "walk_truth", "__file__": {path!r}}}
exec(compile(open({path!r}).read(), {path!r}, "exec"), space)
space["Shape"].of_static()
space["look"]()
import json
with open({out!r}, "w") as out:
    json.dump(space["LOOKS"], out)
"""


def interpreters_module():
    """The private module's name changed in 3.13."""
    with contextlib.suppress(ImportError):
        return __import__("_interpreters")
    return __import__("_xxsubinterpreters")


def create(interpreters):
    """An interpreter that shares the lock and may import ctypes."""
    if sys.version_info >= (3, 13):
        return interpreters.create("legacy")
    if sys.version_info >= (3, 12):
        return interpreters.create(isolated=False)
    return interpreters.create()


@case
def subinterpreters():
    interpreters = interpreters_module()
    idle = create(interpreters)
    look()
    for _ in range(2):
        interpreter = create(interpreters)
        with tempfile.NamedTemporaryFile("r") as out:
            script = SUB_SCRIPT.format(probe=PROBE, path=__file__, out=out.name)
            failed = interpreters.run_string(interpreter, script)
            assert failed is None, failed
            FACTS["in_sub"] = json.load(out)
            LOOKS.extend(FACTS["in_sub"])
        look()
        interpreters.destroy(interpreter)
    interpreters.destroy(idle)
    look()


@case
def subinterpreter_in_thread():
    thread = threading.Thread(target=subinterpreters)
    thread.start()
    look()
    thread.join()


def content(code):
    return code.co_qualname, code.co_filename, code.co_firstlineno, code.co_linetable


@case
def identities():
    """Code objects of equal name, most at addresses where another died."""
    identity = HELD.probe_identity
    identity.restype, identity.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
    space = {}
    exec("def f():\n  return 1\n", space)
    contents, by_content, addresses = {}, {}, set()
    wrong = 0
    for i in range(100_000):
        code = space["f"].__code__.replace(co_firstlineno=1 + i % 40_000)
        addresses.add(id(code))
        found = identity(id(code))
        wrong += not found
        wrong += contents.setdefault(found, content(code)) != content(code)
        wrong += by_content.setdefault(content(code), found) != found
    FACTS.update(wrong=wrong, addresses=len(addresses), identities=len(contents))
    similar = []
    for name in ("f", "g", "é", "Ω", "ff" * 300):
        for body in ("  return 1", "\n  return 1", "  return 12", "  return (1,\n2)"):
            for file in ("a", "b", "é", "a" * 100 + "b", "a" * 100 + "c"):
                space = {}
                exec(compile(f"def {name}():\n{body}\n", file, "exec"), space)
                similar += [space[name].__code__] * 2
    pairs = {(identity(id(code)), content(code)) for code in similar}
    FACTS.update(pairs=len(pairs), similar_identities=len({pair[0] for pair in pairs}),
                 similar_contents=len({pair[1] for pair in pairs}))


@case
def faults():
    HELD.probe_fault.argtypes = [ctypes.c_uint64]
    rubbish = ctypes.create_string_buffer(b"\xff" * 4096)
    addresses = (8, 0x1000, 0xdead0000, 1 << 46, (1 << 47) + 16, 0xffff800000000000, 2**64 - 8,
                 ctypes.addressof(rubbish))
    FACTS["wrong"] = [HELD.probe_fault(address) for address in addresses]
    look()


class Busy:
    def __del__(self):
        called_back_quietly(1)

    def __eq__(self, other):
        return called_back_quietly(2)


def called_back_quietly(depth):
    return called_back_quietly(depth - 1) if depth else sum(x for x in range(2))


async def switch(times):
    for _ in range(times):
        await asyncio.sleep(0)


@case
def ticks():
    """Ticks while frames are pushed and popped in every way, and code objects die."""
    HELD.probe_ticks_count.restype = ctypes.c_uint64
    assert HELD.probe_ticks_start(100) == 0
    while HELD.probe_ticks_count(0) < 20_000:
        for _ in range(20):
            Busy() == Busy()
            sorted([3, 2, 1], key=called_back_quietly)
            space = {}
            exec("def f(x):\n  return g(x)\ndef g(x):\n  return [y for y in (x, x)]\n", space)
            [space["f"](i) for i in range(9)]
            with contextlib.suppress(ZeroDivisionError):
                called_back_quietly(3) / 0
        asyncio.run(switch(3))
    HELD.probe_ticks_stop()
    names = ("ticks", "unreadable", "wrong_root", "wrong_code", "faults")
    FACTS.update((name, HELD.probe_ticks_count(i)) for i, name in enumerate(names))


@case
def benchmark():
    """40 functions, four a file, with line tables of some 300 bytes."""
    HELD.probe_benchmark.restype = ctypes.c_double
    HELD.probe_benchmark_from_outside.restype = ctypes.c_double

    def last():
        FACTS["warm_ns"] = HELD.probe_benchmark(20001, 0)
        FACTS["cold_ns"] = HELD.probe_benchmark(101, 1)
        calls = ctypes.c_double()
        for name, identify in (("outside", False), ("outside_identified", True)):
            FACTS[f"{name}_ns"] = HELD.probe_benchmark_from_outside(2001, 20, identify,
                                                                    ctypes.byref(calls))
            FACTS[f"{name}_calls"] = calls.value
    space = {"function_40": last}
    for i in range(40):
        body = "    x = [1, 2]\n    y = x[0] + x[1]\n" * 8
        source = f"def function_{i}():\n{body}    return function_{i + 1}()\n"
        exec(compile(source, f"/usr/lib/package/module_{i // 4}.py", "exec"), space)
        FACTS["line_table_bytes"] = len(space[f"function_{i}"].__code__.co_linetable)
    space["function_0"]()


if __name__ == "__main__":
    if sys.argv[3:] == ["outside"]:
        PROBES = (HELD.probe_walk_from_outside, RELEASED.probe_walk_from_outside)
    CASES[sys.argv[2]]()
    json.dump({"looks": LOOKS, "facts": FACTS}, sys.stdout)
