"""Python's containers, objects, generators and statements in compiled functions: they end in a plan that the later
calls replay, and do what plain Python does. What has no plan yet is not here.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools

import prong as torch
import pytest


def shown(value):
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(shown, value))
    if isinstance(value, dict):
        return (type(value).__name__, *((k, shown(v)) for k, v in value.items()))
    if hasattr(value, "__dict__"):
        return type(value).__name__, shown(vars(value))
    return type(value).__name__, repr(value)


def outcome(f, *args):
    try:
        return shown(f(*args))
    except Exception as error:
        return type(error).__name__, str(error)


def lazily_summed(x):
    return sum(t * i for i, t in enumerate([x, x + 1]))


def generators(x):
    def gen(n):
        for i in range(n):
            yield x + i
        return 5

    def outer():
        k = yield from gen(2)
        yield x * k

    for v in outer():
        x = x + v
    first, *rest = (x * i for i in range(4))
    return first + rest[0] + len(rest)


def dicts(x):
    d = {k: x * i for i, k in enumerate("abc")}
    d.update(z=x)
    d.setdefault("q", x + 1)
    d["m"] = d.pop("a")
    del d["z"]
    return [v * 2 for k, v in d.items() if k in {"b", "m"}], list(d), d


def lists(x):
    items = [x]
    items.append(x + 1)
    items.extend([x, x * 3])
    items.insert(0, x - 1)
    y = items.pop()
    items.reverse()
    return items[1:], y, items[::-1][0], (1, 2) + (3,), len(items), [0] * 2 + [x]


def plain_values(x):
    numbers = [3, 1, 2]
    numbers.sort()
    text = f"{numbers[2]:03d}", "a-%d" % numbers[1], ",".join(str(v) for v in numbers)
    return x * numbers[0], sorted(numbers, key=lambda v: -v), sum({1, 2} | {3}), text


def walks(x):
    for a, b in zip([x, x * 2], range(3)):
        x = x + a * b
    for i, v in enumerate(reversed([x, x + 2])):
        x = x + v * i
    for v in map(lambda q, w: q * w, [x, x], [2, 3]):
        x = x + v
    for v in filter(lambda q: q > 1, [1, 2, 3]):
        x = x * v
    return x


def more_walks(x):
    r = functools.reduce(lambda a, b: a * b, [x, x, x + 1])
    twice = functools.partial(lambda k, t: k * t, 2)
    for v in itertools.chain([x], (x, x * 2)):
        r = r + twice(v)
    for a, b in itertools.product([1, 2], [3, 4]):
        r = r + a * b
    for v in itertools.islice(itertools.count(), 3):
        r = r + v
    for a, b in itertools.pairwise([x, x * 2, x * 3]):
        r = r + (b - a)
    return r, max([1, 5, 2]), min(3, 2), any([0, 1]), all([]), max([x, x], key=lambda t: 1)


class Pair:
    kind = 3

    def __init__(self, v, w=2):
        self.v, self.w = v, w

    @property
    def both(self):
        return self.v * self.w

    def scaled(self, k):
        return Pair(self.v * k, self.w)

    def __add__(self, other):
        return Pair(self.v + other.v)

    @classmethod
    def make(cls, v):
        return cls(v, cls.kind)


class Wider(Pair):
    def __init__(self, v):
        super().__init__(v, 5)
        self.extra = 1

    def scaled(self, k):
        return super().scaled(k + self.extra)


@dataclasses.dataclass
class Record:
    a: object
    b: int = 2
    c: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.a * self.b


Named = collections.namedtuple("Named", "a b")


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


def objects(x):
    r = Pair(x).scaled(3) + Pair.make(x)
    r.w = 7
    wide, slotted = Wider(x), Slotted(x)
    slotted.a = slotted.a + 1
    return r.both + wide.scaled(2).both + wide.extra + slotted.a


def records(x):
    d, n = Record(x), Named(x, 2)
    d.b += 1
    d.c.append(x)
    a, b = n
    return d.total() + d.c[0] + a * b + n.a, n._replace(b=3).b


def given_away(x):
    p = Pair(x)
    p.me = [p.v]
    same = [x * 2]
    return p, Record(x, 3, same), Named(x, same), {"k": same, "s": (p,)}


def asked(x):
    p = Pair(x)
    p.new = 4
    name = "w"
    extra = getattr(p, name) + getattr(p, "absent", 3) + hasattr(p, "new") + hasattr(p, "nothing")
    return x * extra, type(p).kind


@contextlib.contextmanager
def managed(v):
    try:
        yield v * 2
    finally:
        pass


def managers(x):
    with managed(x) as y, contextlib.nullcontext(3) as n:
        z = y + n
    return z


def functions(x):
    def h(a, b=3, *c, d: int = 4, **e):
        return a * b + d + len(c) + len(e)

    n = 0

    def count():
        nonlocal n
        n += 1

    count()
    count()
    return h(x, 1, 2, 3, q=1) * n + (lambda a, b=5: a * b)(x)


def matched(x):
    for s in (1, "a", [1, 2], {"k": 3}, (4, 5, 6), None, Record(x, 4)):
        match s:
            case 1:
                x = x + 1
            case str() as q:
                x = x + len(q)
            case [a, b]:
                x = x * a * b
            case {"k": v}:
                x = x - v
            case (a, *rest):
                x = x + len(rest)
            case None:
                x = x * 2
            case Record(a=a, b=4):
                x = x + a
    return x


def caught(x):
    try:
        {}["a"]
    except KeyError as e:
        x = x + len(e.args) + len(str(e))
    try:
        [][1]
    except IndexError:
        x = x + 1
    try:
        a, b = (1, 2, 3)
        x = x + a + b
    except ValueError:
        x = x + 1
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration:
        x = x * 2
    return x, next(it, 7)


def statements(x):
    import math
    from math import sqrt

    if (n := 3) > 2 > 1:
        x = x + n
    assert n == 3, "never"
    del n
    return x * math.floor(2.5) + sqrt(4)


ALL = [
    *(lazily_summed, generators, dicts, lists, plain_values, walks, more_walks, objects, records),
    *(given_away, asked, managers, functions, matched, caught, statements),
]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_it_is_replayed(f):
    x, g = torch.arange(3.0) + 1, torch.compile(f)
    for i in range(4):
        assert outcome(g, x + i) == outcome(f, x + i)
    assert g._counters()["replays"] >= 2


def test_what_is_given_away_twice_is_one_object():
    g = torch.compile(given_away)
    for _ in range(3):
        p, record, named, d = g(torch.ones(2))
        assert record.c is named.b is d["k"] and d["s"][0] is p
    assert g._counters()["replays"] == 2


def test_what_is_given_away_is_new_each_time():
    g = torch.compile(lambda x: (Record(x), {1, 2}))
    first, second, third = (g(torch.ones(2)) for _ in range(3))
    third[0].c.append(1)
    third[1].add(3)
    assert first[0].c == second[0].c == [] and second[1] == {1, 2}


def test_a_class_that_changes_is_seen():
    class Local:
        by = 2

        def go(self, x):
            return x * self.by

    @torch.compile
    def f(x):
        return Local().go(x)

    x = torch.ones(2)
    assert [f(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    Local.by = 5
    assert f(x).tolist() == [5.0, 5.0]
    Local.go = lambda self, x: x - 1
    assert f(x).tolist() == [0.0, 0.0]


def test_a_dropped_generator_runs_its_end_in_time():
    @torch.compile
    def f(x):
        log = []

        def gen():
            try:
                yield x
                yield x + 1
            finally:
                log.append("end")

        g = gen()
        next(g)
        del g
        log.append("after")
        held = [gen()]
        next(held[0])
        held = None
        log.append("last")
        return log

    for _ in range(3):
        assert f(torch.ones(2)) == ["end", "after", "end", "last"]


def test_objects_with_a_last_word_have_it_in_time():
    log = []

    class Loud:
        def __del__(self):
            log.append("gone")

    @torch.compile
    def f(x):
        made = [Loud()]
        del made
        log.append("after")
        return x + 1

    for _ in range(3):
        f(torch.ones(2))
        assert log[-2:] == ["gone", "after"]


history, table = [], {}


def test_what_is_appended_and_stored_outside_is_replayed():
    class Meter:
        def __init__(self):
            self.seen = []

    meter = Meter()

    @torch.compile
    def f(x):
        y = x * 2
        history.append(y)
        meter.seen.append(y.sum())
        table["last"] = [y]
        return y

    given = [f(torch.ones(2) * i) for i in range(4)]
    assert f._counters()["replays"] == 3
    assert [h is y for h, y in zip(history, given)] == [True] * 4
    assert [float(t) for t in meter.seen] == [0.0, 4.0, 8.0, 12.0]
    assert table["last"][0] is given[-1]


def test_a_list_that_is_appended_to_and_read_is_right():
    log = []

    @torch.compile
    def f(x):
        before = len(log)
        log.append(before)
        for i in log:
            x = x + i
        log.append(x)
        log.pop()
        return x, len(log), log[-1]

    g = torch.compile(lambda x: (log.append(x), len(log))[1])
    for i in range(5):
        x, n, last = f(torch.zeros(1))
        assert (x.item(), n, last) == (sum(range(i + 1)), i + 1, i)
    assert [g(torch.ones(1)) for _ in range(3)] == [6, 7, 8]
