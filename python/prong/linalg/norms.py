"""Norms of vectors and matrices, and condition numbers; the names are in prong.linalg."""

import math

import prong
from prong import Tensor, _core
from prong._out import takes_out

_svdvals = _core.op_modules["linalg"]["svdvals"]


@takes_out
def vector_norm(x: Tensor, ord=2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over ``dim``, or over all elements."""
    if isinstance(ord, complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
        )
    return prong.norm(x, ord, dim, keepdim, dtype=dtype)


@takes_out
def matrix_norm(A: Tensor, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """The norm of matrices: 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2."""
    if A.dim() < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    dim = [dim] if isinstance(dim, int) else list(dim)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    rows, columns = (d + A.dim() if d < 0 else d for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        A = A.to(dtype)
    if not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. "
            f"Got {A.dtype}"
        )
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord == "nuc" or ord in (2, -2):
        values = _svdvals(A.movedim((rows, columns), (-2, -1)))
        if ord == "nuc":
            result = values.sum(-1)
        elif values.shape[-1] == 0 and ord == 2:
            result = values.sum(-1)  # of no singular values: 0
        else:
            result = values.amax(-1) if ord == 2 else values.amin(-1)
        return _with_dims(result, rows, columns) if keepdim else result
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) == math.inf:
        rows, columns = columns, rows
    sums = vector_norm(A, 1, rows, keepdim)
    if not keepdim and rows < columns:
        columns -= 1
    if ord > 0 and sums.shape[columns] == 0:
        return sums.sum(columns, keepdim)  # of no rows: 0
    return sums.amax(columns, keepdim) if ord > 0 else sums.amin(columns, keepdim)


def _with_dims(x: Tensor, first: int, second: int) -> Tensor:
    for dim in sorted((first, second)):
        x = x.unsqueeze(dim)
    return x


@takes_out
def norm(A: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """A vector or a matrix norm, by ``ord`` and the number of dims."""
    if ord is not None and dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
        )
    if ord is not None and dim is None and A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
            f"Got {A.dim()}D."
        )
    is_matrix = (dim is None and A.dim() == 2) or (
        dim is not None and not isinstance(dim, int) and len(dim) == 2
    )
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if is_matrix:
        return matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.norm: Order {ord} not supported.")
        return matrix_norm(A, ord, dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@takes_out
def cond(A: Tensor, p=None) -> Tensor:
    """The condition number: the norm of A times the norm of its inverse."""
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor A must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        values = _svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            "linalg.cond: A must be batches of square matrices, but they are "
            f"{A.shape[-2]} by {A.shape[-1]} matrices"
        )
    inverse, info = _core.op_modules["linalg"]["inv_ex"](A)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return prong.where(info != 0, math.inf, result)
