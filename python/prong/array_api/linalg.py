"""Linear algebra: the four functions of the main namespace, and the extension."""

from typing import Any, NamedTuple

import prong
from prong import Tensor
from prong.array_api.data_types import promoted
from prong.array_api.statistics import sum as _sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """What eigh gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet gives."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, of stacks of them, and of vectors."""
    return prong.matmul(*promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dims the other way."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Products summed over some dims of each: over the last and first so many, or those given."""
    one, other = promoted(x1, x2)
    return prong.tensordot(one, other, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The scalar products of vectors along axis, counted from the end; the first conjugated."""
    one, other = _aligned("vecdot", *promoted(x1, x2), axis)
    return prong.linalg.vecdot(one, other, dim=axis).to(one.dtype)  # of integers in theirs


def _aligned(name: str, x1: Tensor, x2: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The two with as many dims as each other. Along axis they have to be of one size."""
    while x1.ndim < x2.ndim:
        x1 = x1.unsqueeze(0)
    while x2.ndim < x1.ndim:
        x2 = x2.unsqueeze(0)
    if x1.ndim and x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"{name}: both must be of one size along axis {axis}, "
            f"but they are {x1.shape[axis]} and {x2.shape[axis]}"
        )
    return x1, x2


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of each positive definite matrix."""
    return prong.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector products of vectors of three along axis."""
    return prong.linalg.cross(*_aligned("cross", *promoted(x1, x2), axis), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return prong.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of each matrix, as a view."""
    return prong.linalg.diagonal(x, offset=offset)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues and eigenvectors of each Hermitian matrix."""
    return EighResult(*prong.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of each Hermitian matrix."""
    return prong.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix."""
    return prong.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix."""
    return prong.linalg.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th power of each matrix."""
    return prong.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values of each matrix are above rtol times its largest."""
    if not isinstance(rtol, Tensor):
        return prong.linalg.matrix_rank(x, rtol=rtol)
    sizes = prong.linalg.svdvals(x)
    return prong.sum(sizes > rtol.unsqueeze(-1) * sizes[..., :1], -1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of the other."""
    return prong.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of each matrix; singular values up to rtol times the largest are zeros."""
    if not isinstance(rtol, Tensor):
        return prong.linalg.pinv(x, rtol=rtol)
    u, sizes, vh = prong.linalg.svd(x, False)
    kept = sizes > rtol.unsqueeze(-1) * sizes[..., :1]
    inverses = prong.where(kept, 1 / sizes, prong.zeros_like(sizes))
    return (vh.mH * inverses.unsqueeze(-2)) @ u.mH


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """The orthogonal and the triangular factor of each matrix."""
    return QRResult(*prong.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of each determinant and the logarithm of its size."""
    return SlogdetResult(*prong.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The X with x1 @ X = x2. x2 is a vector if it has one dim. (PyTorch also knows stacks.)"""
    matrices, right = promoted(x1, x2)
    if right.ndim == 1:
        return prong.linalg.solve(matrices, right.unsqueeze(-1)).squeeze(-1)
    while right.ndim < matrices.ndim:
        right = right.unsqueeze(0)
    return prong.linalg.solve(matrices, right)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular values of each matrix, between two unitary ones."""
    return SVDResult(*prong.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix, the largest first."""
    return prong.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype=None) -> Tensor:
    """The sum along a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """A norm over some dims taken as one vector, over all where axis is None."""
    if axis == ():  # every element is a vector
        return prong.linalg.vector_norm(x.unsqueeze(0), ord, 0)
    return prong.linalg.vector_norm(x, ord, axis, keepdim=keepdims)
