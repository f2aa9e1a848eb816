"""Gradients through fork and wait, eager and scripted; backward passes inside of tasks."""

import prong
import pytest
from prong import jit


def plain(x, w):
    y = x * w
    z = y * y + w
    return (z * y).sum()


def inner(x, w):
    y = x * w
    return y * y + w


def forked(x, w):
    future = jit.fork(inner, x, w)
    y = x * w
    return (jit.wait(future) * y).sum()


def deep(x, w, depth: int):
    if depth == 0:
        return x * w
    left = jit.fork(deep, x, w, depth - 1)
    right = deep(x * w, w, depth - 1)
    return jit.wait(left) + right


def deep_plain(x, w, depth: int):
    if depth == 0:
        return x * w
    return deep_plain(x, w, depth - 1) + deep_plain(x * w, w, depth - 1)


@jit.script
def scripted_inner(x, w):
    y = x * w
    return y * y + w


@jit.script
def scripted(x, w):
    future = jit.fork(scripted_inner, x, w)
    y = x * w
    return (jit.wait(future) * y).sum()


def leaves():
    x = (prong.arange(6.0).reshape(2, 3) / 7).requires_grad_()
    w = prong.tensor([0.5, -1.0, 2.0], requires_grad=True)
    return x, w


def same(got, want):
    for a, b in zip(got, want, strict=True):
        assert prong.allclose(prong.tensor(a), prong.tensor(b), rtol=1e-5)


def gradients(f, *more):
    x, w = leaves()
    out = f(x, w, *more)
    out.sum().backward()
    return x.grad.tolist(), w.grad.tolist()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("f", [forked, scripted], ids=["eager", "scripted"])
def test_gradients_flow_through(f, threads):
    before = prong.get_num_threads()
    prong.set_num_threads(threads)
    try:
        same(gradients(f), gradients(plain))
    finally:
        prong.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 4])
def test_nested(threads):
    before = prong.get_num_threads()
    prong.set_num_threads(threads)
    try:
        want = gradients(deep_plain, 4)
        for _ in range(20):
            same(gradients(deep, 4), want)
    finally:
        prong.set_num_threads(before)


def one_backward(x, w):
    loss = plain(x, w)
    loss.backward()
    return loss.detach()


def test_backward_inside_tasks():
    """Passes over graphs of their own, with leaves of their own."""
    want = gradients(plain)
    pairs = [leaves() for _ in range(16)]
    futures = [jit.fork(one_backward, x, w) for x, w in pairs]
    for future in futures:
        jit.wait(future)
    for x, w in pairs:
        assert (x.grad.tolist(), w.grad.tolist()) == want


def test_tasks_add_to_the_same_leaf():
    """Counts are exact in float32: every pass must arrive."""
    w = prong.ones(1000, requires_grad=True)

    def one(k):
        (w * float(k)).sum().backward()

    for future in [jit.fork(one, k) for k in range(1, 33)]:
        jit.wait(future)
    assert w.grad.tolist() == [float(sum(range(1, 33)))] * 1000


def test_grad_mode_of_tasks():
    """A task has the grad mode of where it was forked."""
    x, w = leaves()
    with prong.no_grad():
        future = jit.fork(inner, x, w)
    assert not jit.wait(future).requires_grad
    assert jit.wait(jit.fork(inner, x, w)).requires_grad


def test_backward_of_a_graph_made_by_many_tasks():
    def branch(x, w, k):
        for _ in range(k):
            x = x * w
        return x.sum()

    def total(fork):
        x, w = leaves()
        parts = [fork(branch, x, w, k % 5 + 1) for k in range(30)]
        sum(jit.wait(p) if isinstance(p, jit.Future) else p for p in parts).backward()
        return x.grad.tolist(), w.grad.tolist()

    want = total(lambda f, *args: f(*args))
    for threads in (1, 2, 8):
        before = prong.get_num_threads()
        prong.set_num_threads(threads)
        got = total(lambda f, *args: jit.fork(f, *args))
        prong.set_num_threads(before)
        same(got, want)


def test_errors_of_backward_cross_wait():
    def faulty(x):
        (x * 2).backward()

    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        jit.wait(jit.fork(faulty, prong.ones(3, requires_grad=True)))


def test_branches_of_a_pass_give_the_same_bits_on_any_threads():
    """Products large enough to be shared between threads, all adding to one leaf."""
    prong.manual_seed(0)
    x, w = prong.randn(64, 96), prong.randn(96, 96)

    def gradient(threads):
        before = prong.get_num_threads()
        prong.set_num_threads(threads)
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        branches = [((a * (k + 1)) @ b).tanh() @ b for k in range(8)]
        sum(branch.sum() for branch in branches).backward()
        prong.set_num_threads(before)
        return a.grad, b.grad

    want = gradient(1)
    for threads in (2, 4, 4, 4):
        for got, expected in zip(gradient(threads), want, strict=True):
            assert prong.equal(got, expected)


def test_a_failing_branch_fails_the_pass():
    class Faulty(prong.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("faulty")

    x = prong.randn(64, 64).requires_grad_()
    total = sum((Faulty.apply(x) @ x).sum() for _ in range(4))
    with pytest.raises(ValueError, match="faulty"):
        total.backward()
