"""Ops that give their argument back, and views whose base is written later, against PyTorch."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

ITSELF = [
    lambda m, x: +x,
    lambda m, x: m.positive(x),
    lambda m, x: x.flatten(),
    lambda m, x: x.flatten(0, 0),
    lambda m, x: m.nn.Flatten()(x) if x.dim() > 1 else x,
    lambda m, x: m.atleast_1d(x),
    lambda m, x: m.atleast_2d(x),
    lambda m, x: m.atleast_3d(x),
]


@pytest.mark.parametrize("op", ITSELF)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2), ()])
def test_what_has_nothing_to_do_gives_its_argument_back(op, shape):
    def run(m):
        x = m.ones(shape)
        y = op(m, x)
        y.add_(1)
        return y is x, x.tolist(), y.tolist()

    assert run(prong) == run(torch)
    assert run(prong)[1] == np.full(shape, 2.0).tolist()


def test_a_plus_sign_refuses_bools_and_keeps_gradients():
    for m in (prong, torch):
        with pytest.raises(RuntimeError, match="bool tensor is not supported"):
            +m.tensor([True])
        x = m.ones(2, requires_grad=True)
        (+x * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


VIEWS = {
    "unfold": lambda h: h.unfold(0, 2, 1),
    "expand": lambda h: h.expand(4, 3),
    "column": lambda h: h[:, None].expand(3, 2),
    "as_strided": lambda h: h.as_strided((2, 2), (1, 1)),
    "turned": lambda h: h.unfold(0, 2, 1).t(),
    "slice": lambda h: h[::2],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("write", [lambda h: h.mul_(5), lambda h: h[0].fill_(9)])
def test_a_view_with_shared_elements_whose_base_is_written_later(name, write):
    def run(m, compiles=False):
        def f(h):
            view = VIEWS[name](h)
            write(h)
            weight = m.arange(float(view.numel())).reshape(view.shape)
            return (view * view * weight).sum()

        f = m.compile(f) if compiles else f
        out = []
        for _ in range(3 if compiles else 1):
            a = m.arange(3.0).requires_grad_()
            loss = f(a * 2)
            loss.backward()
            out.append((loss.item(), a.grad.tolist()))
        return out

    assert run(prong) == run(torch)
    assert run(prong, compiles=True) == run(torch) * 3


def test_the_views_of_meshgrid_follow_what_is_written():
    def run(m):
        a = m.arange(3.0).requires_grad_()
        h = a * 2
        (grid,) = m.meshgrid(h, indexing="ij")
        grid.mul_(3)
        h.sum().backward()
        b = m.arange(3.0).requires_grad_()
        k = b * 2
        first, _ = m.meshgrid(k, m.arange(2.0), indexing="ij")
        k.mul_(5)
        (first.sum() + k.sum()).backward()
        return a.grad.tolist(), b.grad.tolist()

    assert run(prong) == run(torch) == ([6.0] * 3, [30.0] * 3)
