"""torch.func on PyTorch and on Prong: one program, the same numbers."""

import numpy as np
import prong
import prong.func
import pytest
from both import torch

R = np.random.RandomState(0)
A, B, C = R.randn(4, 3), R.randn(4, 3), R.randn(3, 5)
IMAGES, KERNELS = R.randn(4, 2, 3, 6, 6), R.randn(5, 3, 3, 3)
R_WEIGHTS = R.randn(2, 5, 3)
LABELS = R.randint(0, 3, 4)


def f(m, x):
    return (x.sin() * x.exp()).sum()


def g(m, x):
    return m.stack([x[0] * x[1], x.prod(), m.logsumexp(x, 0)])


# name: a program over (module, tensor maker)
PROGRAMS = {
    "grad": lambda m, t: m.func.grad(lambda x: f(m, x))(t(A)),
    "grad of grad": lambda m, t: m.func.grad(
        lambda x: m.func.grad(lambda y: f(m, y))(x).pow(2).sum()
    )(t(A)),
    "vmap of grad": lambda m, t: m.vmap(m.func.grad(lambda x: f(m, x)))(t(A)),
    "vmap of grad, out_dims": lambda m, t: m.vmap(m.func.grad(lambda x: f(m, x)), 1, 1)(t(A)),
    "grad of vmap": lambda m, t: m.func.grad(
        lambda x: m.vmap(lambda r: m.softmax(r, 0)[0])(x).sum()
    )(t(A)),
    "jacrev": lambda m, t: m.func.jacrev(lambda x: g(m, x))(t(A[0])),
    "jacfwd": lambda m, t: m.func.jacfwd(lambda x: g(m, x))(t(A[0])),
    "hessian": lambda m, t: m.func.hessian(lambda x: f(m, x))(t(A[0])),
    "vmap of hessian": lambda m, t: m.vmap(m.func.hessian(lambda x: f(m, x)))(t(A)),
    "vmap of jacrev": lambda m, t: m.vmap(m.func.jacrev(lambda x: g(m, x)))(t(A)),
    "jacrev of vmap": lambda m, t: m.func.jacrev(m.vmap(lambda x: g(m, x)))(t(A)),
    "jacfwd of jacfwd": lambda m, t: m.func.jacfwd(m.func.jacfwd(lambda x: g(m, x)))(t(A[0])),
    "jvp": lambda m, t: m.func.jvp(lambda x: g(m, x), (t(A[0]),), (t(B[0]),)),
    "vmap of jvp": lambda m, t: m.vmap(lambda x, v: m.func.jvp(lambda y: g(m, y), (x,), (v,))[1])(
        t(A), t(B)
    ),
    "vjp": lambda m, t: m.func.vjp(lambda x: g(m, x), t(A[0]))[1](t(B[0])),
    "matrix products": lambda m, t: m.vmap(lambda x, y: x @ y @ t(C))(
        t(A).reshape(2, 2, 3), t(B).reshape(2, 3, 2) @ t(A).reshape(2, 2, 3)
    ),
    "vector products": lambda m, t: m.vmap(lambda x: t(C).T @ x + x @ t(C))(t(A)),
    "einsum": lambda m, t: m.vmap(lambda x, y: m.einsum("i,j,jk->ik", x, y, t(C)))(t(A), t(B)),
    "linear": lambda m, t: m.vmap(lambda w: m.nn.functional.linear(t(A), w))(t(R_WEIGHTS)),
    "conv2d": lambda m, t: m.vmap(lambda x: m.nn.functional.conv2d(x, t(KERNELS), padding=1))(
        t(IMAGES)
    ),
    "layer_norm": lambda m, t: m.vmap(lambda x, w: m.nn.functional.layer_norm(x, (3,), w, w))(
        t(A), t(B)
    ),
    "cross entropy of each sample": lambda m, t: m.vmap(
        m.func.grad(lambda x, y: m.nn.functional.cross_entropy(x[None], y[None]))
    )(t(A), m.tensor(LABELS)),
    "gather": lambda m, t: m.vmap(lambda x, i: x.gather(0, i[None]))(t(A), m.tensor(LABELS)),
    "index": lambda m, t: m.vmap(lambda i: t(A)[:, i])(m.tensor(LABELS)),
    "index in the middle": lambda m, t: m.vmap(lambda x, i: x[:, i])(
        t(IMAGES).flatten(2), m.tensor(LABELS)
    ),
    "two indices": lambda m, t: m.vmap(lambda x, i: x[i.abs() % 2, :, i])(
        t(IMAGES), m.tensor(LABELS)
    ),
    "index_put": lambda m, t: m.vmap(lambda x, i, v: x.clone().index_put((i[None],), v[:1]))(
        t(A), m.tensor(LABELS), t(B)
    ),
    "sort": lambda m, t: m.vmap(lambda x: m.sort(x, descending=True))(t(A)),
    "argmax": lambda m, t: m.vmap(lambda x: (x.argmax(), x.max(), x.any(), x.std()))(t(A)),
    "where": lambda m, t: m.vmap(lambda x, y: m.where(x > y, x, y[0]))(t(A), t(B)),
    "views": lambda m, t: m.vmap(
        lambda x: x.permute(2, 0, 1).flatten(1).unsqueeze(-1).expand(-1, -1, 2).squeeze()[..., 0]
    )(t(IMAGES[:, 0])),
    "nested": lambda m, t: m.vmap(
        m.vmap(lambda x, y: (x * y).sum(), in_dims=(None, 0)), in_dims=(0, None)
    )(t(A), t(B)),
    "linalg": lambda m, t: m.vmap(lambda x: m.linalg.inv(x.T @ x + m.eye(3).double()))(
        t(IMAGES[:, 0])[:, :, :3, :3].reshape(4, 9, 3)
    ),
    "autograd.functional.hessian": lambda m, t: m.autograd.functional.hessian(
        lambda x: f(m, x), t(A[0])
    ),
    "autograd.functional.jacobian": lambda m, t: m.autograd.functional.jacobian(
        lambda x, y: (x * y, x.sum()), (t(A[0]), t(B[0]))
    ),
    "autograd.functional.hvp": lambda m, t: m.autograd.functional.hvp(
        lambda x: f(m, x), t(A[0]), t(B[0])
    ),
}


def as_arrays(value):
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in as_arrays(v)]
    return [value.detach().numpy()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_numbers(name):
    program = PROGRAMS[name]
    got = as_arrays(program(prong, lambda a: prong.tensor(a)))
    want = as_arrays(program(torch, lambda a: torch.tensor(a)))
    assert [g.shape for g in got] == [w.shape for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-10)


DRAWS = {
    "rand": lambda m, x: x + m.rand(3),
    "randn": lambda m, x: x + m.randn(3),
    "bernoulli": lambda m, x: m.bernoulli(x.sigmoid()),
    "dropout": lambda m, x: m.nn.functional.dropout(x, 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_draws(name):
    results = []
    for m in (prong, torch):
        m.manual_seed(7)
        draw = m.vmap(lambda x, m=m: DRAWS[name](m, x), randomness="different")
        results.append(draw(m.tensor(A)).numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)
