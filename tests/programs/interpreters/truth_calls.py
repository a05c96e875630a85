# SPDX-License-Identifier: MIT
"""Calls from Python and from native code, of functions, classes and text that is executed."""

import abc
import contextlib
import ctypes
import dataclasses
import functools
import gc
import json
import re
import signal
import sys
import types
import weakref

from truth import HELD, RELEASED, case, look


def even(number):
    return True if number == 0 else odd(number - 1)


def odd(number):
    if number == 1:
        look()
    return False if number == 0 else even(
        number - 1)


@case
def recursion():
    even(3)
    even(60)

    def within(depth, *rest, key=None):
        return within(depth - 1, *rest, 1, key=key) if depth else look()
    within(20, key=within)
    within(0)


class Everything:
    """Each of its special methods looks."""

    held = None

    def __new__(cls, *arguments):
        look()
        return super().__new__(cls)

    def __init__(self, value=0):
        look()
        self.value = value

    def __getattr__(self, name):
        look()
        if name.startswith("__"):
            raise AttributeError(name)
        return name

    def __call__(self, *arguments, **named):
        look()

    def __enter__(self):
        look()
        return self

    def __exit__(self, *error):
        look()
        return True

    def __iter__(self):
        look()
        return self

    def __next__(self):
        look()
        raise StopIteration

    def __hash__(self):
        look()
        return 1

    def __eq__(self, other):
        look()
        return True

    def __lt__(self, other):
        look()
        return False

    def __bool__(self):
        look()
        return True

    def __getitem__(self, key):
        look()
        return key

    def __contains__(self, key):
        look()
        return True

    def __format__(self, text):
        look()
        return text

    def __repr__(self):
        look()
        return "Everything()"

    def __index__(self):
        look()
        return 1

    def __class_getitem__(cls, item):
        look()
        return cls

    @property
    def area(self):
        look()
        return 1

    @functools.cached_property
    def once(self):
        look()
        return 1


@case
def special_methods():
    thing = Everything(1)
    for _ in range(100):  # until the calls are specialised: the looks are those of the end
        look.off = True
        thing.area, thing[1], thing == thing, thing(), 1 in thing
    look.off = False
    thing.unknown, thing(1, a=2), thing[1], thing.area, thing.once
    with thing:
        raise ValueError
    list(thing)
    {thing: 1}, thing in [Everything()], sorted([thing, Everything(2)])
    f"{thing:x} {thing!r}"
    [1, 2][thing], Everything[int], bool(thing), 5 in thing


@case
def short_calls():
    """Functions that do nothing but call, by every way that a call has."""
    def one():
        look()

    def two(*_, **__):
        one()
    bound = types.MethodType(two, 1)
    two(), two(*[1]), two(**{"a": 1}), two(*[1], **{"a": 1}), bound(), bound(1, 2)
    functools.partial(two, 1)(), (lambda: look())(), (lambda *a: two(*a))(1)
    types.FunctionType(one.__code__, {"look": look}, closure=one.__closure__)()
    list(map(two, [1])), list(filter(two, [1])), functools.reduce(two, [1, 2])
    max([1, 2], key=two_of(two)), list(iter(one, None))
    getattr(base_of(one), "call")(1)


def two_of(function):
    def key(value):
        function(value)
        return value
    return key


def base_of(function):
    return type("Made", (), {"call": lambda self, _: function()})()


@case
def warm():
    """Looks from code that ran thousands of times: specialised, optimised, compiled."""
    look.off = True

    def inner(x):
        if x > 19_990:
            look.off = False

            look()
        return x + 1

    def outer(x):
        return (inner(x) +
                1)
    total = 0
    for i in range(20_000):
        total += outer(i)
        total -= 1


@case
def wide():
    """Frames that need memory of their own: thousands of locals, and many arguments."""
    names = ", ".join(f"a{i}" for i in range(4000))
    source = f"def wide(depth, {names}):\n"
    source += "".join(f"    a{i} = a{i + 1}\n" for i in range(0, 3999, 7))
    source += f"    return wide(depth - 1,\n\n{names}) if depth else look()\n"
    space = {"look": look}
    exec(source, space)
    space["wide"](3, *range(4000))
    space["wide"](0, *range(4000))


@case
def executed_text():
    exec("look()")
    exec("def f():\n  look()\nf()\nclass A:\n  look()\n", {"look": look})
    eval("[look() for _ in (1,)]", {"look": look})
    eval("(lambda:\n\n look())()", {"look": look})
    exec("exec('exec(\"\\\\n\\\\nlook()\")')")
    code = compile("\n\ndef g():\n    look()\ng()\n", "<made\u2603>", "exec")
    exec(code, {"look": look})
    exec(code.replace(co_firstlineno=70_000, co_name="étage", co_filename="\U0001f40d.py"),
         {"look": look})

    def f():
        look()
    renamed = f.__code__.replace(co_name="других", co_qualname="Класс.других",
                                 co_filename="ÿ" * 300, co_firstlineno=5)
    types.FunctionType(renamed, globals(), closure=f.__closure__)()
    exec(compile("look()", "", "single"), {"look": look})
    exec("import string\nlook()\n" + "\n" * 70_000 + "look()\n", {"look": look})


@case
def names_of_every_width():
    for file in ("ascii.py", "ÿéß.py", "Ωж.py", "\U0001f40d.py", ""):
        for name in ("f", "é", "ж", "\U00010280"):
            space = {"look": look}
            exec(compile(f"class {name}:\n  class {name}{name}:\n    def {name}(self):\n      look("
                         f")\n{name}.{name}{name}().{name}()\n", file, "exec"), space)


class Meta(abc.ABCMeta):
    @classmethod
    def __prepare__(mcs, name, bases, **named):
        look()
        return {"look": look}

    def __new__(mcs, name, bases, space, **named):
        look()
        return super().__new__(mcs, name, bases, space)

    def __call__(cls, *arguments):
        look()
        return super().__call__(*arguments)


class Named:
    def __set_name__(self, owner, name):
        look()

    def __get__(self, instance, owner=None):
        look()
        return 1


@case
def classes():
    class Made(metaclass=Meta, more=1):
        look()
        named = Named()
        values = [look() for _ in (1,)]

        def __init__(self):

            look()

        class Inner:
            look()
            more = {1: look() for _ in (1,)}

    Made()
    Made().named
    type("Typed", (Made,), {"__init__": lambda self: look()})()

    @dataclasses.dataclass
    class Data:
        value: int = 0

        def __post_init__(self):
            look()
    Data(3)


def counted(times):
    def decorate(function):
        look()

        @functools.wraps(function)
        def wrapper(*arguments):
            for _ in range(times):
                function(*arguments)
        return wrapper
    return decorate


@case
def decorated_functions():
    @counted(2)
    @functools.lru_cache
    @counted(1)
    def function(x):
        look()
    function(1)

    @functools.singledispatch
    def by_type(x):
        look()
    by_type.register(int)(lambda x: look())
    by_type("")
    by_type(1)

    @contextlib.contextmanager
    def managed():
        look()
        yield
        look()
    with managed():
        look()

    @managed()
    def within():
        look()
    within()


@case
def comprehensions_within():
    values = [look() or [look() for _ in (1,)] for _ in (1, 2)]
    {x: (lambda: look())() for x in (1,)}
    [y for x in (1,) if (y := look()) is None]
    [(lambda x=x: [look() for _ in (x,)])() for x in (1,)]
    sum(1 for _ in (1,) if not look())
    list(x for x in [look() for _ in (1,)])
    return values


ORDER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
PLAIN = ctypes.CFUNCTYPE(None)


@case
def native_callbacks():
    def ascending(a, b):
        look()
        return a[0] - b[0]
    numbers = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 3, 4, ORDER(ascending))
    sorted([2, 1], key=lambda x: look() or x)
    [2, 1].sort(key=functools.cmp_to_key(lambda a, b: look() or 0))
    re.sub("a", lambda match: look() or "", "banana")
    json.loads('{"a": {"b": 1}}', object_hook=lambda d: look())
    json.dumps({1: object()}, default=lambda o: look())
    # The lock is given back and taken again at every step of these.
    depth = 4

    @PLAIN
    def nested():
        nonlocal depth
        depth -= 1
        look()
        if depth:
            (RELEASED if depth % 2 else HELD).probe_call(nested)
    nested_by_python = PLAIN(lambda: sorted([1], key=lambda _: nested()))
    RELEASED.probe_call(nested_by_python)


class Dies:
    def __init__(self, *others):
        self.others = others

    def __del__(self):
        look()
        del self.others


@case
def callbacks_of_the_interpreter():
    Dies()
    thing = Dies(Dies(Dies()))
    del thing
    ring = Dies()
    ring.ring = ring
    del ring
    gc.collect()
    thing = Dies()
    watch = weakref.ref(thing, lambda _: look())
    weakref.finalize(thing, look)
    del thing
    old = signal.signal(signal.SIGUSR1, lambda *_: look())
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, old)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: look()
    type("Fails", (), {"__del__": lambda self: 1 / 0})()
    sys.unraisablehook = hook
    return watch


@case
def errors():
    def fails(depth):
        try:
            if depth:
                fails(depth - 1)
            else:
                raise ValueError(look())
        except ValueError as error:
            look()
            raise KeyError from error
        finally:
            look()
    with contextlib.suppress(KeyError):
        fails(2)
    try:
        raise ExceptionGroup("", [ValueError(), OSError(), KeyError()])
    except* ValueError:
        look()
    except* (OSError,
             KeyError):

        look()
    try:
        1 / 0
    except ZeroDivisionError as error:
        error.__traceback__.tb_frame
        look()


@case
def frames_kept():
    """Frame objects made, kept and walked, of calls that run on and of calls that are over."""
    kept = []

    def keep(depth):
        kept.append(sys._getframe())
        if depth:
            keep(depth - 1)
        look()
        return kept[-1].f_back.f_lineno
    keep(3)
    keep(3)
    kept[0].clear()
    look()
    [frame.f_locals for frame in kept]
    del kept[:]
    look()
