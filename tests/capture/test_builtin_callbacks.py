"""Builtin code that calls builtin code looks at things that no evaluated frame shows: a plan asks for those too."""

import functools
import itertools
import operator

import prong as torch
import pytest


class Counted:
    def __init__(self, n):
        self.n = n


def lists():
    return [[1, 2], [3], [5, 6, 7]]


def change_lists(ls, step):
    if step == 1:
        ls[1].append(9)
    elif step == 2:
        ls[0][0] = 8


def dicts():
    return [{"k": 1}, {"k": 2}]


def change_dicts(ds, step):
    ds[step % 2].update({"k": 7 + step, step: 0})


def objects():
    return [Counted(1), Counted(3)]


def change_objects(os, step):
    os[step % 2].n += step * 5


OF_LISTS = [
    lambda q: list(map(len, q)),
    lambda q: [a for a in map(max, q)],
    lambda q: list(map(tuple, q)),
    lambda q: list(itertools.chain.from_iterable(q)),
    lambda q: functools.reduce(operator.add, q),
    lambda q: list(itertools.starmap(max, q[::2])),
    lambda q: list(map(operator.itemgetter(0), q)),
    lambda q: dict(enumerate(map(sum, q))),
    lambda q: list(map(functools.partial(len), q)),
    lambda q: [len(a) for a in filter(len, q)],
    lambda q: sorted(q, key=len),
]
OF_DICTS = [
    lambda q: list(map(operator.itemgetter("k"), q)),
    lambda q: list(map(len, q)),
    lambda q: [*map(list, q)],
    lambda q: list(itertools.chain.from_iterable(q)),
    lambda q: operator.methodcaller("get", "k")(q[0]),
    lambda q: q[0].items() == {"k": 1}.items(),
    lambda q: list(map(lambda d: d.get("k"), q)),
]
OF_OBJECTS = [
    lambda q: operator.attrgetter("n")(q[0]),
    lambda q: list(map(operator.attrgetter("n"), q)),
    lambda q: max(q, key=operator.attrgetter("n")).n,
    lambda q: list(map(getattr, q, ["n", "n"])),
    lambda q: functools.partial(getattr, q[0], "n")(),
    lambda q: [o.n for o in q],
]


@pytest.mark.parametrize(
    ("make", "change", "look"),
    [
        *((lists, change_lists, look) for look in OF_LISTS),
        *((dicts, change_dicts, look) for look in OF_DICTS),
        *((objects, change_objects, look) for look in OF_OBJECTS),
    ],
)
def test_what_builtin_code_read_is_asked_again(make, change, look):
    data = make()

    def f(x):
        return x + 1, look(data)

    compiled = torch.compile(f, backend="eager")
    x = torch.ones(1)
    for step in range(4):
        for _ in range(2):
            assert compiled(x)[1] == f(x)[1]
        change(data, step)


def test_a_caught_lookup_error_may_become_another_one():
    @torch.compile
    def f(x, d, key):
        try:
            value = d[key]
        except KeyError:
            value = -1
        return x + value, d.get(key, 9), d.pop("gone", None)

    x = torch.zeros(1)
    for d, key, want in (
        ({"a": 1}, "a", 1),
        ({"a": 1}, "b", -1),
        ({}, "a", -1),
        ({"b": 4}, "b", 4),
    ):
        assert f(x, dict(d), key)[0].item() == want
        assert f(x, dict(d), key)[1] == d.get(key, 9)


def test_shapes_in_a_list_stay_shapes():
    f = torch.compile(lambda ts: [t.shape for t in ts])
    for _ in range(3):
        assert [type(s) for s in f([torch.ones(1), torch.ones(2)])] == [torch.Size] * 2
