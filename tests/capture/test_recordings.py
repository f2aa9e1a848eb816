"""How often a function is recorded and compiled, and what recordings leave behind."""

import gc
import sys

import prong as torch
import pytest
from prong import nn


def counting_backend():
    graphs = []

    def backend(module, example_inputs):
        graphs.append(module)
        return module.forward

    return backend, graphs


@pytest.mark.parametrize("sizes", [range(1, 65), range(64, 0, -1), [0, 1, 5, 0, 64]])
def test_batch_sizes_are_one_graph(sizes):
    backend, graphs = counting_backend()
    layer = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    f = torch.compile(layer, backend=backend)
    with torch.no_grad():
        for n in sizes:
            x = torch.sin(torch.arange(n * 3.0)).reshape(n, 3)
            assert f(x).tolist() == layer(x).tolist()
    assert len(graphs) == 1


def test_a_batch_size_that_was_not_looked_at_makes_one_plan():
    @torch.compile
    def f(x):
        return (x * 2 + 1).relu().sum(-1)

    for n in range(1, 65):
        assert f(torch.ones(n, 3)).tolist() == [9.0] * n
    assert f._counters()["plans"] == 1 and f._counters()["replays"] == 63


def test_sizes_that_python_reads_are_inputs_from_the_second_on():
    backend, graphs = counting_backend()

    def f(x):
        b, t = x.shape
        return (x.reshape(b * t) / t).reshape(b, t) + b

    g = torch.compile(f, backend=backend)
    for n in range(1, 33):
        x = torch.arange(n * 5.0).reshape(n, 5)
        assert g(x).tolist() == f(x).tolist()
    assert len(graphs) <= 2


def test_a_number_that_changes_is_an_input_of_the_plan():
    @torch.compile
    def f(x, lr, n):
        return x - lr * x * n

    x = torch.ones(2)
    for i in range(1, 40):
        lr = 0.5 / i
        assert f(x, lr, i).tolist() == (x - lr * x * i).tolist()
    assert f._counters()["plans"] <= 3 and f._counters()["replays"] >= 36
    assert f._counters()["compiled"] <= 2


def test_numbers_are_pinned_where_python_branches_on_them():
    def f(x, n, limit):
        if n > limit:
            x = x + n
        for i in range(n % 3):
            x = x * (i + n)
        return x, n + 1, [n, limit * 2]

    g = torch.compile(f)
    x = torch.ones(2)
    for n in (1, 2, 3, 4, 5, 3, 9, 2, 7, 1, 0, -4, 1 << 70):
        for limit in (2, 2.5):
            if n == 1 << 70:
                continue
            want, got = f(x, n, limit), g(x, n, limit)
            assert want[0].tolist() == got[0].tolist() and want[1:] == got[1:]
            assert type(want[2][1]) is type(got[2][1])


def test_a_number_of_another_type_is_seen():
    def f(x, n):
        return x * n, n

    g = torch.compile(f)
    x = torch.ones(2, dtype=torch.int64)
    for n in (1, 2, 3, 2.0, 3.5, 4, True, 5, False, 6, 2.5):
        want, got = f(x, n), g(x, n)
        assert want[0].tolist() == got[0].tolist() and want[0].dtype is got[0].dtype
        assert want[1] == got[1] and type(want[1]) is type(got[1])


class Counter:
    def __init__(self):
        self.seen = 0


class CountingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x):
        self.seen += 1
        return x * self.scale + self.seen


def test_a_counter_in_an_attribute_is_replayed():
    counter = Counter()

    def f(x):
        counter.seen += 1
        counter.last = counter.seen * 2
        return x + counter.seen

    g = torch.compile(f)
    for i in range(1, 12):
        assert g(torch.zeros(1)).item() == i
        assert counter.seen == i and counter.last == 2 * i
    assert g._counters()["replays"] >= 8
    counter.seen = 100
    assert g(torch.zeros(1)).item() == 101 and counter.seen == 101
    counter.seen = 0.5
    assert g(torch.zeros(1)).item() == 1.5 and counter.seen == 1.5
    counter.__dict__ = {"seen": 7}
    assert g(torch.zeros(1)).item() == 8 and counter.seen == 8 and counter.last == 16


def test_a_counter_of_a_module_is_replayed():
    layer = CountingLayer()
    g = torch.compile(layer)
    with torch.no_grad():
        for i in range(1, 12):
            assert g(torch.ones(1)).item() == 2.0 + i and layer.seen == i
    assert g._compiled_call._counters()["replays"] >= 8
    layer.seen = nn.Parameter(torch.tensor([1.0])) if False else 50
    assert g(torch.ones(1)).item() == 53.0


def test_what_a_failed_op_prevents_is_not_stored():
    counter = Counter()

    def f(x, i):
        counter.seen += 1
        y = x[i]
        counter.seen += 10
        return y

    g = torch.compile(f)
    x = torch.arange(3.0)
    for values in ([0], [1], [2], [2]):
        g(x, torch.tensor(values))
    before = counter.seen
    with pytest.raises(IndexError):
        g(x, torch.tensor([5]))
    assert counter.seen == before + 1


def test_fresh_closures_leave_nothing_behind():
    x = torch.ones(2)

    def once(i):
        scale = float(i)

        def f(x):
            return (x * scale + 1).sum()

        assert torch.compile(f, backend="interpreter")(x).item() == 2 * (scale + 1)

    def many(n):
        for i in range(n):
            once(i)
        gc.collect()
        return len(gc.get_objects())

    many(200)
    before = many(200)
    after = many(10_000)
    assert after - before < 100


def test_reference_counts_are_as_in_plain_python():
    class Thing:
        pass

    def run(f, thing, x, values):
        before = [sys.getrefcount(o) for o in (thing, x, values, Thing)]
        for _ in range(5):
            f(thing, x, values)
        gc.collect()
        return [sys.getrefcount(o) - b for o, b in zip((thing, x, values, Thing), before)]

    def f(thing, x, values):
        thing.n = getattr(thing, "n", 0) + 1
        made = [v for v in values if v is not None]
        try:
            x[99]
        except IndexError:
            made.append(thing)
        return {"x": x + 1, "made": made, "all": (x, *values)}

    plain = run(f, Thing(), torch.ones(2), ["a", None, 1.5])
    compiled = torch.compile(f)
    thing, x, values = Thing(), torch.ones(2), ["a", None, 1.5]
    got = run(compiled, thing, x, values)
    compiled._forget()
    gc.collect()
    assert got == plain


def test_each_way_of_a_branch_on_a_tensor_has_a_plan():
    def f(x):
        h = x * 2
        if h.sum() > 0:
            h = h + 1
            if (h > 10).any():
                return h - 10
        else:
            h = -h
        return h

    g = torch.compile(f)
    values = [[1.0, 2.0], [-1.0, -2.0], [9.0, 1.0]]
    for _ in range(5):
        for v in values:
            assert g(torch.tensor(v)).tolist() == f(torch.tensor(v)).tolist()
    assert g._counters()["plans"] == 3 and g._counters()["replays"] == 12


def test_a_loop_on_a_tensor_is_replayed():
    def f(x):
        n = 0
        while x.sum() < 10:
            x = x * 2
            n += 1
        return x, n

    g = torch.compile(f)
    for start in (1.0, 3.0, 20.0, 1.0, 3.0, 20.0, 0.1):
        want, got = f(torch.tensor([start])), g(torch.tensor([start]))
        assert want[0].tolist() == got[0].tolist() and want[1] == got[1]
    assert g._counters()["replays"] == 3


def test_a_branch_after_a_write_is_taken_anew_each_time():
    def f(x):
        x.add_(1)
        if x.sum() > 3:
            x.mul_(0)
            return "reset"
        return "counted"

    x, y = torch.zeros(2), torch.zeros(2)
    g = torch.compile(f)
    for _ in range(6):
        assert f(x) == g(y)
        assert x.tolist() == y.tolist()
