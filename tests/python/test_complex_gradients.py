"""Gradients of ops on complex numbers against finite differences, without PyTorch."""

import prong
import pytest
from prong.autograd import gradcheck, gradgradcheck

fun = prong.nn.functional
INDEX = prong.tensor([2, 0, 2])

CASES = {
    "exp2": ((3, 2), prong.exp2),
    "expm1": ((3, 2), prong.expm1),
    "log1p": ((3, 2), prong.log1p),
    "logaddexp": ((3, 2), lambda x: prong.logaddexp(x, x * 0.5j)),
    "logsumexp": ((3, 4), lambda x: prong.logsumexp(x, 1)),
    "logcumsumexp": ((3, 4), lambda x: prong.logcumsumexp(x, 1)),
    "sgn": ((3, 2), prong.sgn),
    "softsign": ((3, 2), fun.softsign),
    "tanhshrink": ((3, 2), fun.tanhshrink),
    "prod": ((3, 2), lambda x: prong.prod(x, 0)),
    "slogdet": ((3, 3), prong.linalg.slogdet),
    "rms_norm": ((2, 4), lambda x: fun.rms_norm(x, [4], x[0] + 2)),
    "l1_loss": ((3, 2), lambda x: fun.l1_loss(x, x.conj() * 2 + 1)),
    "conv1d": ((2, 3, 5), lambda x: fun.conv1d(x, x[:, :, :2] * 1j, x[:, 0, 0], padding=1)),
    "conv_transpose1d": ((2, 3, 4), lambda x: fun.conv_transpose1d(x, x[0, :, :, None], stride=2)),
    "addmm": ((3, 3), lambda x: prong.addmm(x, x, x * 2, beta=1j, alpha=2 - 1j)),
    "add": ((3, 2), lambda x: prong.add(x, x * x, alpha=1 + 2j)),
    "index_add": ((3, 3), lambda x: x.index_add(0, INDEX, x * x, alpha=2j)),
    "index_select": ((3, 2), lambda x: x.index_select(0, INDEX)),
    "scatter_add": ((3, 2), lambda x: x.scatter_add(0, prong.tensor([[0, 2]]), x * x)),
    "take": ((3, 2), lambda x: x.take(INDEX)),
}


def parts(result) -> tuple:
    results = result if isinstance(result, tuple) else (result,)
    return tuple(prong.view_as_real(t) if t.is_complex() else t for t in results)


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    """As functions of real and imaginary parts."""
    sizes, function = CASES[name]
    prong.manual_seed(5)
    x = prong.randn(*sizes, 2, dtype=prong.float64).requires_grad_()

    def of_parts(x):
        return parts(function(prong.view_as_complex(x)))

    assert gradcheck(of_parts, (x,))
    assert gradgradcheck(of_parts, (x,), fast_mode=True)


@pytest.mark.parametrize("function", [prong.add, prong.sub, prong.rsub])
def test_a_complex_factor_needs_a_complex_tensor(function):
    x = prong.ones(2, 2)
    with pytest.raises(RuntimeError, match="alpha must not be a complex number"):
        function(x, x, alpha=1j)
    with pytest.raises(RuntimeError, match="must not be complex numbers"):
        prong.addmm(x, x, x, beta=1j)
