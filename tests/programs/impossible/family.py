# SPDX-License-Identifier: MIT
"""Functions of which a few call a few. program.py compiles this text once for each thread, under
another file name; edges.py reads the marks.

  # > NAMES   from this line only these are called, or resumed
  # * NAMES   this line only makes them: generators and coroutines that stop before their first line

Everything is short, so that most samples fall into calls, returns, yields and resumptions. A call
has a line of its own.
"""

import types


def work(clock, end):
    while clock() < end:
        root_a()  # > root_a
        root_b()  # > root_b
        recurses()  # > recurses
        alternates()  # > alternates
        drops()  # > drops
        drives()  # > drives
        enters_from_c()  # > enters_from_c
        uses()  # > uses
        catches()  # > catches
        spreads()  # > spreads
        nests()  # > nests
        fresh_1()  # > fresh_1
        root_a()  # > root_a
        fresh_2()  # > fresh_2
        wide_1()  # > wide_1
        root_b()  # > root_b
        wide_2()  # > wide_2


# Odd and even: no a calls an a, no b a b, and each depth has its own.
def root_a():
    return a_0(1)  # > a_0


def a_0(x):
    return b_1(x)  # > b_1


def b_1(x):
    return a_2(x)  # > a_2


def a_2(x):
    return b_3(x)  # > b_3


def b_3(x):
    return x


def root_b():
    return b_0(1)  # > b_0


def b_0(x):
    return a_1(x)  # > a_1


def a_1(x):
    return b_2(x)  # > b_2


def b_2(x):
    return a_3(x)  # > a_3


def a_3(x):
    return x


def recurses():
    return down(7)  # > down


def down(n):
    if n:
        return down(n - 1)  # > down
    return bottom()  # > bottom


def bottom():
    return 1


# Two generators take turns; each is made in one place and resumed in another.
def alternates():
    one = make_1()  # > make_1
    two = make_2()  # > make_2
    for _ in "1234":
        take_1(one)  # > take_1
        take_2(two)  # > take_2


def make_1():
    return gen_1()  # * gen_1


def make_2():
    return gen_2()  # * gen_2


def take_1(generator):
    next(generator, None)  # > gen_1


def take_2(generator):
    for _ in generator:  # > gen_2
        break


def gen_1():
    yield leaf_1()  # > leaf_1
    yield from inner_1()  # > inner_1


def inner_1():
    yield 1
    yield leaf_2()  # > leaf_2


def gen_2():
    yield 1
    yield leaf_3()  # > leaf_3
    yield from inner_2()  # > inner_2


def inner_2():
    yield leaf_4()  # > leaf_4


def drops():
    generator = gen_3()  # * gen_3
    next(generator)  # > gen_3
    del generator  # > gen_3


def gen_3():
    try:
        yield 1
    finally:
        leaf_5()  # > leaf_5


# Two coroutines take turns, without a loop; the second iterates an asynchronous generator.
def drives():
    one = outer_1()  # * outer_1
    two = outer_2()  # * outer_2
    for _ in "123":
        send_1(one)  # > send_1
        send_2(two)  # > send_2
    one.close()  # > outer_1
    two.close()  # > outer_2


def send_1(coroutine):
    try:
        coroutine.send(None)  # > outer_1
    except StopIteration:
        pass
    except RuntimeError:
        pass


def send_2(coroutine):
    try:
        coroutine.send(None)  # > outer_2
    except StopIteration:
        pass
    except RuntimeError:
        pass


async def outer_1():
    await middle_1()  # > middle_1
    leaf_6()  # > leaf_6


async def middle_1():
    await pause_1()  # > pause_1
    await innermost_1()  # > innermost_1


async def innermost_1():
    await pause_1()  # > pause_1


@types.coroutine
def pause_1():
    yield


async def outer_2():
    async for _ in agen_2():  # > agen_2
        leaf_7()  # > leaf_7


async def agen_2():
    yield 1
    await pause_2()  # > pause_2
    yield leaf_8()  # > leaf_8


@types.coroutine
def pause_2():
    yield


def enters_from_c():
    sorted((2, 1), key=key)  # > key
    list(map(mapped, (1, 2)))  # > mapped


def key(x):
    return leaf_9(x)  # > leaf_9


def mapped(x):
    return leaf_10(x)  # > leaf_10


# Calls that no call instruction makes.
class Box:
    def __init__(self):
        self.kept = leaf_11(1)  # > leaf_11

    def __getitem__(self, index):
        return leaf_12(index)  # > leaf_12

    def __call__(self):
        return leaf_13(1)  # > leaf_13

    def __eq__(self, other):
        return leaf_14(1)  # > leaf_14

    def __getattr__(self, name):
        return leaf_15(name)  # > leaf_15

    def __enter__(self):
        return self

    def __exit__(self, *_):
        leaf_16(1)  # > leaf_16

    @property
    def value(self):
        return leaf_17(1)  # > leaf_17

    def method(self):
        return leaf_18(1)  # > leaf_18


def uses():
    box = Box()  # > __init__
    box[0]  # > __getitem__
    box()  # > __call__
    box == 1  # > __eq__
    box.absent  # > __getattr__
    box.value  # > value
    box.method()  # > method
    with box:  # > __enter__ __exit__
        pass


def catches():
    try:
        throws_1()  # > throws_1
    except ValueError:
        leaf_19()  # > leaf_19


def throws_1():
    throws_2()  # > throws_2


def throws_2():
    raise ValueError


def spreads():
    several, named = (1, 2), {"z": 3}
    starred(*several, **named)  # > starred
    by_name(y=1, x=2)  # > by_name


def starred(x, y, z):
    return leaf_20(x, y, z)  # > leaf_20


def by_name(x, y):
    return leaf_21(x, y)  # > leaf_21


# Much room for values, in which the frames of earlier calls still stand.
def wide_1():
    x = 1
    leaf_23(  # > leaf_23
            leaf_24(1), x, x, x, x, x, x, x, x, x, x,  # > leaf_24
            x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x)


def wide_2():
    x = 1
    return [deeper(1), x, x, x, x, x, x, x, x, x, x,  # > deeper
            x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]


def deeper(x):
    return leaf_25(x)  # > leaf_25


# What some versions give a frame of its own and others not, each on one line.
def nests():
    [in_list(x) for x in (1, 2)]  # > <listcomp> in_list
    sum(in_generator(x) for x in (1, 2))  # > <genexpr> in_generator
    (lambda x: in_lambda(x))(1)  # > <lambda> in_lambda


def in_list(x):
    return x


def in_generator(x):
    return x


def in_lambda(x):
    return x


# Code that dies at once: the next one's has its address and another name.
def fresh_1():
    brief = copied("brief_1")  # > copied
    brief()  # > brief_1


def fresh_2():
    brief = copied("brief_2")  # > copied
    brief()  # > brief_2


def copied(name):
    return types.FunctionType(brief.__code__.replace(co_name=name, co_qualname=name), globals())


def brief():
    return leaf_22()  # > leaf_22


def leaf_1(*_):
    return 1


def leaf_2(*_):
    return 1


def leaf_3(*_):
    return 1


def leaf_4(*_):
    return 1


def leaf_5(*_):
    return 1


def leaf_6(*_):
    return 1


def leaf_7(*_):
    return 1


def leaf_8(*_):
    return 1


def leaf_9(*_):
    return 1


def leaf_10(*_):
    return 1


def leaf_11(*_):
    return 1


def leaf_12(*_):
    return 1


def leaf_13(*_):
    return 1


def leaf_14(*_):
    return 1


def leaf_15(*_):
    return 1


def leaf_16(*_):
    return 1


def leaf_17(*_):
    return 1


def leaf_18(*_):
    return 1


def leaf_19(*_):
    return 1


def leaf_20(*_):
    return 1


def leaf_21(*_):
    return 1


def leaf_22(*_):
    return 1


def leaf_23(*_):
    return 1


def leaf_24(*_):
    return 1


def leaf_25(*_):
    return 1
