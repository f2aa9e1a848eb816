"""Clipping of gradients against PyTorch's."""

import math

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

SHAPES = [(3, 4), (), (70000,), (0, 2)]


def params(t, dtype="float32", scale=1.0):
    random = np.random.default_rng(0)
    made = []
    for shape in SHAPES:
        p = t.zeros(shape, dtype=getattr(t, dtype)).requires_grad_()
        grad = t.tensor((random.normal(size=shape) * scale).tolist(), dtype=getattr(t, dtype))
        p.grad = grad.reshape(shape)
        made.append(p)
    made.append(t.zeros(3).requires_grad_())  # without a gradient
    return made


def grads(made):
    return [np.array(p.grad.double().tolist()) for p in made if p.grad is not None]


# Not 0.5 in bfloat16: PyTorch rounds the norms of single tensors, which the root makes large.
NORMS = [
    (norm, dtype)
    for norm in (2.0, 1.0, 3.0, 0.5, math.inf, 0.0)
    for dtype in ("float32", "float64", "bfloat16")
    if (norm, dtype) != (0.5, "bfloat16")
]


@pytest.mark.parametrize(("norm", "dtype"), NORMS)
@pytest.mark.parametrize("most", [0.5, 1e9])
def test_norm(norm, most, dtype):
    results = []
    for t in (prong, torch):
        made = [p for p in params(t, dtype) if p.numel() or norm != math.inf]
        total = t.nn.utils.clip_grad_norm_(made, most, norm)
        assert str(total.dtype).endswith(dtype)
        results.append((total.item(), grads(made)))
    tolerance = 3e-2 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=tolerance)
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-6)


def test_value():
    results = []
    for t in (prong, torch):
        made = params(t)
        made[0].grad[0, 0] = math.nan
        t.nn.utils.clip_grad_value_(made, 0.3)
        results.append(grads(made))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_parts():
    results = []
    for t in (prong, torch):
        made = params(t)
        of = [p.grad for p in made if p.grad is not None]
        total = t.nn.utils.get_total_norm(of)
        t.nn.utils.clip_grads_with_norm_(made, 0.1, total)
        results.append((total.item(), t.nn.utils.get_total_norm([]).item(), grads(made)))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    assert results[0][1] == results[1][1] == 0.0
    for a, b in zip(results[0][2], results[1][2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_strided_gradients_and_one_tensor():
    for t in (prong, torch):
        p = t.zeros(3, 2).requires_grad_()
        p.grad = t.arange(6.0).reshape(2, 3).t()
        assert t.nn.utils.clip_grad_norm_(p, 1.0).item() == pytest.approx(math.sqrt(55))
        np.testing.assert_allclose(
            np.array(p.grad.tolist()),
            np.arange(6.0).reshape(2, 3).T / math.sqrt(55),
            rtol=1e-5,
        )


def test_not_finite():
    for t in (prong, torch):
        p = t.zeros(2).requires_grad_()
        p.grad = t.tensor([math.inf, 1.0])
        with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients"):
            t.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_no_parameters():
    for t in (prong, torch):
        with pytest.warns(UserWarning, match="`parameters` is an empty generator"):
            assert t.nn.utils.clip_grad_norm_((p for p in []), 1.0).item() == 0.0


def test_bits_do_not_depend_on_threads():
    totals = []
    for threads in (1, 3):
        before = prong.get_num_threads()
        prong.set_num_threads(threads)
        totals.append(prong.nn.utils.clip_grad_norm_(params(prong), 0.5).item())
        prong.set_num_threads(before)
    assert totals[0] == totals[1]
