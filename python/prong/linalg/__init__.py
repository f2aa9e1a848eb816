"""torch.linalg: the ops over LAPACK, and what is made of them."""

import math

import prong
from prong import Tensor, _core, _names
from prong._core import LinAlgError
from prong._out import takes_out
from prong.linalg.norms import cond, matrix_norm, norm, vector_norm
from prong.linalg.products import (
    cross,
    matmul,
    matrix_exp,
    matrix_power,
    multi_dot,
    vander,
    vecdot,
)

# Every op called linalg_*; the registry is the one list.
globals().update(
    {name: op for name, op in _core.op_modules["linalg"].items() if name not in globals()}
)

__all__ = [
    "LinAlgError",
    "cond",
    "cross",
    "diagonal",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
    *_core.op_modules["linalg"],
]

__getattr__ = _names.module_getattr(__name__)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of each matrix, as a view."""
    return prong.diagonal(A, offset, dim1, dim2)


@takes_out
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse for tensordot: A as a matrix with the first ``ind`` dimensions as rows."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = A.shape[:ind], A.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(last)} != {math.prod(first)}"
        )
    return prong.inverse(A.reshape(math.prod(first), -1)).reshape(*last, *first)


@takes_out
def tensorsolve(A: Tensor, B: Tensor, dims=None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        dims = [d % A.ndim for d in dims]
        A = A.movedim(dims, list(range(A.ndim - len(dims), A.ndim)))
    rest = A.shape[B.ndim :]
    if math.prod(rest) != math.prod(A.shape[: B.ndim]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(rest)} != "
            f"{math.prod(A.shape[: B.ndim])}"
        )
    return _core.op_modules["linalg"]["solve"](A.reshape(-1, math.prod(rest)), B.flatten()).reshape(
        rest
    )
