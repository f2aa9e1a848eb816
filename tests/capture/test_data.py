"""Tensors that compiled calls make of Python data: torch.tensor, lists as indices. Each replay makes new ones."""

import prong as torch
import pytest


def counts(f, *calls, plans=1):
    """The compiled function gives what plain Python gives, with so many plans and replays for the rest."""
    compiled = torch.compile(f)
    for args in calls:
        wanted, got = f(*args), compiled(*args)
        assert str(wanted) == str(got), args
    counters = compiled._counters()
    assert counters["plans"] == plans, counters
    assert counters["replays"] == len(calls) - plans, counters
    return compiled


X = torch.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    "index",
    [[0, 1], [-1], [[0, 1], [2, 3]], (slice(None), [-1, 0]), ([0, 2], slice(1, 3)), range(2)]
    + [([0, 1], [1, 2]), (..., [3]), (0, [1, 2])],
    ids=str,
)
def test_lists_are_indices(index):
    def read(x):
        return x[index] * 2

    def write(x):
        y = x.clone()
        y[index] = 7
        return y * 2

    for f in (read, write):
        counts(f, *[(X + i,) for i in range(3)])


def test_a_list_of_bools_is_a_mask():
    compiled = torch.compile(lambda x: x[[True, False, True, True]])
    for i in range(3):
        assert compiled(X + i).tolist() == (X + i)[[True, False, True, True]].tolist()


def test_lists_made_in_the_call_are_indices():
    def f(x):
        kept = [0]
        kept.append(2)
        return x[:, [-1]], x[kept], x[[0, 1], [2, 3]]

    counts(f, *[(X + i,) for i in range(3)])


def test_a_number_in_a_list_is_part_of_the_plan():
    counts(lambda x, n: x[[n, 0]], (X, 1), (X, 1), (X, 2), (X, 2), plans=2)


def test_a_list_outside_that_changes_is_another_index():
    rows = [0, 1]
    compiled = torch.compile(lambda x: x[rows])
    assert compiled(X).shape == (2, 6)
    rows.append(3)
    assert compiled(X).shape == (3, 6)
    rows[0] = 2
    assert compiled(X)[0].tolist() == X[2].tolist()


def test_wrong_lists_raise_as_plain_python_does():
    for index in ([0, 9], ["a"], [[0, 1], [2]], [0.5]):
        messages = []
        for f in (lambda x, i=index: x[i], torch.compile(lambda x, i=index: x[i])):
            for _ in range(2):
                with pytest.raises((IndexError, TypeError, ValueError)) as error:
                    f(X)
                messages.append((error.type, str(error.value)))
        assert len(set(messages)) == 1, messages


def test_data_is_a_new_tensor_each_time():
    def f(x):
        t = torch.tensor([1.0, 2.0])
        t += x
        return t

    compiled = counts(f, *[(torch.tensor([float(i), 1.0]),) for i in range(4)])
    first, second = compiled(torch.zeros(2)), compiled(torch.zeros(2))
    first.mul_(100)
    assert second.tolist() == [1.0, 2.0] and compiled(torch.zeros(2)).tolist() == [1.0, 2.0]


def test_data_of_all_kinds():
    def f(x):
        return (
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor(3),
            torch.tensor(True),
            torch.tensor([1.5], dtype=torch.float64),
            torch.as_tensor((1, 2), dtype=torch.int32),
            torch.tensor([]),
            torch.tensor(1 + 2j),
            x.sum() * torch.tensor(2.0),
        )

    counts(f, *[(X + i,) for i in range(3)])


def test_a_number_that_changes_is_filled_in():
    def f(x, n):
        return torch.tensor(n), torch.tensor(n * 2, dtype=torch.float32) * x

    counts(f, *[(X, n) for n in range(5)])
    counts(f, *[(X, n / 3) for n in range(5)])
    counts(lambda x: x / torch.tensor(x.shape[0]), *[(X[:n],) for n in (2, 3, 1)])


def test_leaves_and_tensors_as_data_are_right():
    def f(x):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        (w * x).sum().backward()
        return w.grad

    def g(x):
        return torch.tensor([x[0], 3.0])

    for function in (f, g):
        compiled = torch.compile(function)
        for i in range(3):
            x = torch.tensor([float(i), 2.0])
            assert compiled(x).tolist() == function(x).tolist()


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_the_default_dtype_is_part_of_plans_and_programs(backend):
    def f(x):
        return torch.tensor(1.5), torch.zeros(2) + 1.5, (torch.ones(3) * 2).sin() + x, x / 3

    compiled = torch.compile(f, backend=backend)
    for dtype in (torch.float32, torch.float64, torch.float32, torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            for x in (torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])):
                for got, wanted in zip(compiled(x), f(x)):
                    assert got.dtype == wanted.dtype and torch.equal(got, wanted)
        finally:
            torch.set_default_dtype(torch.float32)
    assert compiled._counters()["replays"] >= 5
