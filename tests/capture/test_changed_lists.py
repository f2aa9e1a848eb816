"""Lists, tuples and dicts that a compiled function changes beside reading them, and that it finds changed."""

import prong as torch
import pytest


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.map = torch.nn.Linear(3, 3)
        self.keys = [torch.zeros(1, 3)]
        self.values = [torch.zeros(1, 3), torch.ones(1, 3)]
        self.state = (torch.zeros(2, 3), torch.ones(2, 3))
        self.pairs = []
        self.table = {"n": 0, "last": torch.zeros(2, 3)}

    def held(self):
        held = [self.keys, self.values, list(self.state), [list(p) for p in self.pairs]]
        return repr([held, list(self.table.items())])


class Window(Cache):
    def forward(self, x):
        self.keys.append(self.map(x).detach())
        if len(self.keys) > 3:
            self.keys.pop(0)
        return torch.cat(self.keys).sum(0)


class Layers(Cache):
    """As the caches of language models are kept: one entry for each layer."""

    def forward(self, x):
        with torch.no_grad():
            for i in range(2):
                self.values[i] = torch.cat([self.values[i][-2:], x * (i + 1)])
            return self.values[0].sum() + self.values[1].sum()


class State(Cache):
    def forward(self, x):
        h, c = self.state
        c = c * 0.5 + x.detach()
        self.state = (torch.tanh(c), c)
        return h + self.state[0]


class Replaced(Cache):
    def forward(self, x):
        self.keys = [*self.keys[-2:], x + 1]
        return torch.cat(self.keys).sum(0)


class Slices(Cache):
    def forward(self, x):
        self.keys[:] = self.keys[-1:] + [x.clone()]
        self.keys += [x * 2]
        del self.keys[0]
        return torch.cat(self.keys), len(self.keys)


class Pairs(Cache):
    def forward(self, x):
        pair = (x + 1, x * 2)
        self.pairs.append(pair)
        del self.pairs[:-2]
        return torch.cat([a * b for a, b in self.pairs]), pair, self.pairs[-1] is pair


class Table(Cache):
    def forward(self, x):
        self.table.update(n=self.table["n"] + 1)
        self.table["last"] = x + self.table["last"]
        return self.table["last"] * self.table["n"]


@pytest.mark.parametrize("kind", [Window, Layers, State, Replaced, Slices, Pairs])
def test_what_a_module_keeps_and_changes_ends_in_a_plan(kind):
    plain, own = kind(), kind()
    compiled = torch.compile(own.forward)
    for i in range(12):
        x = torch.arange(6.0).reshape(2, 3) * (i + 1)
        assert repr(compiled(x)) == repr(plain(x)), i
        assert own.held() == plain.held()
        if i == 9:  # a plan takes these as they are
            for m in own, plain:
                m.keys = [k * 3 for k in m.keys]
                m.state = tuple(s * 2 for s in m.state)
    counters = compiled._counters()
    assert counters["replays"] >= 5, counters
    assert counters["why_evaluated"] == "" or counters["plans"], counters


def test_a_list_that_is_given_is_changed():
    def step(x, cache, table):
        cache.append(x * 2)
        if len(cache) > 2:
            cache.pop(0)
        table["last"] = x + table["last"]
        table["calls"] = table["calls"] + 1
        return torch.stack(cache).sum(0), cache

    compiled = torch.compile(step)
    caches = [([torch.ones(3)], {"last": torch.zeros(3), "calls": 0}) for _ in range(2)]
    for i in range(8):
        x = torch.arange(3.0) + i
        if i == 5:  # other ones
            for _, table in caches:
                table["calls"] = 50
            caches = [(list(c), dict(t)) for c, t in caches]
        (got, same), (expected, _) = compiled(x, *caches[0]), step(x, *caches[1])
        assert torch.equal(got, expected) and same is caches[0][0]
        assert repr(caches[0]) == repr(caches[1])
    assert compiled._counters()["plans"] == 2, compiled._counters()
    assert compiled._counters()["replays"] == 6, compiled._counters()


def sum_of_the_last_two(kept):
    def step(x):
        kept.append(x)
        del kept[:-2]
        return torch.stack(kept).sum(0)

    return step


def test_what_a_list_holds_stays_the_same_object():
    kept = []
    compiled = torch.compile(sum_of_the_last_two(kept))
    given = [torch.full((2,), float(i)) for i in range(9)]
    for i, x in enumerate(given):
        expected = x + given[i - 1] if i else x
        assert torch.equal(compiled(x), expected)
        assert kept[-1] is x and (i == 0 or kept[0] is given[i - 1])
    assert compiled._counters()["replays"] >= 5, compiled._counters()


def test_the_same_tensor_twice_in_a_list():
    kept = []
    compiled = torch.compile(sum_of_the_last_two(kept))
    a, b = torch.ones(2), torch.full((2,), 5.0)
    for pair in [(a, a), (a, a), (a, b), (b, a), (b, b), (a, b), (b, a), (a, a), (a, b)] * 2:
        kept[:] = [pair[0]]
        assert torch.equal(compiled(pair[1]), pair[0] + pair[1])
        assert kept[0] is pair[0] and kept[1] is pair[1]
    assert compiled._counters()["replays"] >= 10, compiled._counters()


def test_one_list_under_two_names():
    class Two:
        def __init__(self):
            self.a, self.b = [torch.ones(2)], [torch.zeros(2)]

    plain, own = Two(), Two()

    def step(two, x):
        two.a[0] = two.a[0] + x
        two.b[0] = two.b[0] * 2 + two.a[0]
        return two.a[0] + two.b[0]

    compiled = torch.compile(lambda x: step(own, x))
    for i in range(12):
        if i in (5, 9):
            plain.a, own.a = [torch.ones(2)], [torch.ones(2)]
            plain.b, own.b = (plain.a, own.a) if i == 5 else ([plain.a[0]], [own.a[0]])
        x = torch.full((2,), float(i))
        assert torch.equal(compiled(x), step(plain, x)), i
        assert repr([plain.a, plain.b]) == repr([own.a, own.b])
    assert compiled._counters()["replays"] >= 4


def test_a_list_that_the_function_knows_is_passed():
    known = [torch.ones(2)]

    def step(x, given):
        given[0] = given[0] + x
        return known[0] * 3 + given[0]

    compiled = torch.compile(step)
    other = [torch.zeros(2)]
    for i in range(9):
        given = known if i in (4, 8) else other
        before = known[0], given[0]
        x = torch.full((2,), float(i))
        got = compiled(x, given)
        now = before[1] + x
        assert torch.equal(given[0], now)
        assert torch.equal(got, (now if given is known else before[0]) * 3 + now), i


def test_a_failed_call_leaves_the_list_as_plain_python_does():
    class Holder:
        def __init__(self):
            self.kept = [torch.ones(2)]

    def step(holder, x):
        holder.kept.append(x)
        del holder.kept[:-2]
        return torch.stack(holder.kept) @ x

    plain, own = Holder(), Holder()
    compiled = torch.compile(lambda x: step(own, x))
    for i in range(10):
        x = torch.ones(3) if i == 6 else torch.full((2,), float(i))
        outcomes = []
        for call, holder in ((compiled, own), (lambda x: step(plain, x), plain)):
            try:
                outcomes.append(repr(call(x)))
            except RuntimeError as e:
                outcomes.append(type(e).__name__)
            outcomes.append(repr(holder.kept))
        assert outcomes[:2] == outcomes[2:], i
        if i == 7:
            own.kept, plain.kept = [torch.ones(2)], [torch.ones(2)]
