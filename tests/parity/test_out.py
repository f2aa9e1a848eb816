"""out=: of ops and of functions that are Python over ops; resized, checked and refused as PyTorch's."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

X = np.arange(1.0, 17.0, dtype=np.float32).reshape(4, 4) + 20 * np.eye(4, dtype=np.float32)
CALLS = {
    "exp": lambda t, x, **out: t.exp(x, **out),
    "matmul": lambda t, x, **out: t.matmul(x, x, **out),
    "sum": lambda t, x, **out: t.sum(x, 0, **out),
    "cat": lambda t, x, **out: t.cat([x, x], **out),
    "where": lambda t, x, **out: t.where(x > 5, x, -x, **out),
    "take_along_dim": lambda t, x, **out: t.take_along_dim(x, x.argsort(1), 1, **out),
    "addbmm": lambda t, x, **out: t.addbmm(x, x[None], x[None], **out),
    "tensordot": lambda t, x, **out: t.tensordot(x, x, 1, **out),
    "linalg.norm": lambda t, x, **out: t.linalg.norm(x, "fro", **out),
    "linalg.vector_norm": lambda t, x, **out: t.linalg.vector_norm(x, 3, 0, **out),
    "linalg.matrix_norm": lambda t, x, **out: t.linalg.matrix_norm(x, **out),
    "linalg.cond": lambda t, x, **out: t.linalg.cond(x, **out),
    "linalg.matrix_power": lambda t, x, **out: t.linalg.matrix_power(x, 3, **out),
    "linalg.multi_dot": lambda t, x, **out: t.linalg.multi_dot([x, x, x], **out),
    "fft.fft": lambda t, x, **out: t.fft.fft(x, **out),
    "fft.irfft2": lambda t, x, **out: t.fft.irfft2(x, **out),
    "avg_pool2d": lambda t, x, **out: t.nn.functional.avg_pool2d(x[None], 2, **out),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def both():
    return (prong, prong.from_numpy(X.copy())), (torch, torch.from_numpy(X.copy()))


@calls
def test_fills_and_resizes(call):
    for make in (
        lambda t, want: t.empty(0, dtype=want.dtype),
        lambda t, want: t.empty(want.shape, dtype=want.dtype),
        lambda t, want: t.empty((*want.shape, 2), dtype=want.dtype)[..., 0],  # has gaps
    ):
        found = []
        for t, x in both():
            want = call(t, x)
            out = make(t, want)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # nothing with elements is resized
                assert call(t, x, out=out) is out
            found.append((out, want))
        (out, want), (torch_out, _) = found
        assert prong.equal(out, want) and out.stride() == torch_out.stride()
        np.testing.assert_allclose(out.numpy(), torch_out.numpy(), rtol=2e-5, atol=1e-4)


@calls
def test_another_shape_warns(call):
    for t, x in both():
        want = call(t, x)
        out = t.empty(7, 3, dtype=want.dtype)
        if t is torch and call is CALLS["addbmm"]:  # resizes without a word
            continue
        with pytest.warns(UserWarning, match="resized"):
            call(t, x, out=out)
        assert out.shape == want.shape


@calls
def test_dtypes_that_cannot_hold_the_result_are_refused(call):
    if call is CALLS["sum"]:  # sums in the dtype of out
        return
    for t, x in both():
        with pytest.raises((RuntimeError, TypeError)):
            call(t, x, out=t.empty(0, dtype=t.int32))


@calls
def test_gradients_are_refused(call):
    """PyTorch's functions over other ones write there and forget the gradient; here none does."""
    x = prong.from_numpy(X.copy())
    out = prong.empty(0, dtype=call(prong, x).dtype)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(prong, x.requires_grad_(), out=out)
    with prong.no_grad():
        assert call(prong, x, out=out) is out


def test_not_a_tensor():
    for t, x in both():
        with pytest.raises(TypeError, match="out"):
            t.linalg.norm(x, out=3)
        with pytest.raises(TypeError):
            t.linalg.norm(x, out=(t.empty(0),))
