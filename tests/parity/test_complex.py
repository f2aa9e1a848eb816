"""Complex tensors against PyTorch: values, dtypes, printing, errors."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

VALUES = [
    "z",
    "z * 2j",
    "z + 1",
    "z / (z + 1)",
    "z * y",
    "y * 1j",
    "y.double() * 1j",
    "torch.arange(3) * 1j",
    "z.abs()",
    "z.angle()",
    "y.angle()",
    "z.conj()",
    "z.real",
    "z.imag",
    "torch.real(y)",
    "torch.view_as_real(z)",
    "torch.view_as_complex(torch.arange(4.).reshape(2, 2))",
    "torch.polar(y.abs(), y)",
    "torch.complex(y, y)",
    "z == z.conj()",
    "z.exp()",
    "z.sqrt()",
    "z.log()",
    "z.sin()",
    "z.tanh()",
    "z.sigmoid()",
    "z.sum()",
    "z.sum(0)",
    "z.mean(0)",
    "z.prod()",
    "z.var()",
    "z.cumsum(0)",
    "z.cumprod(1)",
    "z.norm()",
    "z @ z",
    "z.mH",
    "z.T",
    "torch.dot(z[0], z[1])",
    "torch.vdot(z[0], z[1])",
    "torch.einsum('ij,jk->ik', z, z)",
    "z ** 2",
    "z ** 0.5",
    "z ** (1 + 1j)",
    "torch.where(z.abs() > 1, z, 0)",
    "z.masked_fill(z.abs() > 3, 0j)",
    "torch.cat([z, z])",
    "torch.stack([z[0], y])",
    "z.index_select(0, torch.tensor([1]))",
    "z.to(torch.complex128)",
    "torch.zeros(2, dtype=torch.cfloat)",
    "torch.full((2,), 1j)",
    "torch.linspace(0, 1, 3, dtype=torch.cfloat)",
    "torch.tensor([1e10 + 1j, 1e-3j])",
    "torch.tensor(1j)",
    "torch.empty(0, dtype=torch.complex64)",
    "torch.from_numpy(np.array([1 + 1j, 2]))",
    "torch.tensor([[1j, 2], [3, 4.5]], dtype=torch.complex128)",
    "z.sgn()",
    "z.reciprocal()",
    "torch.isfinite(z)",
    "z.any()",
    "z.roll(1, 0)",
    "z.flip(0)",
    "torch.nonzero(z)",
    "z.float()",
    "torch.tensor([1j]).add_(1)",
    "torch.outer(z[0], z[1])",
    "torch.diff(z)",
]


def names(module):
    z = module.tensor([[1 + 2j, 3 - 4j], [0.5j, -1.25 + 0j]])
    return {"torch": module, "np": np, "z": z, "y": module.tensor([1.5, -2.0])}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", VALUES)
def test_value(expression):
    got = eval(expression, names(prong))
    want = eval(expression, names(torch)).resolve_conj()
    assert repr(got.dtype) == repr(want.dtype) and tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", ["z", "z[0]", "z * 1000", "z.to(torch.complex128)", "z[:0]"])
def test_text(expression):
    assert repr(eval(expression, names(prong))) == repr(eval(expression, names(torch)))


@pytest.mark.parametrize(
    "expression",
    [
        "z[0, 0].item()",
        "z.tolist()",
        "complex(z[0, 0])",
        "bool(z[0, 0])",
        "z.is_complex()",
        "repr(torch.result_type(z, 1.0))",
        "repr(torch.promote_types(torch.float64, torch.complex64))",
        "repr(z.dtype.to_real())",
        "torch.equal(z, z)",
        "torch.can_cast(torch.complex64, torch.float32)",
    ],
)
def test_plain(expression):
    assert eval(expression, names(prong)) == eval(expression, names(torch))


@pytest.mark.parametrize(
    "expression", ["z < z", "z.max()", "float(z[0, 0])", "torch.imag(y)", "z.floor()"]
)
def test_error(expression):
    with pytest.raises(Exception) as want:
        eval(expression, names(torch))
    with pytest.raises(want.type):
        eval(expression, names(prong))


def test_random_parts_have_half_the_variance():
    prong.manual_seed(3)
    torch.manual_seed(3)
    got, want = prong.randn(64, dtype=prong.cfloat), torch.randn(64, dtype=torch.cfloat)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_dlpack():
    z = torch.tensor([1 + 2j, 3j])
    assert prong.from_dlpack(z).tolist() == z.tolist()
