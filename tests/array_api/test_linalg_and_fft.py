"""Linear algebra and Fourier transforms beside array_api_strict."""

import numpy as np
import pytest
from peer import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    Named,
    call,
    check,
    find,
    plain,
    spread,
    strict,
)
from prong import array_api as xp

LOOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}


def near(name, *args, dtype, **kwargs):
    return check(name, *args, rtol=LOOSE.get(dtype, 0), signs=False, **kwargs)


def square(dtype, shape=(2, 4, 4), seed=0):
    """Matrices far from singular."""
    n = shape[-1]
    return (spread(dtype, shape, seed) + 10 * np.eye(n)).astype(dtype)


def hermitian(dtype, shape=(2, 4, 4)):
    a = square(dtype, shape)
    return ((a + np.conj(np.swapaxes(a, -1, -2))) / 2).astype(dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_products(dtype):
    a, b = spread(dtype, (2, 3, 4)), spread(dtype, (4, 5), seed=1)
    near("matmul", a, b, dtype=dtype)
    near("matmul", a[0, 0], b, dtype=dtype)
    near("matmul", a, b[:, 0], dtype=dtype)
    near("matmul", a[0, 0], b[:, 0], dtype=dtype)
    near("tensordot", a, b, axes=1, dtype=dtype)
    near("tensordot", a, a, axes=((0, 2), (0, 2)), dtype=dtype)
    near("tensordot", a[0, 0], b[:, 0], axes=0, dtype=dtype)
    near("vecdot", a, spread(dtype, (3, 4), seed=2), dtype=dtype)
    near("vecdot", a, spread(dtype, (2, 3, 4), seed=2), axis=-2, dtype=dtype)
    near("linalg.outer", a[0, 0], b[:, 0], dtype=dtype)
    near("linalg.cross", a[..., :3], spread(dtype, (2, 3, 3), seed=3), dtype=dtype)
    near("linalg.cross", a, spread(dtype, (2, 3, 4), seed=3), axis=-2, dtype=dtype)
    near("linalg.trace", a, dtype=dtype)
    for offset in (-2, -1, 1, 3):
        near("linalg.trace", a, offset=offset, dtype=dtype)
        near("linalg.diagonal", a, offset=offset, dtype=dtype)
    for shared in ("matmul", "tensordot", "vecdot", "matrix_transpose"):
        assert getattr(xp, shared) is getattr(xp.linalg, shared)


def test_vectors_broadcast_beside_their_axis_alone():
    """A cross product may add dims; neither product repeats a vector of one number."""
    near(
        "linalg.cross", spread("float64", (3,)), spread("float64", (2, 3), seed=1), dtype="float64"
    )
    near("linalg.cross", spread("int32", (4, 1, 3)), spread("int32", (2, 3), seed=1), dtype="int32")
    near("vecdot", spread("float64", (3,)), spread("float64", (0, 3)), dtype="float64")
    for product in (xp.vecdot, xp.linalg.cross):
        with pytest.raises(ValueError, match="of one size along axis -1, but they are 1 and 3"):
            product(xp.ones((2, 1)), xp.ones((3,)))


@pytest.mark.parametrize("wrong", [((), (2, 2)), ((2, 3), ())])
def test_matmul_of_a_number_is_an_error(wrong):
    with pytest.raises((ValueError, RuntimeError)):
        xp.matmul(xp.zeros(wrong[0]), xp.zeros(wrong[1]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrices(dtype):
    a = square(dtype)
    near("linalg.det", a, dtype=dtype)
    near("linalg.slogdet", a, dtype=dtype)
    near("linalg.inv", a, dtype=dtype)
    near("linalg.pinv", spread(dtype, (2, 4, 3)), dtype=dtype)
    near("linalg.svdvals", spread(dtype, (2, 3, 5)), dtype=dtype)
    near("linalg.eigvalsh", hermitian(dtype), dtype=dtype)
    positive = np.matmul(a, np.conj(np.swapaxes(a, -1, -2))).astype(dtype)
    near("linalg.cholesky", positive, dtype=dtype)
    near("linalg.cholesky", positive, upper=True, dtype=dtype)
    for n in (-2, -1, 0, 1, 2, 5):
        near("linalg.matrix_power", a / 8, n, dtype=dtype)
    check("linalg.matrix_rank", np.ones((2, 3, 4), dtype))
    check("linalg.matrix_rank", a)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rtol", [1e-2, 0.6, "each"])
def test_singular_values_left_out(dtype, rtol):
    """matrix_rank and pinv with a bound, one for all or one a matrix."""
    sizes = np.array([[1.0, 0.5, 1e-3], [4.0, 3.0, 2.0]])
    frame = np.linalg.qr(np.arange(12.0).reshape(4, 3) + np.eye(4, 3))[0]
    matrices = (frame * sizes[:, None, :]).astype(dtype)
    bound = np.array([1e-2, 0.6], dtype=np.finfo(dtype).dtype) if rtol == "each" else rtol
    for name in ("matrix_rank", "pinv"):
        sides = [
            find(n, f"linalg.{name}")(n.asarray(matrices), rtol=given_by(n, bound))
            for n in (xp, strict)
        ]
        ours, theirs = (plain(each) for each in sides)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=LOOSE[dtype])


def given_by(namespace, value):
    return namespace.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("dtype", FLOATS)
def test_solve(dtype):
    a = square(dtype)
    for right in ((4,), (4, 3), (2, 4, 3), (2, 4, 4), (5, 2, 4, 1), (4, 4)):
        near("linalg.solve", a, spread(dtype, right, seed=1), dtype=dtype)
    near("linalg.solve", a[0], spread(dtype, (2, 4, 3), seed=1), dtype=dtype)
    # A stack of two 2x2 matrices and one right side of two columns, no stack of two vectors.
    near("linalg.solve", square(dtype, (2, 2, 2)), spread(dtype, (2, 2), seed=1), dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_factors(dtype):
    slack = LOOSE[dtype] * 10
    a = spread(dtype, (2, 5, 3))
    for mode in ("reduced", "complete"):
        q, r = (plain(each) for each in xp.linalg.qr(xp.asarray(a), mode=mode))
        assert q.shape == ((2, 5, 3) if mode == "reduced" else (2, 5, 5))
        np.testing.assert_allclose(q @ r, a, atol=slack)
        np.testing.assert_allclose(np.tril(r, -1), 0, atol=slack)
    for full in (True, False):
        made = xp.linalg.svd(xp.asarray(a), full_matrices=full)
        assert made._fields == ("U", "S", "Vh")
        u, s, vh = (plain(each) for each in made)
        assert u.shape == ((2, 5, 5) if full else (2, 5, 3))
        np.testing.assert_allclose((u[..., :3] * s[:, None, :]) @ vh, a, atol=slack)
    symmetric = hermitian(dtype)
    made = xp.linalg.eigh(xp.asarray(symmetric))
    assert made._fields == ("eigenvalues", "eigenvectors")
    values, vectors = (plain(each) for each in made)
    assert values.dtype == np.dtype(dtype).type(0).real.dtype
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[:, None, :], atol=slack)


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms(dtype):
    a = spread(dtype, (2, 3, 4))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keepdims in (False, True):
            near("linalg.matrix_norm", a, ord=order, keepdims=keepdims, dtype=dtype)
    for order in (0, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf):
        for axis in (None, 0, -1, (0, 1), (0, 1, 2)):
            for keepdims in (False, True):
                options = {"ord": order, "axis": axis, "keepdims": keepdims}
                near("linalg.vector_norm", a, **options, dtype=dtype)
    near("linalg.vector_norm", a, axis=(), dtype=dtype)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_transforms(dtype, norm):
    x = spread(dtype, (3, 4, 6))
    real = dtype in REALS
    one = ["rfft", "ihfft"] if real else ["fft", "ifft", "irfft", "hfft"]
    many = ["rfftn"] if real else ["fftn", "ifftn", "irfftn"]
    for name in one:
        for axis in (-1, 0, 1):
            for n in (None, 5, 8):
                fourier(name, x, dtype, n=n, axis=axis, norm=norm)
    for name in many:
        fourier(name, x, dtype, norm=norm)
        fourier(name, x, dtype, axes=(0, 2), norm=norm)
        fourier(name, x, dtype, s=(4, 3), axes=(0, 1), norm=norm)


def fourier(name, x, dtype, **kwargs):
    """Each number near, by the size of the largest: they are sums of everything."""
    theirs = plain(call(strict, f"fft.{name}", [x], kwargs))
    ours = plain(call(xp, f"fft.{name}", [x], kwargs))
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    slack = (1e-6 if dtype in ("float32", "complex64") else 1e-14) * np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=slack)


def test_frequencies_and_shifts():
    for n in (1, 4, 7):
        for name in ("fft.fftfreq", "fft.rfftfreq"):
            check(name, n, d=0.5, dtype=Named("float64"))
            check(name, n, dtype=Named("float32"))
    for dtype in REALS + COMPLEX:
        for axes in (None, 0, (0, 1)):
            check("fft.fftshift", spread(dtype, (3, 4)), axes=axes)
            check("fft.ifftshift", spread(dtype, (3, 4)), axes=axes)
