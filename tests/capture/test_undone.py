"""A plan that does not go through leaves nothing behind: its own memory is gone, what it drew is given back."""

import random

import prong as torch
import pytest
from test_data import counts


def outcome(f, *args):
    try:
        return str(f(*args))
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


def sequences(f, calls):
    """What plain Python and the compiled function give for these calls in a row, from one seed."""
    compiled = torch.compile(f)
    torch.manual_seed(1)
    plain = [(outcome(f, *args), torch.rand(1).item()) for args in calls]
    torch.manual_seed(1)
    assert [(outcome(compiled, *args), torch.rand(1).item()) for args in calls] == plain
    return compiled._counters()


def test_draws_before_an_error_count_once():
    def f(x, n):
        y = x + torch.rand(6)
        y = torch.nn.functional.dropout(y, 0.5)
        return y.reshape(n)

    x = torch.zeros(6)
    counters = sequences(f, [(x, 6), (x, 6), (x, 5), (x, 6), (torch.zeros(7), 7), (x, 6)])
    assert counters["replays"] >= 3, counters


def test_draws_before_a_branch_count_once():
    def f(x):
        y = x * torch.randn(3)
        if y.sum() > 0:
            y = y + torch.rand(1)
        return y

    counters = sequences(f, [(torch.ones(3),)] * 20)
    assert (counters["plans"], counters["replays"]) == (2, 18), counters


def test_sampling_is_one_plan():
    def f(logits):
        top = torch.topk(logits, 3)[0]
        logits = logits + 0
        logits[logits < top[:, [-1]]] = -float("inf")
        return torch.multinomial(torch.softmax(logits, -1), 2)

    torch.manual_seed(0)
    counters = sequences(f, [(torch.randn(2, 6),) for _ in range(5)])
    assert (counters["plans"], counters["replays"]) == (1, 4), counters


def test_wrong_probabilities_raise_after_draws():
    def f(p):
        return torch.rand(2), torch.multinomial(p, 1)

    good = torch.tensor([0.5, 0.5])
    counters = sequences(f, [(good,), (good,), (-good,), (good,), (good * 0,), (good,)])
    assert counters["replays"] >= 3, counters


def test_own_memory_that_is_written_pins_no_sizes():
    def f(x):
        y = x * 2
        y[0] = 7
        y += 1
        return y[:-1]

    counts(f, *[(torch.arange(float(n)),) for n in range(2, 12)])
    compiled = torch.compile(f)
    for n in (3, 4, 0, 5):
        x = torch.arange(float(n))
        if n:
            assert compiled(x).tolist() == f(x).tolist()
        else:
            with pytest.raises(IndexError):
                compiled(x)


def test_memory_from_outside_is_written_once():
    def f(x, n):
        x += 1
        y = torch.zeros(3)
        y += x[:3]
        return y.reshape(n)

    for calls in ([(3, 3), (3, 3), (3, 2), (3, 3)], [(4, 3), (2, 3), (4, 3)]):
        results = []
        for function in (f, torch.compile(f)):
            xs = [torch.zeros(size) for size, _ in calls]
            results.append([(outcome(function, x, n), x.tolist()) for x, (_, n) in zip(xs, calls)])
        assert results[0] == results[1]


def test_what_other_sizes_make_a_view_is_written_once():
    """A copy for some sizes, a view of the argument for others: what the plan undoes differs."""

    def f(x, draw):
        x.expand(2, *x.shape).flatten()[:1].add_(1)
        if draw.random() < 0.5:
            return x + 1

    for shapes in ([(2, 3)] * 3 + [(0, 3)] * 2, [(3,), (3,), (1,), (1,), ()]):
        results = []
        for function in (f, torch.compile(f)):
            draw, xs = random.Random(7), [torch.zeros(shape) for shape in shapes]
            results.append([(outcome(function, x, draw), x.tolist(), x._version) for x in xs])
        assert results[0] == results[1]


def test_a_view_whose_base_comes_to_require_gradients_may_not_be_written():
    """In a replay as in plain Python, and in Python as in PyTorch."""

    def f(x, y):
        y.zero_()
        return x + 1

    def given(kind):
        x, base = torch.ones(3), torch.ones(3)
        y = base[:] if kind else torch.ones(3)
        base.requires_grad_(kind == 2)
        return x, y

    compiled = torch.compile(f)
    for kind in (0, 1, 0, 2, 1, 0, 2, 0):
        outcomes = []
        for function in (f, compiled):
            x, y = given(kind)
            try:
                outcomes.append((function(x, y).tolist(), y.tolist()))
            except RuntimeError as error:
                outcomes.append((str(error), y.tolist()))
        assert outcomes[0] == outcomes[1]
        assert ("a view of a leaf Variable" in str(outcomes[0])) == (kind == 2)
    assert compiled._counters()["replays"] >= 3


def test_a_number_that_an_op_refuses_after_a_write():
    def f(x):
        x.mul_(2)
        return torch.arange(x.sum().item())

    compiled = torch.compile(f)
    for value in (1.0, 2.0, 3.0, -1.0, 1.0):
        outcomes = []
        for function in (f, compiled):
            x = torch.ones(2) * value
            try:
                outcomes.append((function(x).tolist(), x.tolist()))
            except RuntimeError as error:
                line = error.__traceback__.tb_next.tb_lineno
                outcomes.append((str(error), line, x.tolist()))
        assert outcomes[0] == outcomes[1]
