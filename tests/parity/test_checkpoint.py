"""torch.utils.checkpoint and hooks on saved tensors, against PyTorch."""

import importlib

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

MODULES = {"prong": prong, "torch": torch}


def checkpoint_of(t):
    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


def run(t, body):
    """What body(t, checkpoint module, x, w) leaves as gradients of x and w."""
    x = t.arange(6.0).reshape(2, 3).requires_grad_()
    w = t.tensor([0.5, -1.0, 2.0], requires_grad=True)
    out = body(t, checkpoint_of(t), x, w)
    return out, x.grad.tolist(), None if w.grad is None else w.grad.tolist()


def same(body):
    ours, theirs = run(prong, body), run(torch, body)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.array(a, dtype=float), np.array(b, dtype=float), rtol=1e-6)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients(reentrant):
    def body(t, c, x, w):
        calls = []

        def f(a, b):
            calls.append(1)
            return (a * b) * a

        y = c.checkpoint(f, x, w, use_reentrant=reentrant)
        (y * y).sum().backward()
        return len(calls)

    same(body)


def test_keywords_and_closures():
    def body(t, c, x, w):
        def f(a, *, scale):
            return a * w * scale * a

        c.checkpoint(f, x, scale=3.0, use_reentrant=False).sum().backward()
        return 0

    same(body)


def test_nested():
    def body(t, c, x, w):
        def inner(a):
            return a * a * w

        def outer(a):
            return c.checkpoint(inner, a * 2.0, use_reentrant=False) * a

        c.checkpoint(outer, x, use_reentrant=False).sum().backward()
        return 0

    same(body)


def test_twice_with_retained_graph():
    def body(t, c, x, w):
        y = c.checkpoint(lambda a, b: a * b * a, x, w, use_reentrant=False).sum()
        y.backward(retain_graph=True)
        y.backward()
        return 0

    same(body)


def test_grad_and_double_backward():
    def body(t, c, x, w):
        y = c.checkpoint(lambda a, b: a * b * a * a, x, w, use_reentrant=False).sum()
        (g,) = t.autograd.grad(y, [x], create_graph=True)
        (g * g).sum().backward()
        return g.tolist()

    same(body)


@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_are_the_same_again(reentrant):
    def body(t, c, x, w):
        t.manual_seed(3)
        seen = []

        def f(a):
            mask = (t.rand(2, 3) > 0.5).to(t.float32)
            seen.append(mask.tolist())
            return a * mask * a

        y = c.checkpoint(f, x, use_reentrant=reentrant)
        t.rand(5)
        y.sum().backward()
        after = t.rand(1).item()
        assert len(seen) == 2 and seen[0] == seen[1]
        return after

    same(body)


@pytest.mark.parametrize("reentrant", [True, False])
def test_sequential(reentrant):
    def body(t, c, x, w):
        steps = [lambda a: a * w, lambda a: a * a, lambda a: a + w, lambda a: a * 2.0]
        c.checkpoint_sequential(steps, 2, x, use_reentrant=reentrant).sum().backward()
        return 0

    same(body)


def test_less_is_kept():
    """Nothing of the inside stands on the tape before backward."""
    kept = []
    x = prong.ones(3, requires_grad=True)

    def f(a):
        for _ in range(10):
            a = a * a
        return a

    with prong.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        checkpoint_of(prong).checkpoint(f, x, use_reentrant=False)
    assert len(kept) <= 1


def test_early_stop():
    from prong.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    for stop, expected in ((True, 1), (False, 2)):
        ends = []

        def f(a):
            b = a * a
            ends.append(1)  # noqa: B023
            return b

        x = prong.ones(3, requires_grad=True)
        with set_checkpoint_early_stop(stop):
            y = checkpoint(f, x, use_reentrant=False)
        y.sum().backward()
        assert len(ends) == expected


def test_other_results_the_second_time():
    for t in MODULES.values():
        c = checkpoint_of(t)
        calls = []

        def f(a):
            calls.append(1)  # noqa: B023
            return a * a if len(calls) == 1 else a[:1] * a[:1]  # noqa: B023

        x = t.ones(3, requires_grad=True)
        y = c.checkpoint(f, x, use_reentrant=False)
        with pytest.raises(c.CheckpointError, match="different metadata"):
            y.sum().backward()


def test_faults():
    for t in MODULES.values():
        c = checkpoint_of(t)
        x = t.ones(3, requires_grad=True)
        with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
            c.checkpoint(lambda a, k: a, x, k=1, use_reentrant=True)
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
            c.checkpoint(lambda a: a * 2, t.ones(3), use_reentrant=True)


def test_saved_tensors_hooks():
    def body(t, c, x, w):
        log = []

        def pack(tensor):
            log.append(("pack", tuple(tensor.shape), tensor.requires_grad))
            return tensor * 2

        def unpack(packed):
            log.append(("unpack", tuple(packed.shape)))
            return packed / 2

        with t.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x * w
        y.sum().backward()
        assert [e[0] for e in log] == ["pack", "pack", "unpack", "unpack"]
        return sorted(e[1:] == ("pack", (2, 3), False) for e in log)

    same(body)


def test_save_on_cpu():
    def body(t, c, x, w):
        with t.autograd.graph.save_on_cpu(pin_memory=False):
            y = x * w * x
        y.sum().backward()
        return 0

    same(body)


def test_hooks_can_be_refused():
    for t in MODULES.values():
        graph = t.autograd.graph
        with graph.disable_saved_tensors_hooks("not here"):  # noqa: SIM117
            with pytest.raises(RuntimeError, match="not here"):
                with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
                    pass


def test_unpack_must_give_a_tensor():
    for t in MODULES.values():
        x = t.ones(3, requires_grad=True)
        with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: 1):
            y = x * x
        with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
            y.sum().backward()
