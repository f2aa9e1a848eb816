"""Products and powers of matrices and vectors; the names are in prong.linalg."""

import math

import prong
from prong import Tensor, _core
from prong._out import takes_out


@takes_out
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """torch.matmul."""
    return prong.matmul(input, other)


@takes_out
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along ``dim``."""
    if input.dim() != other.dim():
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions."
            f" Got {input.dim()} and {other.dim()}"
        )
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. "
            f"Got {input.shape[dim]} and {other.shape[dim]}"
        )
    input, other = prong.broadcast_tensors(input, other)
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


@takes_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner product along ``dim``; of complex numbers with x conjugated."""
    return (x.conj() * y).sum(dim)


@takes_out
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power of square matrices; of the inverse where n is negative."""
    if A.dim() < 2:
        raise RuntimeError(
            "linalg.matrix_power: The input tensor A must have at least 2 dimensions."
        )
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if n == 0:
        eye = prong.eye(A.shape[-1], dtype=A.dtype).expand(A.shape)
        return prong.where(prong.ones(A.shape, dtype=prong.bool), eye, A)  # of A, with gradient 0
    if n < 0:
        A, n = prong.inverse(A), -n
    result = None
    while True:
        if n % 2:
            result = A if result is None else result @ A
        n //= 2
        if n == 0 and result is not None:
            return result.clone() if result is A else result
        A = A @ A


def _matrix_pair_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each range of matrices so that the fewest multiplications are done."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


@takes_out
def multi_dot(tensors: list[Tensor]) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0].dim() == 1, tensors[-1].dim() == 1
    if first:
        tensors[0] = tensors[0].unsqueeze(0)
    if last:
        tensors[-1] = tensors[-1].unsqueeze(-1)
    for i, t in enumerate(tensors):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
    split = _matrix_pair_order([t.shape[0] for t in tensors] + [tensors[-1].shape[1]])

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return tensors[i]
        return product(i, split[i][j]) @ product(split[i][j] + 1, j)

    result = product(0, len(tensors) - 1)
    if first:
        result = result.squeeze(0)
    return result.squeeze(-1) if last else result


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension."""
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise RuntimeError("linalg.vander: N must be greater than 1.")
    if x.dim() == 0:
        x = x.reshape(1)
    return x.unsqueeze(-1) ** prong.arange(count)


# Coefficients of the Pade approximant of exp of order 13, and the norm up to which it holds.
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_PADE_REACH = 5.371920351148152


def matrix_exp(A: Tensor) -> Tensor:
    """exp of square matrices, by scaling, a rational function, and squaring."""
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_exp: A must be batches of square matrices, got shape {tuple(A.shape)}"
        )
    if A.numel() == 0:
        return A.clone()
    if A.dtype in (prong.float16, prong.bfloat16):
        return matrix_exp(A.float()).to(A.dtype)
    with prong.no_grad():
        largest = A.abs().sum(-2).max().item()
    squarings = 0
    if math.isfinite(largest) and largest > _PADE_REACH:
        squarings = max(0, math.ceil(math.log2(largest / _PADE_REACH)))
    a = A / 2.0**squarings
    eye = prong.eye(A.shape[-1], dtype=A.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    b = _PADE
    high = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = a @ (high + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    high = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = high + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    result = _core.op_modules["linalg"]["solve"](even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result
