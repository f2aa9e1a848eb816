"""torch.linalg against PyTorch: values over dtypes and batches, products of factors, errors."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(dtype, *sizes, hermitian=False, positive=False):
    random = np.random.RandomState(5)
    a = random.standard_normal(sizes)
    if dtype.startswith("complex"):
        a = a + 1j * random.standard_normal(sizes)
    if hermitian:
        a = a + np.conj(np.swapaxes(a, -1, -2))
    if positive:
        a = a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(sizes[-1])
    return a.astype(dtype)


def agree(got, want, dtype):
    tolerance = 1e-9 if dtype in ("float64", "complex128") else 5e-4
    for g, w in zip(flat(got), flat(want), strict=True):
        assert repr(g.dtype) == repr(w.dtype) and tuple(g.shape) == tuple(w.shape)
        np.testing.assert_allclose(
            g.numpy(), w.resolve_conj().numpy(), rtol=tolerance, atol=tolerance
        )


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


CALLS = {
    "inv": "L.inv(a)",
    "inverse": "torch.inverse(a)",
    "method": "a.inverse()",
    "det": "L.det(a)",
    "slogdet": "L.slogdet(a)",
    "solve": "L.solve(a, b)",
    "solve_vector": "L.solve(a, b[..., 0])",
    "solve_right": "L.solve(a, b.mT, left=False)",
    "solve_broadcast": "L.solve(a, b[:1])",
    "lu_factor": "L.lu_factor(a)",
    "lu_factor_wide": "L.lu_factor(a[..., :2, :])",
    "lu": "L.lu(a)",
    "lu_tall": "L.lu(a[..., :2])",
    "lu_solve": "L.lu_solve(*L.lu_factor(a), b)",
    "lu_solve_adjoint": "L.lu_solve(*L.lu_factor(a), b, adjoint=True)",
    "lu_solve_right": "L.lu_solve(*L.lu_factor(a), b.mT, left=False)",
    "lu_solve_right_adjoint": "L.lu_solve(*L.lu_factor(a), b.mT, left=False, adjoint=True)",
    "svdvals": "L.svdvals(a[..., :2])",
    "pinv": "L.pinv(a[..., :2])",
    "pinv_rtol": "L.pinv(a, rtol=0.5)",
    "rank": "L.matrix_rank(a)",
    "power": "L.matrix_power(a, 3)",
    "power_negative": "L.matrix_power(a, -2)",
    "power_0": "L.matrix_power(a, 0)",
    "exp": "L.matrix_exp(a)",
    "exp_large": "L.matrix_exp(5 * a)",
    "norm": "L.norm(a)",
    "norm_fro": "L.norm(a, 'fro', dim=(-2, -1))",
    "norm_nuc": "L.norm(a, 'nuc', dim=(-2, -1), keepdim=True)",
    "norm_2": "L.matrix_norm(a, 2)",
    "norm_1": "L.matrix_norm(a, 1)",
    "norm_inf": "L.matrix_norm(a, float('inf'), dim=(0, 1), keepdim=True)",
    "norm_minus": "L.matrix_norm(a, -1, dim=(1, 0))",
    "vector_norm": "L.vector_norm(a, 3, dim=-1)",
    "vector_norm_0": "L.vector_norm(a, 0)",
    "cond": "L.cond(a)",
    "cond_1": "L.cond(a, 1)",
    "cross": "L.cross(a, b3)",
    "vecdot": "L.vecdot(a, b3)",
    "multi_dot": "L.multi_dot([a[0], b[0], b[0].mT, a[0, 0]])",
    "vander": "L.vander(a[0, 0], N=5)",
    "diagonal": "L.diagonal(a)",
    "tensorinv": "L.tensorinv(a[0].reshape(3, 3, 1), ind=1)",
    "tensorsolve": "L.tensorsolve(a[0].reshape(3, 3, 1), a[0, :, 0])",
    "lstsq": "L.lstsq(a[..., :2], b, driver='gelsd')[:1]",
    "triangular": "L.solve_triangular(a.tril() + 3 * torch.eye(3), b, upper=False)",
    "eigvals_sum": "L.eigvals(a).sum(-1)",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_value(name, dtype):
    def run(module):
        a = module.from_numpy(matrices(dtype, 2, 3, 3))
        b = module.from_numpy(matrices(dtype, 2, 3, 2) * 0.5)
        b3 = module.from_numpy(matrices(dtype, 2, 3, 3) * 0.5).mT
        return eval(CALLS[name], {"L": module.linalg, "torch": module, "a": a, "b": b, "b3": b3})

    agree(run(prong), run(torch), dtype)


@pytest.mark.parametrize("batch", [(1,), (2, 1), (1, 1, 2), (1, 2, 1, 1, 2), (2, 1, 1, 1, 1, 2)])
@pytest.mark.parametrize(
    "expression",
    [
        "L.solve(a, b)",
        "L.solve(a, b[..., 0])",
        "L.solve(a, b.mT, left=False)",
        "L.inv(a)",
        "L.det(a)",
        "L.slogdet(a)",
        "L.lu(a)",
        "L.lu_factor(a)",
        "L.lu_solve(*L.lu_factor(a), b)",
        "L.qr(a)[0].abs()",
        "L.qr(a, 'complete')[1].abs()",
        "L.svd(a)[1]",
        "L.svdvals(a)",
        "L.eigvals(a).abs().sum(-1)",
        "L.eigvalsh(a + a.mH)",
        "L.cholesky(a @ a.mH)",
        "L.lstsq(a, b)[0]",
        "L.lstsq(a, b[..., 0])[0]",
        "L.matrix_exp(a)",
        "L.solve_triangular(a.tril(), b, upper=False)",
    ],
)
def test_stacks_of_many_dims(expression, batch):
    """Also more than five, which a Dims doesn't hold in itself; dims of one stay where they are."""

    def run(module):
        a = module.from_numpy(matrices("float64", *batch, 3, 3, positive=True))
        b = module.from_numpy(matrices("float64", *batch, 3, 2))
        return eval(expression, {"L": module.linalg, "a": a, "b": b})

    agree(run(prong), run(torch), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "expression",
    [
        "L.cholesky(p)",
        "L.cholesky(p, upper=True)",
        "torch.cholesky_solve(p[0], L.cholesky(p[0]))",
        "torch.cholesky_inverse(L.cholesky(p))",
        "L.eigvalsh(h)",
        "L.eigvalsh(h, UPLO='U')",
        "L.pinv(h, hermitian=True)",
        "L.matrix_rank(h, hermitian=True)",
        "torch.logdet(p)",
    ],
)
def test_hermitian(expression, dtype):
    def run(module):
        h = module.from_numpy(matrices(dtype, 2, 4, 4, hermitian=True))
        p = module.from_numpy(matrices(dtype, 2, 4, 4, positive=True))
        return eval(expression, {"L": module.linalg, "torch": module, "h": h, "p": p})

    agree(run(prong), run(torch), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 5), (3, 3)])
def test_factors_multiply_to_the_matrix(dtype, sizes):
    a = prong.from_numpy(matrices(dtype, *sizes))
    q, r = prong.linalg.qr(a)
    agree(q @ r, torch.from_numpy(a.numpy()), dtype)
    q, r = prong.linalg.qr(a, "complete")
    agree(q @ r, torch.from_numpy(a.numpy()), dtype)
    u, s, vh = prong.linalg.svd(a, full_matrices=False)
    agree((u * s.unsqueeze(-2)) @ vh, torch.from_numpy(a.numpy()), dtype)
    u, _, vh = prong.linalg.svd(a)
    agree(u @ u.mH, torch.eye(sizes[-2], dtype=u_dtype(dtype)).expand(u.shape), dtype)
    agree(vh @ vh.mH, torch.eye(sizes[-1], dtype=u_dtype(dtype)).expand(vh.shape), dtype)


def u_dtype(dtype):
    return getattr(torch, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors(dtype):
    h = prong.from_numpy(matrices(dtype, 2, 4, 4, hermitian=True))
    values, vectors = prong.linalg.eigh(h)
    agree(h @ vectors, torch.from_numpy((vectors * values.unsqueeze(-2)).numpy()), dtype)
    a = prong.from_numpy(matrices(dtype, 2, 4, 4))
    values, vectors = prong.linalg.eig(a)
    agree(
        a.to(vectors.dtype) @ vectors,
        torch.from_numpy((vectors * values.unsqueeze(-2)).numpy()),
        dtype,
    )


@pytest.mark.parametrize(
    "expression",
    [
        "L.inv(torch.zeros(2, 2))",
        "L.inv(torch.zeros(3, 2, 2))",
        "L.inv(torch.zeros(2, 3))",
        "L.inv(torch.zeros(2))",
        "L.inv(torch.zeros(2, 2, dtype=torch.int64))",
        "L.inv(torch.zeros(2, 2, dtype=torch.float16))",
        "L.solve(torch.zeros(2, 2), torch.zeros(2))",
        "L.solve(torch.eye(2), torch.zeros(3))",
        "L.cholesky(-torch.eye(2))",
        "L.cholesky(torch.stack([torch.eye(2), -torch.eye(2)]))",
        "L.svd(torch.full((2, 2), float('nan')))",
        "L.qr(torch.eye(2), 'other')",
        "L.eigh(torch.eye(2), 'X')",
        "L.matrix_norm(torch.eye(2), 3)",
        "L.multi_dot([torch.eye(2)])",
        "L.solve_triangular(torch.eye(2), torch.eye(3), upper=True)",
    ],
)
def test_error(expression):
    with pytest.raises(Exception) as want:
        eval(expression, {"L": torch.linalg, "torch": torch})
    with pytest.raises(Exception) as got:
        eval(expression, {"L": prong.linalg, "torch": prong})
    assert got.type.__name__.lstrip("_") == want.type.__name__.lstrip("_")
    assert str(got.value) == str(want.value) or (
        "LinAlgError" not in want.type.__name__ and str(got.value)[:20] == str(want.value)[:20]
    )


# Factors whose signs are free are compared through what does not depend on them.
GRADIENTS = {
    "inv": "L.inv(a)",
    "inverse": "torch.inverse(a)",
    "det": "L.det(a)",
    "slogdet": "L.slogdet(a)[1]",
    "logdet": "torch.logdet(p)",
    "solve": "L.solve(a, b)",
    "solve_vector": "L.solve(a, b[..., 0])",
    "solve_right": "L.solve(a, b.mT, left=False)",
    "solve_broadcast": "L.solve(a, b[:1])",
    "cholesky": "L.cholesky(p)",
    "cholesky_upper": "L.cholesky(p, upper=True)",
    "cholesky_solve": "torch.cholesky_solve(b, L.cholesky(p))",
    "triangular": "L.solve_triangular(a.tril() + 3 * torch.eye(3), b, upper=False)",
    "triangular_right": "L.solve_triangular(a.triu() + 3 * torch.eye(3), b.mT, upper=True, left=False)",
    "qr": "L.qr(a[..., :2])",
    "svdvals": "L.svdvals(a[..., :2])",
    "svd": "(lambda u, s, vh: u.abs() ** 2 @ s.unsqueeze(-1) + vh.abs().mT ** 2 @ s.unsqueeze(-1))(*L.svd(a))",
    "svd_thin": "(lambda u, s, vh: (u @ vh))(*L.svd(a[..., :2], full_matrices=False))",
    "svd_wide": "(lambda u, s, vh: (u @ vh))(*L.svd(a[..., :2, :], full_matrices=False))",
    "eigvalsh": "L.eigvalsh(p)",
    "eigh": "(lambda e, v: v.abs() ** 2 @ e.unsqueeze(-1))(*L.eigh(p))",
    "pinv": "L.pinv(a[..., :2])",
    "pinv_wide": "L.pinv(a[..., :2, :])",
    "power": "L.matrix_power(a, 3)",
    "exp": "L.matrix_exp(a)",
    "norm_nuc": "L.norm(a, 'nuc', dim=(-2, -1))",
    "norm_2": "L.matrix_norm(a, 2)",
    "multi_dot": "L.multi_dot([a[0], b[0], b[0].mT, a[0, 0]])",
    "fft": "torch.fft.fft(a)",
    "rfft": "torch.fft.rfft2(a.real if a.is_complex() else a)",
    "irfft": "torch.fft.irfft(a + 0j, n=5)",
    "irfft_even": "torch.fft.irfftn(a + 0j, s=(3, 4), dim=(1, 2))",
    "hfft": "torch.fft.hfft(a)",
    "ifftn": "torch.fft.ifftn(a, norm='ortho')",
    "angle": "(a + 0j).angle()",
    "polar": "torch.polar(a.abs(), a.real)",
    "complex": "torch.complex(a.abs(), a.real * 2)",
    "view_as_real": "torch.view_as_real(a + 0j) * 2",
    "rope": "torch.view_as_real(torch.view_as_complex(torch.view_as_real(a + 0j)) * torch.polar(b3.abs(), b3.abs()))",
    "conj": "(a.conj() * b3).mH",
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name, dtype):
    def run(module):
        a = module.from_numpy(matrices(dtype, 2, 3, 3)).requires_grad_()
        b = (module.from_numpy(matrices(dtype, 2, 3, 2)) * 0.5).requires_grad_()
        b3 = module.from_numpy(matrices(dtype, 2, 3, 3) * 0.5).mT.clone().requires_grad_()
        p = module.from_numpy(matrices(dtype, 2, 3, 3, positive=True)).requires_grad_()
        env = {"L": module.linalg, "torch": module, "a": a, "b": b, "b3": b3, "p": p}
        total = 0
        for r in flat(eval(GRADIENTS[name], env)):
            r = r.real + 0.5 * r.imag if r.is_complex() else r
            weights = module.arange(r.numel(), dtype=r.dtype).cos().reshape(r.shape)
            total = total + (r * weights).sum()
        total.backward()
        return [t.grad for t in (a, b, b3, p)]

    for got, want in zip(run(prong), run(torch), strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            agree(got, want.resolve_conj(), dtype)
