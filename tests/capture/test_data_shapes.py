"""Ops whose results have shapes that data decide (masks as indices, nonzero, unique) are steps of plans."""

import prong as torch
import pytest
from test_data import counts

CALLS = [(torch.arange(12.0).reshape(4, 3) - n,) for n in (3, 5, 0, 12, 7)]


def masked(x):
    return x[x > 0] * 2 + 1


def masked_sizes(x):
    y = x[x > 0]
    return y * y.shape[0], y.numel() + 1, len(y), y.reshape(-1, 1).expand(-1, 2), y.size()


def rows(x):
    keep = x.sum(1) > 3
    y = x[keep] @ x.T
    return torch.zeros(y.shape[0], 2) + 1, y.view(y.size(0), 4), torch.cat([y, y[:1]])


def places(x):
    i, j = torch.where(x > 2)
    k = (x > 2).nonzero()
    return x[i, j], k.shape, k[:, 0] * 2, torch.arange(k.shape[0])


def distinct(x):
    values, inverse = torch.unique(x // 2, return_inverse=True)
    return values[inverse], torch.unique_consecutive(x.flatten()), x.masked_select(x > 1).sum()


def twice(x):
    y = x[x > 0]
    z = y[y < 6]
    return z.sum(), z.shape, (z + 1)[z > 2]


def written_inside(x):
    y = x.clone()
    y[y < 0] = 0
    return y[y > 0]


@pytest.mark.parametrize(
    "f", [masked, masked_sizes, rows, places, distinct, twice], ids=lambda f: f.__name__
)
def test_one_plan_for_all_data(f):
    counts(f, *CALLS)
    counts(f, *CALLS[::-1])


def test_what_writes_before_is_right():
    compiled = torch.compile(written_inside)
    for args in CALLS:
        assert compiled(*args).tolist() == written_inside(*args).tolist()


def test_a_branch_on_such_a_size():
    def f(x):
        y = x[x > 0]
        if y.shape[0] > 4:
            return y.mean()
        for i in range(y.shape[0]):
            x = x + i
        return x

    compiled = torch.compile(f)
    for _ in range(2):
        for args in CALLS:
            assert str(compiled(*args)) == str(f(*args))
    assert compiled._counters()["replays"] >= 4


def test_an_error_that_such_a_size_makes():
    def f(x, n):
        y = x[x > 0]
        unread = y[:n].reshape(n)  # noqa: F841
        return y + 1

    compiled = torch.compile(f)
    x = CALLS[0][0]
    assert compiled(x, 3).tolist() == f(x, 3).tolist()
    assert compiled(x - 1, 3).tolist() == f(x - 1, 3).tolist()
    with pytest.raises(RuntimeError, match="shape") as error:
        compiled(-x - 1, 3)
    assert error.traceback[-1].frame.code.name == "f"
    assert compiled(x, 3).tolist() == f(x, 3).tolist()


def test_gradients_go_through_masks():
    def f(x):
        y = x[x > 0]
        return (y * y).sum() / y.shape[0]

    compiled = torch.compile(f)
    for n in (3, 5, 7):
        x, z = ((torch.arange(12.0) - n).requires_grad_() for _ in range(2))
        f(x).backward()
        compiled(z).backward()
        assert x.grad.tolist() == z.grad.tolist()


def test_a_training_step_with_a_mask():
    def step(w, x):
        w.grad = None
        keep = x.sum(1) > 0
        loss = (x[keep] @ w).square().sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        return loss.item()

    compiled = torch.compile(step)
    u, v = (torch.ones(3, requires_grad=True) for _ in range(2))
    torch.manual_seed(0)
    for _ in range(6):
        x = torch.randn(5, 3)
        assert step(u, x) == compiled(v, x)
        assert u.tolist() == v.tolist()
