"""Dataclasses, named tuples and other records that a compiled function is given: others at each call, one plan."""

import collections
import dataclasses
import enum
import gc
import weakref
from typing import NamedTuple

import prong as torch
import pytest


@dataclasses.dataclass
class Batch:
    x: object
    y: object
    scale: float = 2.0

    def total(self):
        return self.x * self.scale + self.y

    @property
    def doubled(self):
        return self.x * 2


Named = collections.namedtuple("Named", "x y scale", defaults=(2.0,))


class Slotted:
    __slots__ = ("x", "y", "scale")

    def __init__(self, x, y, scale=2.0):
        self.x, self.y, self.scale = x, y, scale


class Plain:
    def __init__(self, x, y, scale=2.0):
        self.x, self.y, self.scale = x, y, scale


KINDS = [Batch, Named, Slotted, Plain]


def weighted(b):
    return b.x * b.scale + b.y


def pair(kind, i, **more):
    return kind(torch.ones(2) * i, torch.ones(2) * 3, **more)


def counts(compiled):
    counters = compiled._counters()
    return counters["plans"], counters["replays"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_record_at_each_call_is_one_plan(kind):
    compiled = torch.compile(weighted)
    for i in range(5):
        assert compiled(pair(kind, i)).tolist() == weighted(pair(kind, i)).tolist()
    assert counts(compiled) == (1, 4)


@pytest.mark.parametrize("kind", [Batch, Named, Plain])
def test_numbers_of_a_record_are_inputs(kind):
    compiled = torch.compile(weighted)
    for i in range(5):
        given = pair(kind, i, scale=float(i))
        assert compiled(given).tolist() == weighted(given).tolist()
    assert counts(compiled) == (1, 4)


def test_numbers_in_slots_are_those_of_the_call():
    compiled = torch.compile(weighted)
    for i in range(5):
        given = pair(Slotted, i, scale=float(i % 2))
        assert compiled(given).tolist() == weighted(given).tolist()


def test_methods_properties_and_nested_records():
    def read(b):
        inner = b.y
        return (
            b.total() if isinstance(inner, torch.Tensor) else b.doubled + inner.x[0] + inner.scale
        )

    compiled = torch.compile(read)
    for i in range(4):
        assert compiled(pair(Batch, i)).tolist() == read(pair(Batch, i)).tolist()
    for i in range(4):
        given = Batch(torch.ones(2) * i, Batch([torch.ones(2) * i], None))
        assert compiled(given).tolist() == read(given).tolist()
    assert counts(compiled) == (2, 6)


def test_the_record_itself_is_given_back():
    def kept(b):
        return b, [b, b.x], b.x

    compiled = torch.compile(kept)
    for i in range(3):
        given = pair(Batch, i)
        first, (second, third), fourth = compiled(given)
        assert first is given and second is given and third is given.x and fourth is given.x
    assert counts(compiled) == (1, 2)


@pytest.mark.parametrize("kind", [Batch, Slotted, Plain])
def test_attributes_that_are_assigned_go_to_the_one_that_is_given(kind):
    def changes(b):
        b.x = b.x + 1
        b.scale += 1
        b.y = [b.x, b.scale]
        return b.x * 2

    compiled = torch.compile(changes)
    kept = pair(kind, 7)
    for i in range(6):
        given = kept if i % 2 else pair(kind, i)
        expected = kind(given.x, given.y, given.scale)
        result = changes(expected)
        assert compiled(given).tolist() == result.tolist()
        assert given.x.tolist() == expected.x.tolist() and given.scale == expected.scale
        assert given.y[0] is given.x and given.y[1] == given.scale
        given.y = torch.ones(2) * 3
    assert compiled._counters()["plans"] >= 1


def test_a_new_attribute_is_made_in_each_replay():
    def adds(b):
        b.sum = b.x + b.y
        return b.sum

    compiled = torch.compile(adds)
    for i in range(4):
        given = pair(Plain, i)
        assert compiled(given) is given.sum
        assert given.sum.tolist() == [3.0 + i] * 2
    assert counts(compiled) == (1, 3)


def test_a_record_that_is_also_reached_from_outside():
    state = Plain(torch.ones(2), torch.ones(2))

    def both(b):
        state.scale = state.scale + 1
        return b.x * b.scale + state.scale

    def plain(b, other):
        other.scale = other.scale + 1
        return b.x * b.scale + other.scale

    compiled = torch.compile(both)
    twin = Plain(torch.ones(2), torch.ones(2))
    for i in range(6):
        if i % 2:
            got, expected = compiled(state), plain(twin, twin)
        else:
            got, expected = compiled(pair(Plain, i)), plain(pair(Plain, i), twin)
        assert got.tolist() == expected.tolist() and state.scale == twin.scale


def test_other_types_and_attributes_are_other_plans():
    compiled = torch.compile(weighted)
    for kind in (Batch, Plain, Batch, Plain):
        assert compiled(pair(kind, 1)).tolist() == [5.0, 5.0]
    assert counts(compiled) == (2, 2)
    odd = pair(Plain, 1)
    odd.more = 1
    assert compiled(odd).tolist() == [5.0, 5.0]

    class Changed(Plain):
        pass

    assert compiled(Changed(torch.ones(2), torch.ones(2) * 3)).tolist() == [5.0, 5.0]
    assert compiled(Changed(torch.ones(2), torch.ones(2) * 3)).tolist() == [5.0, 5.0]
    Changed.scale = property(lambda self: 10.0, lambda self, value: None)
    assert compiled(Changed(torch.ones(2), torch.ones(2) * 3)).tolist() == [13.0, 13.0]


def test_members_of_an_enum_and_modules_are_known_by_identity():
    class Mode(enum.Enum):
        FIRST = 1
        SECOND = 2

    first = Mode.FIRST

    def chosen(x, mode, net):
        return net(x) * (2 if mode is first else 3)

    compiled = torch.compile(chosen)
    net = torch.nn.Linear(2, 2)
    for i in range(6):
        mode = (Mode.FIRST, Mode.SECOND)[i % 2]
        assert (
            compiled(torch.ones(2), mode, net).tolist() == chosen(torch.ones(2), mode, net).tolist()
        )
    assert counts(compiled) == (2, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_keep_nothing_of_a_call(kind):
    compiled = torch.compile(weighted)
    dropped = []
    gc.disable()
    try:
        for i in range(4):
            x = torch.ones(2 + i // 3, requires_grad=False)
            x = x * 1
            given = kind(x, torch.ones(2 + i // 3) * 3)
            if kind in (Batch, Plain):
                weakref.finalize(given, dropped.append, i)
            weakref.finalize(x, dropped.append, -i)
            result = compiled(given)
            weakref.finalize(result, dropped.append, i + 10)
            del x, given, result
            assert len(dropped) == (i + 1) * (3 if kind in (Batch, Plain) else 2)
        with pytest.raises(AttributeError):
            compiled(object())
    finally:
        gc.enable()


def test_a_call_that_no_plan_fits_leaves_nothing_behind():
    compiled = torch.compile(lambda xs: xs[0] * 2)
    for _ in range(2):
        compiled([torch.ones(2)])
    dropped = []
    gc.disable()
    try:
        items = [torch.ones(2, dtype=torch.int64)]
        weakref.finalize(items[0], dropped.append, 1)
        compiled(items)
        del items
        assert dropped == [1]
    finally:
        gc.enable()


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b) if isinstance(other, Pair) else "other"

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __eq__(self, other):
        return "alike"


class Single(tuple):
    def __add__(self, other):
        return Single((self[0] + other[0],))


def test_tuples_with_operators_of_their_own_are_no_concatenations():
    def f(x):
        s = Pair(x, x) + Pair(x, x * 2)
        t = sum([s, Pair(x, x)])
        one = Single((x,)) + Single((x,))
        return s, t, tuple(s) + (1,), s + (1, 2), s == (x, x), one, type(one) is Single

    compiled = torch.compile(f)
    for n in (1, 2, 3, 2, 2):
        x = torch.ones(n)
        assert repr(compiled(x)) == repr(f(x))
