"""torch.cond and the loops of torch._higher_order_ops, alone and in compiled functions."""

import prong as torch
import pytest
from prong._higher_order_ops import associative_scan, map, scan, while_loop

T = torch.tensor


def test_cond_takes_one_way_and_has_gradients():
    w = T([2.0], requires_grad=True)

    def f(x):
        return torch.cond(x.sum() > 0, lambda v: v * w, lambda v: v - w, (x,))

    compiled = torch.compile(f)
    for g in (f, compiled):
        for value, want, slope in ((1.0, 2.0, 1.0), (-1.0, -3.0, -1.0), (3.0, 6.0, 3.0)):
            w.grad = None
            y = g(T([value]))
            y.sum().backward()
            assert y.item() == want and w.grad.item() == slope
    assert torch.cond(False, lambda: 1, lambda: 2) == 2


def test_cond_says_what_it_expects():
    with pytest.raises(RuntimeError, match="one element"):
        torch.cond(T([True, False]), abs, abs, (T(1.0),))
    with pytest.raises(RuntimeError, match="false_fn to be callable"):
        torch.cond(True, abs, 3, (T(1.0),))
    with pytest.raises(RuntimeError, match="operands to be a tuple"):
        torch.cond(True, abs, abs, T(1.0))


def test_while_loop_carries_values():
    def f(x):
        return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (T(0), x))

    for g in (f, torch.compile(f)):
        for n in (1, 2, 3):
            i, v = g(torch.ones(n))
            assert i.item() == 3 and v.tolist() == [8.0] * n
    with pytest.raises(RuntimeError, match="as many values as it is given"):
        while_loop(lambda i: i < 3, lambda i: (i, i), (T(0),))


def test_scan_stacks_outputs_along_the_sequence():
    xs = {"a": torch.arange(6.0).view(3, 2)}

    def step(carry, x):
        return carry + x["a"], (carry * x["a"], x["a"] + 0)

    for g in (scan, torch.compile(scan)):
        total, (products, rows) = g(step, torch.zeros(2), xs)
        assert total.tolist() == [6.0, 9.0] and rows.tolist() == xs["a"].tolist()
        assert products.tolist() == [[0.0, 0.0], [0.0, 3.0], [8.0, 20.0]]
    total, (products, _) = scan(step, torch.zeros(2), xs, reverse=True)
    assert total.tolist() == [6.0, 9.0]
    assert products.tolist() == [[0.0, 8.0], [8.0, 15.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="one size at dim 0"):
        scan(step, torch.zeros(2), (torch.ones(2), torch.ones(3)))


def test_prefixes_and_rows():
    x = torch.arange(1.0, 7.0).view(3, 2)
    assert associative_scan(torch.add, x, 0).tolist() == x.cumsum(0).tolist()
    back = associative_scan(torch.mul, x, 1, reverse=True)
    assert back.tolist() == [[2.0, 2.0], [12.0, 4.0], [30.0, 6.0]]
    assert map(lambda row, k: row.sum() * k, x, 2.0).tolist() == [6.0, 14.0, 22.0]
    with pytest.raises(ValueError, match="combine_mode"):
        associative_scan(torch.add, x, 0, combine_mode="other")
