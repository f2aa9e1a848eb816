"""How often a function is recorded and compiled, and what recordings leave behind."""

import gc
import sys

import prong as torch
import pytest
from counting import counting_backend
from prong import nn


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


def _programs():
    """Functions over numbers and attributes, and what can be seen of their effects."""
    one, other, layer = Counter(), Counter(), CountingLayer()
    total = 0

    def through_two_names(x, n):
        one.seen += n
        other.seen = one.seen
        alias = other
        alias.seen += 1
        return x * one.seen + other.seen, one.seen, other.seen

    def arithmetic(x, n):
        lr, power, quotient = 0.1 / (n + 1), n**2, n // 2
        return x * lr - n, x * power, x + quotient, n > 2, max(n, 2), -lr, [n, lr], x * (n > 1)

    def where_python_needs_it(x, n):
        return x[: n % 3], [1, 2, 3][n % 3], {0: "a", 1: "b", 2: "c"}[n % 3], f"{n}:{n * 2}"

    def shapes(x, n):
        return x.new_full((n % 2 + 1,), n), x.sum(n % 2 - 1), torch.arange(n % 5) * 2

    def kinds_of_values(x, n):
        one.kind = None if n % 2 else n
        one.half = n / 2
        return x * one.half

    def raised_and_caught(x, n):
        one.seen = n
        try:
            if n == 2:
                raise ValueError(n)
            y = x[torch.tensor([n % 3])]
        except ValueError as error:
            one.seen = -1
            y = x * error.args[0]
        finally:
            other.seen += 1
        return y + one.seen, other.seen

    def nonlocal_total(x, n):
        nonlocal total
        total += n
        return x * total

    def random_numbers(x, n):
        drawn = nn.functional.dropout(x, 0.5 if n % 2 else 0.0) + torch.rand(2)
        return drawn, torch.randint(0, n + 2, (3,)), torch.randperm(n % 4 + 1)

    def writes(x, n):
        y = x.clone()
        view, apart = y[:1], y.detach()
        view.add_(n)
        apart.mul_(2)
        flat = y.view(-1)
        flat[0] = n
        return y, view, apart, flat

    def of_a_module(x, n):
        with torch.no_grad():
            return layer(x[0, :1]) * n

    functions = (through_two_names, arithmetic, where_python_needs_it, shapes, kinds_of_values)
    functions += (raised_and_caught, nonlocal_total, random_numbers, writes, of_a_module)
    return functions, lambda: [vars(one), vars(other), layer.seen, total]


def _shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.stride(), repr(value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value), [_shown(v) for v in value]
    return type(value), repr(value)


def _outcome(f, x, n):
    torch.manual_seed(5)
    try:
        result = _shown(f(x, n))
    except Exception as error:
        result = type(error), str(error)
    return result, torch.rand(1).item()


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize(
    "numbers",
    [
        [1, 1, 1, 2, 2, 3, 4, 5, 0, -1, 7, 2],
        [0, 1, 2, 3, 4, 5, 6, 7, 3, 3],
        [1, 2.5, 2.5, 3, True, True, 2, False, -0.0, 0.0, 4],
    ],
)
def test_numbers_and_attributes_are_as_in_plain_python(backend, numbers):
    for k in range(len(_programs()[0])):
        plain_functions, plain_state = _programs()
        functions, state = _programs()
        f = torch.compile(functions[k], backend=backend)
        for n in numbers:
            x = torch.sin(torch.arange(6.0)).reshape(3, 2)
            want, got = _outcome(plain_functions[k], x.clone(), n), _outcome(f, x.clone(), n)
            assert want == got, (f.__name__, n)
            assert _shown(plain_state()) == _shown(state()), (f.__name__, n)


SKIPPED = {"norm", "bias"}


def test_sets_from_outside_are_guarded_by_their_items():
    def f(x, name):
        y = x * 2 if name in SKIPPED else x * 3
        for word in SKIPPED:
            y = y + len(word)
        return y + len(SKIPPED)

    compiled = torch.compile(f)
    try:
        for _ in range(3):
            for name in ("norm", "weight"):
                assert compiled(torch.ones(1), name).item() == f(torch.ones(1), name).item()
        assert compiled._counters()["replays"] == 4
        SKIPPED.add("weight")
        for name in ("norm", "weight"):
            assert compiled(torch.ones(1), name).item() == f(torch.ones(1), name).item()
        SKIPPED.discard("norm")
        assert compiled(torch.ones(1), "norm").item() == f(torch.ones(1), "norm").item()
    finally:
        SKIPPED.clear()
        SKIPPED.update({"norm", "bias"})


def test_forward_hooks_are_part_of_plans():
    class Scaling:
        factor = 2.0

        def hook(self, module, args, output):
            return output * self.factor

    scaling = Scaling()
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    handle = layer.register_forward_hook(scaling.hook)
    compiled = torch.compile(lambda x: layer(x))
    with torch.no_grad():
        for i in range(4):
            assert torch.equal(compiled(torch.ones(1, 2) * i), layer(torch.ones(1, 2) * i))
        assert compiled._counters()["replays"] == 3
        handle.remove()
        assert torch.equal(compiled(torch.ones(1, 2)), layer(torch.ones(1, 2)))


LIMITS = [1.5, 2]


def star_of_a_list(x):
    return scaled(*[x, x.sum().item()])


def star_of_a_list_from_outside(x):
    return scaled(*LIMITS) + x


def star_of_a_generator(x):
    return scaled(*(x * i for i in range(3)), by=2)


def star_of_an_iterable(x):
    return scaled(*{"a": 1, "b": 2}.values()) + scaled(*range(2)) + x


def scaled(a, b, *rest, by=1):
    return (a if isinstance(a, torch.Tensor) else a * 1.0) * b * by + len(rest)


def type_of_an_item(x):
    total = x.sum().item() + 1
    return x * (total if isinstance(total, float) else 0)


@pytest.mark.parametrize(
    "function",
    [
        star_of_a_list,
        star_of_a_list_from_outside,
        star_of_a_generator,
        star_of_an_iterable,
        type_of_an_item,
    ],
)
def test_arguments_that_are_unpacked_and_numbers_whose_type_is_asked(function):
    compiled = torch.compile(function)
    for i in range(4):
        assert compiled(torch.ones(2) * i).tolist() == function(torch.ones(2) * i).tolist()
    assert compiled._counters()["replays"] == 3, compiled._counters()
    LIMITS[0] += 1
    assert compiled(torch.ones(2)).tolist() == function(torch.ones(2)).tolist()


def test_what_cannot_be_unpacked_is_told_as_in_python():
    def f(x):
        try:
            return scaled(*3)
        except TypeError as error:
            return x, str(error)

    compiled = torch.compile(f)
    assert compiled(torch.ones(1))[1] == f(torch.ones(1))[1]
    assert "CALL_FUNCTION_EX" in compiled._counters()["why_evaluated"]
