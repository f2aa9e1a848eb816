"""A plan that does not go through leaves nothing behind: its own memory is gone, what it drew is given back."""

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
